package experiment

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/deadline"
	"fermata/recording"
)

// A steadyServer is an endpoint in virtual time that answers after 40 ms of network
// and overhead and 70 µs and 7.17 ns times the length a token, with a jitter of 1 %
// and of 2 ms: nothing of it depends on this machine.
type steadyServer struct {
	at    time.Time
	dice  *rand.Rand
	asked int
	odd   oddity
}

// An oddity is what a provider does to its n-th request; the zero value is nothing.
type oddity struct {
	takes  func(r *rand.Rand, n int, was float64) float64 // seconds
	usage  func(r *rand.Rand, tokens int32) int32
	cached func(r *rand.Rand) int32
	refuse func(n int) bool
}

func (s *steadyServer) now() time.Time { return s.at }

func (s *steadyServer) wait(_ context.Context, until time.Time) error {
	if until.After(s.at) {
		s.at = until
	}
	return nil
}

func steadyTime(tokens float64) float64 { return 0.052 + 7.0e-5*tokens + 7.17e-9*tokens*tokens }

func (s *steadyServer) ask(_ context.Context, _ int64, tokens int32) (probed, error) {
	n := s.asked
	s.asked++
	if s.odd.refuse != nil && s.odd.refuse(n) {
		return probed{Outcome: recording.HTTPError, HTTPStatus: 429}, nil
	}
	takes := steadyTime(float64(tokens))*(1+0.01*s.dice.NormFloat64()) + 0.002*s.dice.ExpFloat64()
	if s.odd.takes != nil {
		takes = s.odd.takes(s.dice, n, takes)
	}
	p := probed{Outcome: recording.OK, PromptTokens: tokens, TTFTNs: int64(1e9 * takes)}
	if s.odd.usage != nil {
		p.PromptTokens = s.odd.usage(s.dice, tokens)
	}
	if s.odd.cached != nil {
		p.CachedTokens = s.odd.cached(s.dice)
	}
	s.at = s.at.Add(time.Duration(p.TTFTNs))
	return p, nil
}

// Providers that do what would bend a curve, by the whole hosted plan without a clock
// of this machine's: the curve is flagged or refused with all seeds, and without an
// oddity right and free of flags.
func TestOddProviders(t *testing.T) {
	for _, c := range []struct {
		name    string
		odd     oddity
		flag    string // that is up; empty for none
		refusal string // or what the error says
	}{
		{name: "nothing odd"},
		{name: "a count that varies by 4 %", flag: deadline.NoiseBound, odd: oddity{usage: func(r *rand.Rand, tokens int32) int32 {
			return int32(math.Round(float64(tokens) * (1 + 0.04*r.NormFloat64())))
		}}},
		{name: "half as fast after 50 requests", flag: deadline.Shifted, odd: oddity{takes: func(_ *rand.Rand, n int, was float64) float64 {
			if n >= 50 {
				return 2 * was
			}
			return was
		}}},
		{name: "a cache that is kept secret", flag: deadline.TooFast, odd: oddity{takes: func(r *rand.Rand, _ int, was float64) float64 {
			if r.Float64() < 0.15 {
				return was * (0.3 + 0.4*r.Float64())
			}
			return was
		}}},
		{name: "a cache that is told of", refusal: "usable probes of", odd: oddity{cached: func(r *rand.Rand) int32 {
			if r.Float64() < 0.9 {
				return 128 + int32(r.IntN(200))
			}
			return 0
		}}},
		{name: "a limit on every third request", refusal: "probes failed; the first: a prompt of", odd: oddity{refuse: func(n int) bool { return n%3 == 2 }}},
		{name: "a limit on every eighth request", flag: deadline.Lossy, odd: oddity{refuse: func(n int) bool { return n%8 == 7 }}},
		{name: "refusals from the 60th request on", refusal: "the last 10 probes failed", odd: oddity{refuse: func(n int) bool { return n >= 60 }}},
	} {
		seeds := uint64(1)
		if os.Getenv("FERMATA_SLOW") != "" {
			seeds = 10
		}
		for seed := range seeds {
			pr := &profiling{plan: ProfilePlan{Within: 0.02, Hosted: &HostedPlan{Requests: 97, Over: 24 * time.Hour}}, o: Options{Say: func(string, ...any) {}}, seed: seed}
			pr.plan.fill()
			play := &canaryPlay{profiling: pr, world: &steadyServer{at: time.Unix(0, 0), dice: rand.New(rand.NewPCG(seed, 21)), odd: c.odd}}
			err := play.play(context.Background())
			if err == nil {
				err = play.probes()
			}
			if c.refusal != "" {
				var f *Failure
				if !errors.As(err, &f) || !strings.Contains(f.Saw, c.refusal) {
					t.Errorf("%s, seed %d: %v", c.name, seed, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, seed %d: %v", c.name, seed, err)
				continue
			}
			flags := pr.diagnosis.Flags
			if c.flag != "" {
				if !slices.Contains(flags, c.flag) {
					t.Errorf("%s, seed %d: flagged %v, and %s is not among them", c.name, seed, flags, c.flag)
				}
				continue
			}
			for _, tokens := range []float64{512, 4096, 32768} {
				if truth := 1e9 * (steadyTime(tokens) + 0.002*math.Ln2); len(flags) > 0 || math.Abs(pr.curve.At(tokens)/truth-1) > 0.02 {
					t.Errorf("%s, seed %d: %.1f ms at %.0f tokens, truly %.1f; flagged %v", c.name, seed, pr.curve.At(tokens)/1e6, tokens, truth/1e6, flags)
				}
			}
		}
	}
}

// Where load slows prompts in proportion, deadlines by the proportional rule stand
// beside the slack, and the file holds them.
func TestSlackWhereComputeIsShared(t *testing.T) {
	f := &deadline.File{
		Schema: deadline.Schema, Shape: deadline.Linear, Curve: &deadline.Coefficients{A: "100ms", B: "1ms"}, Flags: []string{deadline.LoadDependent},
		Band:  []deadline.BandPoint{{Tokens: 100, Low: 190 * time.Millisecond, High: 210 * time.Millisecond}, {Tokens: 1000, Low: time.Second, High: 1200 * time.Millisecond}},
		Valid: deadline.Valid{PromptTokens: []int32{100, 1000}},
	}
	p := SlackPlan{Class: "interactive", Promise: deadline.Promise{Load: 0.5}}
	if err := p.slacken(f, f.CurveAt, 40e6, 1, t.Logf); err != nil {
		t.Fatal(err)
	}
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	got, err := deadline.Read("written", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	// 40 ms and twice the 160 ms and 1.06 s that remain of the curve.
	want := []deadline.Knot{{Tokens: 100, Time: 360 * time.Millisecond}, {Tokens: 1000, Time: 2160 * time.Millisecond}}
	if r := got.SlackRule; r.Binds != "cap" || r.Load < 0.49 || r.Load > 0.51 || !slices.Equal(r.Shared, want) || *got.Slack != time.Second {
		t.Errorf("%+v", r)
	}
	f.Flags, f.SlackRule, f.Slack = nil, nil, nil
	if err := p.slacken(f, f.CurveAt, 40e6, 1, t.Logf); err != nil || f.SlackRule.Shared != nil {
		t.Errorf("%v, %+v without the flag", err, f.SlackRule)
	}
}
