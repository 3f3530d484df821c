package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/deadline"
	"fermata/internal/calm"
	"fermata/internal/conf"
)

// hostedOf profiles a server by a hosted plan that lasts some seconds.
func hostedOf(ctx context.Context, p *prefiller, dir string, requests int, more ...conf.Setting) (*Profiled, string, error) {
	if p.firsts == nil {
		p.firsts = map[string]bool{}
	}
	server := httptest.NewServer(p)
	defer server.Close()
	return hostedAt(ctx, server.URL, dir, requests, more...)
}

func hostedAt(ctx context.Context, url, dir string, requests int, more ...conf.Setting) (*Profiled, string, error) {
	var said []string
	var mu sync.Mutex
	o := Options{Out: dir, Say: func(f string, a ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, fmt.Sprintf(f, a...))
	}}
	sets := append([]conf.Setting{{Path: "target.url", Value: url}, {Path: "target.model", Value: "m"}, {Path: "seed", Value: "5"}}, more...)
	plan := ProfilePlan{Shortest: 64, Longest: 1024, Lengths: 5, Hosted: &HostedPlan{Requests: requests, Over: 2 * time.Second}}
	got, err := Profile(ctx, sets, plan, o)
	mu.Lock()
	defer mu.Unlock()
	return got, strings.Join(said, "\n"), err
}

// queued lets four in ten requests wait for others.
func queued(n, _ int, was time.Duration) time.Duration {
	r := rand.New(rand.NewPCG(3, uint64(n)))
	if r.Float64() < 0.4 {
		was += time.Duration(40 * r.ExpFloat64() * float64(time.Millisecond))
	}
	return was
}

// A queue that others fill is told from the curve below it: four in ten requests
// wait 40 ms in the mean, on times of 25 to 70 ms.
func TestHostedProfileBelowAQueue(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		p := &prefiller{perWord: 50 * time.Microsecond, takes: queued}
		dir := filepath.Join(t.TempDir(), "p")
		got, said, err := hostedOf(context.Background(), p, dir, 70)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		for _, words := range []int{64, 256, 1024} {
			truth := float64(20*time.Millisecond + time.Duration(words)*50*time.Microsecond)
			if at := got.Curve.At(float64(words)); at < 0.95*truth || at > truth+30e6 {
				t.Errorf("%d tokens: %.1f ms, truly %.1f and a little", words, at/1e6, truth/1e6)
			}
		}
		if p.together || p.repeated || len(p.wordy) > 0 {
			t.Errorf("two at once: %v; a beginning twice: %v; longer answers: %v", p.together, p.repeated, p.wordy)
		}
		canaries, free, longs := 0, 0, map[int]bool{}
		for _, n := range p.words {
			if n == 64 {
				canaries++
			} else {
				longs[n] = true
			}
		}
		_, all, err := openProbes(dir, &probeHeader{Target: got.File.Source.Target, Model: "m", Shortest: 64, Longest: 1024, Lengths: 5})
		if err != nil || len(all) != len(p.words) || len(all) < 28 || len(all) > 70 {
			t.Fatalf("%d of %d probes kept, %v", len(all), len(p.words), err)
		}
		for _, one := range all {
			if one.Kind == freeProbe {
				free++
			}
			if one.PingNs <= 0 || one.Kind == canaryProbe && one.Wanted != 64 || one.Kind != canaryProbe && one.Wanted < 100 {
				t.Errorf("%+v", one)
			}
		}
		// A third of all are long, of lengths that hardly repeat; a few of them free.
		if share := float64(canaries) / float64(len(all)); share < 0.5 || share > 0.9 || free < 1 || len(longs) < 5 {
			t.Errorf("%d canaries of %d, %d free, %d lengths", canaries, len(all), free, len(longs))
		}
		if s := got.File.Source; s.Plan != "hosted" || s.Probes != got.Diagnosis.Probes || s.Tokens <= 0 || got.File.SHA256 == "" || len(got.File.Band) < 10 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(said, "hosted plan: about 49 canaries of 64 tokens and 21 prompts of 128 to 1,024 over 2s, one at a time") {
			t.Error(said)
		}
	})
}

