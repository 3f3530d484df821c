package deadline

import (
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"fermata/internal/conf"
)

const given = `schema: fermata.deadlines/1
shape: quadratic
curve: {a: 50ms, b: 40us, c: 0.5ns}
band:
- {tokens: 256, low: 55ms, high: 70ms}
- {tokens: 1024, low: 85ms, high: 100ms}
- {tokens: 8192, low: 400ms, high: 420ms}
slack: 300ms
flags: [thin-support]
source: by hand
valid: {prompt_tokens: [256, 8192]}
`

func deadlinesOf(t *testing.T, text string) *Deadlines {
	t.Helper()
	f, err := Read("d.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Name: "d.yaml", File: *f}
	d, err := o.Deadlines()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFileSaysWhen(t *testing.T) {
	d := deadlinesOf(t, given)
	for _, c := range []struct {
		edge   Edge
		slack  int64
		prompt int32
		want   int64
	}{
		{EdgeFit, 300e6, 1000, 390_500_000},
		{EdgeFit, 0, 3, 50_120_005}, // 4.5 ns, a half up
		{EdgeLow, 0, 256, 55_000_000},
		{EdgeHigh, 0, 256, 70_000_000},
		{EdgeLow, 0, 640, 70_000_000}, // half way from 55 to 85
		{EdgeHigh, 7, 640, 85_000_007},
		{EdgeLow, 0, 4608, 242_500_000},  // half way to 400
		{EdgeHigh, 0, 4608, 260_000_000}, // the curve itself is 244.936832
		{EdgeLow, 0, 0, 50_000_000},      // never above the curve
	} {
		if got := d.Due(c.edge, c.slack, c.prompt); got != c.want {
			t.Errorf("%s, slack %d, %d tokens: %d, want %d", c.edge, c.slack, c.prompt, got, c.want)
		}
	}
	if s, ok := d.Slack(); s != 300e6 || !ok || d.First(1000) != 390_500_000 {
		t.Errorf("slack %d %v, D_p %d", s, ok, d.First(1000))
	}
	if d.Covers(255) || !d.Covers(256) || !d.Covers(8192) || d.Covers(8193) || !d.Banded() || !d.PromptMatters() {
		t.Error("range or band")
	}
	if d.Text() != "d.yaml" || d.Source() != "by hand" || d.Shape() != "quadratic" || len(d.Flags()) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestKnotsSayWhen(t *testing.T) {
	d := deadlinesOf(t, `schema: fermata.deadlines/1
shape: monotone
knots: [{tokens: 100, time: 10ms}, {tokens: 103, time: 10000001ns}, {tokens: 200, time: 20ms}]
`)
	for prompt, want := range map[int32]int64{100: 10e6, 101: 10e6, 102: 10e6 + 1, 103: 10e6 + 1, 200: 20e6, 150: 10_000_001 + 4_845_360} {
		if got := d.First(prompt); got != want { // 47/97 of 9,999,999 ns is 4,845,360.3
			t.Errorf("%d tokens: %d, want %d", prompt, got, want)
		}
	}
	if d.Covers(99) || d.Covers(201) || !d.Covers(150) || d.Banded() {
		t.Error("the knots are the range where none is given, and no band")
	}
}

// Between knots the exact line, rounded a half up.
func TestKnotsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x0, y0 := rapid.Int64Range(0, 1e5).Draw(t, "x0"), rapid.Int64Range(0, 8e18).Draw(t, "y0")
		dx, y1 := rapid.Int64Range(1, 1e6).Draw(t, "dx"), rapid.Int64Range(0, 8e18).Draw(t, "y1")
		at := rapid.Int64Range(0, dx).Draw(t, "at")
		line := new(big.Rat).Mul(big.NewRat(y1-y0, 1), big.NewRat(at, dx))
		line.Add(line, big.NewRat(y0, 1)).Add(line, big.NewRat(1, 2))
		want := new(big.Int).Div(line.Num(), line.Denom()).Int64() // Euclidean: floors
		if got := (knots{{x0, y0}, {x0 + dx, y1}}).at(x0 + at); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestDeadlinesAreMonotone(t *testing.T) {
	d := deadlinesOf(t, given)
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Int32Range(0, 20000).Draw(t, "P")
		q := rapid.Int32Range(p, 20000).Draw(t, "Q")
		s := rapid.Int64Range(0, 1e10).Draw(t, "S")
		for _, e := range []Edge{EdgeLow, EdgeFit, EdgeHigh} {
			if d.Due(e, s, p) > d.Due(e, s, q) || d.Due(e, s, p) > d.Due(e, s+1, p) {
				t.Fatalf("%s falls between %d and %d tokens", e, p, q)
			}
		}
		if d.Due(EdgeLow, s, p) > d.Due(EdgeFit, s, p) || d.Due(EdgeFit, s, p) > d.Due(EdgeHigh, s, p) {
			t.Fatalf("the band does not hold the curve at %d tokens", p)
		}
	})
}

func TestFileMistakes(t *testing.T) {
	const head = "schema: fermata.deadlines/1\n"
	const line = head + "shape: linear\ncurve: {a: 50ms, b: 40us}\n"
	for text, want := range map[string]string{
		"":         "d.yaml: the file is empty",
		"shape: [": "d.yaml:2:1: cannot be read as YAML",
		"schema: fermata.result/1\nshape: linear\ncurve: {a: 0, b: 0}": "d.yaml:1:9: schema: must be fermata.deadlines/1, not \"fermata.result/1\"",
		head + "shape: cubic\n":                                                                           "d.yaml:2:8: shape: must be linear, quadratic, hinges or monotone, not \"cubic\"",
		head + "shape: linear\n":                                                                          "d.yaml:1:1: curve: is missing: shape linear takes curve: {a: 50ms, b: 40us}",
		head + "shape: linear\ncurve: {a: 50ms}\n":                                                        "d.yaml:3:1: curve.b: is missing; write 0 for none",
		head + "shape: linear\ncurve: {a: 50, b: 40us}\n":                                                 "d.yaml:3:12: curve.a: cannot be read: \"50\" lacks a unit, write it as 50ms, 50us or 50ns",
		head + "shape: linear\ncurve: {a: -1ms, b: 40us}\n":                                               "d.yaml:3:12: curve.a: cannot be read: -1ms is negative",
		head + "shape: linear\ncurve: {a: 50ms, b: 40us, c: 1ns}\n":                                       "d.yaml:3:30: curve.c: makes the curve quadratic; say shape: quadratic, or leave it out",
		head + "shape: quadratic\ncurve: {a: 50ms, b: 40us, c: 0, cubic: 1ns}\n":                          "d.yaml:3:33: curve.cubic: unknown key \"cubic\"; keys here are a, b, c",
		head + "shape: quadratic\ncurve: {a: 1ms, b: 99999999999999999999s, c: 0}\n":                      "d.yaml:3:1: curve: cannot be used: 99999999999999999999s is too large",
		head + "shape: hinges\nknots: [{tokens: 1, time: 1ms}]\n":                                         "d.yaml:3:1: knots: must have 2 points or more, not 1",
		head + "shape: hinges\nknots:\n- {tokens: 5, time: 1ms}\n- {tokens: 5, time: 2ms}\n":              "d.yaml:5:12: knots[1].tokens: must be more than that of the point before, 5, not 5",
		head + "shape: hinges\nknots:\n- {tokens: 5, time: 2ms}\n- {tokens: 6, time: 1ms}\n":              "d.yaml:5:21: knots[1].time: is less than that of the knot before",
		head + "shape: hinges\nknots:\n- {tokens: 5, time: 2}\n- {tokens: 6, time: 3ms}\n":                "d.yaml:4:21: knots[0].time: must be a duration such as 300ms or 10m, not 2; add a unit",
		head + "shape: hinges\ncurve: {a: 0, b: 0}\nknots: [{tokens: 1, time: 1s},{tokens: 2, time: 1s}]": "d.yaml:3:1: curve: is for the shapes linear and quadratic; hinges has knots",
		line + "slack: -1ms\n":                    "d.yaml:4:8: slack: must be between 0 and 2400h, not -1ms",
		line + "slack: 300\n":                     "d.yaml:4:8: slack: must be a duration",
		line + "valid: {prompt_tokens: [9, 8]}\n": "d.yaml:4:9: valid.prompt_tokens: must be the shortest prompt and the longest, such as [256, 8192], not [9, 8]",
		line + "valid: {prompt_tokens: [9]}\n":    "d.yaml:4:9: valid.prompt_tokens: must be the shortest prompt and the longest",
		line + "band:\n- {tokens: 0, low: 50ms, high: 51ms}\n- {tokens: 100, low: 55ms, high: 60ms}\n": "d.yaml:6:3: band[1]: must include the curve, which is 54ms at 100 tokens",
		line + "band:\n- {tokens: 0, low: 52ms, high: 51ms}\n- {tokens: 100, low: 50ms, high: 60ms}\n": "d.yaml:5:3: band[0]: has its low edge, 52ms, above its high one, 51ms",
		line + "bands: []\n": "d.yaml:4:1: bands: unknown key \"bands\"; did you mean \"band\"?",
		line + "band:\n- {tokens: 0, low: 1ms, high: 2ms}\n- {tokens: 9, low: 1ms, high: 2ms}\nsha256: abc\n": "d.yaml:7:9: sha256: does not fit: the rest of the file has ",
		line + "sha256: abc\n": "d.yaml:4:9: sha256: does not fit: the rest of the file has ",
		head + "shape: hinges\nknots: [{tokens: 10, time: 1s},{tokens: 20, time: 1s}]\nvalid: {prompt_tokens: [5, 20]}\n": "d.yaml:4:9: valid.prompt_tokens: reaches beyond the knots, which are from 10 to 20 tokens",
	} {
		_, err := Read("d.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestFileRoundTrips(t *testing.T) {
	slack := 1500 * time.Millisecond
	f := File{
		Schema: Schema, Shape: Monotone,
		Knots:     []Knot{{0, 0}, {100, 1234567 * time.Nanosecond}},
		Band:      []BandPoint{{0, 0, 5}, {100, 1000 * time.Microsecond, 2 * time.Millisecond}},
		Slack:     &slack,
		SlackRule: &SlackRule{Workload: "lmsys", Load: 0.6, Share: 0.95, ByLoad: 4 * time.Second, Class: "interactive", Cap: slack, Binds: "cap"},
		Flags:     []string{WideBand},
		Source:    &Source{Plan: "isolated", Target: "http://127.0.0.1:8000", Model: "m", Probes: 84, Tokens: 12345, Hours: 0.05, Seed: 7},
		Valid:     Valid{PromptTokens: []int32{0, 100}},
	}
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read("f", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(&f, got); diff != "" {
		t.Error(diff)
	}
	if s := got.Source.line(); s != "isolated plan, model m, at http://127.0.0.1:8000, 84 probes" {
		t.Error(s)
	}
	// Whatever is changed in it shows.
	for i := range data {
		changed := []byte(string(data))
		changed[i] ^= 1
		if g, err := Read("f", changed); err == nil && g.SHA256 != "" {
			t.Fatalf("byte %d was changed and nobody noticed", i)
		}
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d.yaml")
	if err := os.WriteFile(path, []byte(given), 0o600); err != nil {
		t.Fatal(err)
	}
	var o Options
	if o.Given() || len(o.Load()) > 0 || len(o.Check()) > 0 {
		t.Error("nothing is something")
	}
	if d, err := o.Deadlines(); d != nil || err != nil {
		t.Error(d, err)
	}
	_ = o.UnmarshalText([]byte("fixed:300ms"))
	if found := o.Load(); len(found) > 0 || o.Text != "fixed:300ms" {
		t.Errorf("%v", found)
	}
	_ = o.UnmarshalText([]byte(path))
	if found := o.Load(); len(found) > 0 || o.Text != "" || o.Name != path || !o.Given() {
		t.Fatalf("%v %+v", found, o)
	}
	// What was loaded stands for itself, in YAML too.
	type holder struct {
		D Options `yaml:"d"`
	}
	data, err := conf.Write(holder{o})
	if err != nil {
		t.Fatal(err)
	}
	var back holder
	if _, err := conf.Read("f", data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, back.D); diff != "" {
		t.Error(diff)
	}
	data, _ = conf.Write(holder{Options{Text: "fixed:1s"}})
	if string(data) != "d: fixed:1s\n" {
		t.Errorf("%s", data)
	}
	for text, want := range map[string]string{"soon": `"soon" is no file, and none of the known forms: fixed:300ms, `, dir: "cannot be read: "} {
		o := Options{Text: text}
		if found := o.Load(); len(found) != 1 || !strings.HasPrefix(found[0].Text, want) {
			t.Errorf("%s: %v", text, found)
		}
	}
	if found := (&Options{Text: "fixed:3"}).Check(); len(found) != 1 || !strings.Contains(found[0].Text, "lacks a unit") {
		t.Errorf("%v", found)
	}
}

// docs/deadlines.md shows a file that is read, and tells of every key and flag.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/deadlines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	deadlinesOf(t, example)
	for _, key := range conf.Keys(File{}) {
		name, _, _ := strings.Cut(key, ".")
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/deadlines.md does not tell of %s", name)
		}
	}
}

// A changed file is told by its sum alone: what else is wrong with it follows from the
// change.
func TestChangedFileIsToldBySum(t *testing.T) {
	const text = "schema: fermata.deadlines/1\nshape: linear\ncurve: {a: 50ms, b: 40us}\nband:\n- {tokens: 0, low: 60ms, high: 61ms}\n- {tokens: 100, low: 70ms, high: 71ms}\nsha256: 00\n"
	_, err := Read("d.yaml", []byte(text))
	if err == nil || !strings.Contains(err.Error(), "sha256: does not fit") || strings.Contains(err.Error(), "band") {
		t.Errorf("%v", err)
	}
}
