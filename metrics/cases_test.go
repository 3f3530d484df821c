package metrics

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/recording"
)

// TestCases runs testdata/*.txt; testdata/README.md describes their language.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d case files: %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			c := &caseRun{t: t}
			for i, line := range strings.Split(string(b), "\n") {
				line, _, _ = strings.Cut(line, "#")
				if words := strings.Fields(line); len(words) > 0 {
					c.where = fmt.Sprintf("%s:%d", filepath.Base(file), i+1)
					c.line(words[0], words[1:])
				}
			}
			if c.checks == 0 {
				t.Error("the file expects nothing")
			}
		})
	}
}

// A caseRun plays one case file.
type caseRun struct {
	t        *testing.T
	where    string
	trace    recording.Trace
	deadline recording.Maybe[int64]
	pace     int64
	checks   int
}

func (c *caseRun) line(word string, args []string) {
	c.t.Helper()
	if !c.input(word, args) {
		c.checks++
		c.expect(word, args)
	}
}

// input takes a line that describes the answer.
func (c *caseRun) input(word string, args []string) bool {
	c.t.Helper()
	one := func() int64 { return c.ns(strings.Join(args, " ")) }
	switch word {
	case "case":
		c.trace = recording.Trace{
			Phase: recording.Measured, Outcome: recording.OK, FinishReason: "stop",
			Due: 5_000_000_000, Sent: recording.Some[int64](5_000_000_000),
		}
		c.deadline, c.pace = recording.Maybe[int64]{}, defaultPaceNs
	case "gaps":
		c.gaps(args)
	case "reads":
		c.trace.Read = nil
		for _, a := range args {
			n, _ := strconv.Atoi(a)
			c.trace.Read = append(c.trace.Read, int32(n))
		}
	case "errors":
		for _, a := range args {
			c.trace.StampErrorNs = append(c.trace.StampErrorNs, c.ns(a))
		}
	case "output":
		n, _ := strconv.Atoi(args[0])
		c.trace.Output.Used = recording.Some(int32(n))
	case "outcome":
		c.trace.Outcome = recording.Outcome(args[0])
	case "sent":
		c.trace.Sent = recording.Some(c.trace.Due + one())
	case "deadline":
		c.deadline = recording.Some(one())
	case "pace":
		c.pace = one()
	default:
		return false
	}
	return true
}

// gaps reads arrivals: 20ms, 20ms[4] for four tokens, and x3 to repeat.
func (c *caseRun) gaps(args []string) {
	c.t.Helper()
	a := &c.trace.Arrivals
	for _, g := range args {
		if n, err := strconv.Atoi(strings.TrimPrefix(g, "x")); err == nil && g[0] == 'x' {
			last := len(a.DeltaNs) - 1
			for range n - 1 {
				a.DeltaNs, a.Tokens = append(a.DeltaNs, a.DeltaNs[last]), append(a.Tokens, a.Tokens[last])
			}
			continue
		}
		gap, tokens, bunch := strings.Cut(strings.TrimSuffix(g, "]"), "[")
		k := 1
		if bunch {
			k, _ = strconv.Atoi(tokens)
		}
		a.DeltaNs, a.Tokens = append(a.DeltaNs, c.ns(gap)), append(a.Tokens, int32(k))
	}
}

func (c *caseRun) ns(s string) int64 {
	c.t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		c.t.Fatalf("%s: %v", c.where, err)
	}
	return int64(d)
}

// expect checks a line that says what comes out.
func (c *caseRun) expect(word string, args []string) {
	c.t.Helper()
	var a answer
	if err := a.read(&c.trace, &Options{}); err != nil {
		c.t.Fatalf("%s: %v", c.where, err)
	}
	a.due = nil
	if c.deadline.OK {
		a.due = []int64{c.deadline.V}
	}
	want := strings.Join(args, " ")
	got := c.value(word, args, &a)
	if word == "fluidity" || word == "smallest_gap" {
		want = args[len(args)-1]
	}
	if got == "" {
		c.t.Fatalf("%s: %s is not known", c.where, word)
	}
	if got != want && !sameTime(got, want) {
		c.t.Errorf("%s: %s is %s, want %s", c.where, word, got, want)
	}
}