// What is killed goes on: no probe is lost, none asked twice.
func TestHostedProfileGoesOn(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		ctx, kill := context.WithCancel(context.Background())
		p := &prefiller{perWord: 10 * time.Microsecond, firsts: map[string]bool{}}
		p.seen = func(n int) {
			if n == 20 {
				kill()
			}
		}
		server := httptest.NewServer(p)
		defer server.Close()
		dir := filepath.Join(t.TempDir(), "p")
		_, _, err := hostedAt(ctx, server.URL, dir, 40)
		if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "interrupted after 20 of 40 requests") || !strings.Contains(err.Error(), "--out "+dir) {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "probes.jsonl")
		data, err := os.ReadFile(path)
		if err != nil || strings.Count(string(data), "\n") != 21 {
			t.Fatalf("%v\n%s", err, data)
		}
		time.Sleep(200 * time.Millisecond) // the server is done with what was cut
		p.mu.Lock()
		p.together = false
		p.mu.Unlock()
		torn := append(data, `{"at": "2026-`...) // as a machine that lost power leaves it
		if err := os.WriteFile(path, torn, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := hostedAt(context.Background(), server.URL+"/v1", dir, 40); err == nil || !strings.Contains(err.Error(), "its probes asked "+server.URL) {
			t.Errorf("another target: %v", err)
		}
		got, said, err := hostedAt(context.Background(), server.URL, dir, 40)
		if err != nil || !strings.Contains(said, "20 requests of this profile are in") {
			t.Fatalf("%v\n%s", err, said)
		}
		again, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(again), string(data)) {
			t.Errorf("%v\n%s", err, again)
		}
		n := strings.Count(string(again), "\n") - 1
		if p.repeated || p.together || n > 40 || n < 28 || len(p.words) != n+1 { // one was cut on its way
			t.Errorf("%d requests, %d kept, a beginning twice: %v, two at once: %v", len(p.words), n, p.repeated, p.together)
		}
		if d := got.Diagnosis; d.Probes != n {
			t.Errorf("%d probes fitted of %d", d.Probes, n)
		}
		// A curve that is there already is written again without a question.
		before := len(p.words)
		if _, said, err = hostedAt(context.Background(), server.URL, dir, 28); err != nil || len(p.words) != before || strings.Contains(said, "hosted plan:") {
			t.Errorf("%d requests more, %v\n%s", len(p.words)-before, err, said)
		}
	})
}

// What an endpoint can do to a curve is flagged or refused, never fitted in silence.
func TestHostedProfileIsNotFooled(t *testing.T) {
	every := func(k int) func(int) bool { return func(n int) bool { return n%k == k-1 } }
	for _, c := range []struct {
		name     string
		p        *prefiller
		requests int
		flag     string // that is up
		silent   string // what is not said
		refusal  string // or what the error says
		slow     bool
	}{
		{name: "a cache that it tells of", p: &prefiller{perWord: 10 * time.Microsecond, cached: func(n int) int { return 40 * min(1, rand.New(rand.NewPCG(4, uint64(n))).IntN(4)) }}, requests: 42, refusal: "usable probes of"},
		{name: "a cache that it keeps to itself", p: &prefiller{perWord: 50 * time.Microsecond, takes: func(n, _ int, was time.Duration) time.Duration {
			if n%6 == 5 {
				return was / 3
			}
			return was
		}}, requests: 60, flag: deadline.TooFast},
		{name: "another speed from the middle on", p: &prefiller{perWord: 60 * time.Microsecond, takes: func(n, _ int, was time.Duration) time.Duration {
			if n >= 30 {
				return was * 8 / 5
			}
			return was
		}}, requests: 60, flag: deadline.Shifted},
		{name: "a limit on the rate", p: &prefiller{perWord: 10 * time.Microsecond, refuse: every(3)}, requests: 42, refusal: "probes failed; the first: a prompt of"},
		{name: "a limit that seldom bites", p: &prefiller{perWord: 10 * time.Microsecond, refuse: every(8)}, requests: 42, flag: deadline.Lossy, silent: "reports no usage"},
		{name: "nothing but refusals", p: &prefiller{refuse: func(n int) bool { return n > 2 }}, requests: 42, refusal: "the last 10 probes failed: a prompt of 64 tokens ended as http_error 429"},
		{name: "a count that varies by 4 %", p: &prefiller{perWord: 600 * time.Microsecond, usage: func(n, words int) int {
			r := rand.New(rand.NewPCG(9, uint64(n)))
			return int(math.Round(float64(words) * (1 + 0.04*r.NormFloat64())))
		}}, requests: 90, flag: deadline.NoiseBound, slow: true},
	} {
		if c.slow && os.Getenv("FERMATA_SLOW") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				got, said, err := hostedOf(context.Background(), c.p.anew(), filepath.Join(t.TempDir(), "p"), c.requests)
				if c.refusal != "" {
					var f *Failure
					if !errors.As(err, &f) || !strings.Contains(f.Saw, c.refusal) || f.Help == "" {
						t.Errorf("%v\n%s", err, said)
					}
					return
				}
				if err != nil || !slices.Contains(got.Diagnosis.Flags, c.flag) || !slices.Contains(got.File.Flags, c.flag) || !strings.Contains(said, c.flag+": ") || c.silent != "" && strings.Contains(said, c.silent) {
					t.Errorf("%v\n%s", err, said)
				}
			})
		})
	}
}

// The money ends before the bound is passed, and what there is makes a curve or
// says why not.
func TestHostedProfileKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		dir := t.TempDir()
		prices := filepath.Join(dir, "prices.yaml")
		if err := os.WriteFile(prices, []byte("currency: USD\ndate: 2026-01-01\nsource: test\ntokens: {input_per_million: \"1\", output_per_million: \"0\"}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := &prefiller{perWord: 10 * time.Microsecond}
		_, said, err := hostedOf(context.Background(), p, filepath.Join(dir, "p"), 200,
			conf.Setting{Path: "prices", Value: prices}, conf.Setting{Path: "load.max_cost", Value: "0.006"})
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		sum := 0
		for _, n := range p.words {
			sum += n
		}
		// 6000 tokens at a millionth each, less one session's worst: 64 + 1126 tokens.
		if sum > 6000 || sum < 6000-2*(64+1127) && !strings.Contains(said, "the band is within") {
			t.Errorf("%d tokens were spent\n%s", sum, said)
		}
		if !strings.Contains(said, "USD, at most") || !strings.Contains(said, "it ends before 0.00600 is spent, which will not do for all of them: with --max-cost 0.0598 it would for certain") {
			t.Error(said)
		}
	})
}

// A bound that pays for no curve is refused before anything is asked, by either plan,
// and says how much would do.
func TestProfileThatMoneyIsTooShortFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prices := filepath.Join(dir, "prices.yaml")
	if err := os.WriteFile(prices, []byte("currency: USD\ndate: 2026-01-01\nsource: test\ntokens: {input_per_million: \"1\", output_per_million: \"0\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, plan := range map[string]ProfilePlan{
		// 9 of 28 are long, of 480 tokens on average: 19·64 + 9·480.
		"the 28 requests after which one is first looked for take about 0.00554, and the whole plan up to 0.0299": {Shortest: 64, Longest: 1024, Lengths: 5, Hosted: &HostedPlan{Requests: 100, Over: time.Second}},
		// Ten rounds and the one before of 64, 128, 256, 512 and 1024; at most 41.
		"the 10 rounds after which one is first looked for take about 0.0218, and the whole plan up to 0.0813": {Shortest: 64, Longest: 1024, Lengths: 5},
	} {
		out := filepath.Join(dir, "out")
		_, err := Profile(context.Background(), []conf.Setting{
			{Path: "target.url", Value: "http://127.0.0.1:1"}, {Path: "prices", Value: prices}, {Path: "load.max_cost", Value: "0.005"},
		}, plan, Options{Out: out, Say: t.Logf})
		var misuse *Misuse
		if !errors.As(err, &misuse) || !strings.Contains(err.Error(), "--max-cost 0.00500 USD is too little for any curve: "+want) || exists(out) {
			t.Errorf("%v, want %s; the folder is there: %v", err, want, exists(out))
		}
	}
}