func sameTime(a, b string) bool {
	x, err1 := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	return err1 == nil && err2 == nil && x == y
}

func (c *caseRun) value(word string, args []string, a *answer) string {
	ns := func(v int64, ok bool) string {
		if !ok {
			return "none"
		}
		return time.Duration(v).String()
	}
	good := func(v int64, ok bool) string { return ns(v, ok && a.good) }
	switch word {
	case "ttft":
		return ns(a.ttft())
	case "ttft_sent":
		return ns(a.ttftSent())
	case "tbt":
		var out []string
		for i, g := range a.gaps {
			if out = append(out, time.Duration(g).String()); i < len(args) && sameTime(out[i], args[i]) {
				out[i] = args[i]
			}
		}
		return strings.Join(out, " ")
	case "gap_longest":
		return ns(a.longestGap())
	case "e2e":
		return good(a.e2e())
	case "normalized_latency":
		return good(a.normalized())
	case "tpot":
		return good(a.tpot())
	case "token_pace":
		return good(a.tokenPace())
	case "even_gap":
		return good(EvenGap(a.times))
	case "stalls":
		s := a.stalling(c.pace)
		return fmt.Sprintf("%d first %d longest %v total %v", s.Count, s.First, time.Duration(s.LongestNs), time.Duration(s.TotalNs))
	case "fluidity":
		s, ok := a.score(args[0], c.ns(args[1]))
		if !ok {
			return "none"
		}
		return fmt.Sprintf("%d/%d", s.Met, s.Met+s.Missed)
	case "smallest_gap":
		v, ok := a.smallestGap(args[0])
		if ok && v == never {
			return "infeasible"
		}
		return ns(v, ok)
	}
	return c.report(word, args)
}

// report is what the report over this one answer says.
func (c *caseRun) report(word string, args []string) string {
	opt := Options{PaceNs: c.pace, PointVerdict: true}
	if word == "objective" {
		o, err := ParseObjective(strings.Join(args[:len(args)-1], " "))
		if err != nil {
			c.t.Fatalf("%s: %v", c.where, err)
		}
		opt.SLO = []Objective{o}
	}
	r, err := Evaluate(recording.Slice{c.trace}, recording.Meta{}, nil, opt)
	if err != nil {
		c.t.Fatalf("%s: %v", c.where, err)
	}
	fraction := func(v *float64) string {
		if v == nil {
			return "none"
		}
		if r, ok := new(big.Rat).SetString(args[0]); ok {
			if f, _ := r.Float64(); math.Abs(f-*v) <= 1e-15*f {
				return args[0]
			}
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	mean := func(d *Dist) *float64 {
		if d == nil {
			return nil
		}
		return d.Mean
	}
	m := r.Metrics
	switch word {
	case "objective":
		return strings.Join(args[:len(args)-1], " ") + " " + r.SLO[0].Verdict
	case "lateness":
		return time.Duration(*mean(r.Load.Lateness)).String()
	case "tps":
		return fraction(mean(m.TPS))
	case "tokens_per_event":
		return fraction(mean(m.TokensPerEvent))
	case "events_per_read":
		return fraction(mean(m.EventsPerRead))
	case "same_event_share":
		return fraction(r.SameEventShare)
	case "same_read_share":
		return fraction(r.SameReadShare)
	case "tpot_stamps", "ttft_stamps", "gap_longest_stamps", "even_gap_stamps", "e2e_stamps":
		d := map[string]*Dist{"tpot_stamps": m.TPOT, "ttft_stamps": m.TTFTDue, "gap_longest_stamps": m.GapLongest, "even_gap_stamps": m.EvenGap, "e2e_stamps": m.E2E}[word]
		q := d.Quantiles[0]
		return strings.ReplaceAll(fmt.Sprintf("%v to %v", time.Duration(*q.StampLow), time.Duration(*q.StampHigh)), "µ", "u")
	}
	return ""
}
