package deadline

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// slow says whether the whole acceptance table is wanted; without it there is a
// row of each kind.
var slow = os.Getenv("FERMATA_SLOW") != ""

// The golden fits come out again, from the numbers up.
func TestGoldenFits(t *testing.T) {
	files, err := filepath.Glob("testdata/fits/*.json")
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			P, Y, Lengths, FitAt, Pi []float64
			LL, Sa, Sm               float64
			Block                    []int64
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		f := fitShape(&sample{p: want.P, y: want.Y, block: want.Block}, quadraticShape(32768), DefaultNoise())
		worst := 0.0
		for i, p := range want.Lengths {
			worst = math.Max(worst, math.Abs(f.shape.at(f.b, p)/want.FitAt[i]-1))
		}
		t.Logf("%s: worst %.4f %%, LL %.4f for %.4f", filepath.Base(file), 100*worst, f.ll, want.LL)
		if worst > 0.005 || math.Abs(f.ll-want.LL) > 0.01 || math.Abs(math.Sqrt(f.va)-want.Sa) > 1e-4 || math.Abs(math.Sqrt(f.vm)-want.Sm) > 1e-4 {
			t.Errorf("%s: curve off by %.3f %%, LL %v for %v", file, 100*worst, f.ll, want.LL)
		}
		for j, v := range want.Pi {
			if math.Abs(f.state.share[j]-v) > 0.01 {
				t.Errorf("%s: weight %d is %v, want %v", file, j, f.state.share[j], v)
			}
		}
	}
}

// errors of a curve against the truth over the seven lengths.
func errorsOf(at func(p float64) float64, server, world string) (mean, worst float64) {
	for _, p := range worldLengths {
		e := math.Abs(at(p)/truthOf(server, world, p) - 1)
		mean += e / float64(len(worldLengths))
		worst = math.Max(worst, e)
	}
	return mean, worst
}

// overSets does something for so many sets of probes at once, as processors allow.
func overSets(n int, each func(replicate int)) {
	var all sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for r := range n {
		room <- struct{}{}
		all.Go(func() {
			each(r)
			<-room
		})
	}
	all.Wait()
}

func sampleOf(t testing.TB, probes []Probe) *sample {
	t.Helper()
	s, err := sampled(probes, minDriftProbes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// accuracy is the median and the 90th percentile of mean relative errors.
func accuracy(t *testing.T, server, world string, n, sets int, fit func(s *sample) func(p float64) float64) (median, p90 float64) {
	t.Helper()
	v := make([]float64, sets)
	overSets(sets, func(r int) { v[r], _ = errorsOf(fit(sampleOf(t, probesOf(server, world, n, r))), server, world) })
	slices.Sort(v)
	return quantile(v, .5), quantile(v, .9)
}

func quadraticFit(s *sample) func(float64) float64 {
	f := fitShape(s, quadraticShape(32768), DefaultNoise())
	return func(p float64) float64 { return f.shape.at(f.b, p) }
}

func chosenFit(s *sample) func(float64) float64 {
	f, _, _ := choose(s, candidates(s), DefaultNoise())
	return func(p float64) float64 { return f.shape.at(f.b, p) }
}

// Bounds leave room for other random numbers; measured values are a third to a
// half of them.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		server, world string
		n, sets       int
		fit           func(*sample) func(float64) float64
		median, p90   float64
		always        bool
	}{
		{"yi", "idle", 30, 20, quadraticFit, .010, .015, false},
		{"yi", "fifo30", 30, 20, quadraticFit, .010, .020, false},
		{"yi", "fifo60", 30, 20, quadraticFit, .015, .030, true},
		{"yi", "fifo60", 100, 20, quadraticFit, .008, .012, false},
		{"yi", "fifo90", 100, 20, quadraticFit, .015, .050, true},
		{"yi", "fifo90", 300, 10, quadraticFit, .010, .020, false},
		{"yi", "burst", 100, 20, quadraticFit, .008, .012, false},
		{"yi", "cache03", 100, 20, quadraticFit, .008, .015, false},
		{"yi", "cache30", 100, 20, quadraticFit, .008, .015, true},
		{"yi", "jitter", 100, 20, quadraticFit, .020, .030, false},
		{"yi", "psday", 100, 20, quadraticFit, .012, .025, false},
		{"yi", "mixed", 100, 20, quadraticFit, .025, .050, false},
		{"yi", "hetero", 100, 20, quadraticFit, .010, .080, false},
		{"small", "fifo60", 100, 12, chosenFit, .010, .020, false},
		{"chunk", "fifo60", 100, 12, chosenFit, .010, .015, false},
		{"pool", "fifo60", 100, 12, chosenFit, .010, .015, true},
	} {
		if !slow && !c.always {
			continue
		}
		m, p := accuracy(t, c.server, c.world, c.n, c.sets, c.fit)
		t.Logf("%s %s, %d probes: median %.2f %%, p90 %.2f %%", c.server, c.world, c.n, 100*m, 100*p)
		if m > c.median || p > c.p90 {
			t.Errorf("%s %s, %d probes: median %.4f, at most %.3f; p90 %.4f, at most %.3f", c.server, c.world, c.n, m, c.median, p, c.p90)
		}
	}
}

// On a loaded server the textbook's ways must be far worse, or the simulation is
// broken.
func TestBaselinesAreFarWorse(t *testing.T) {
	errorOf := func(name string) float64 {
		v := make([]float64, 20)
		overSets(20, func(r int) {
			at, err := Baseline(name, probesOf("yi", "fifo60", 100, r))
			if err != nil {
				t.Error(err)
				return
			}
			v[r], _ = errorsOf(func(p float64) float64 { return at(p) / 1e9 }, "yi", "fifo60")
		})
		slices.Sort(v)
		return quantile(v, .5)
	}
	ours, _ := accuracy(t, "yi", "fifo60", 100, 20, quadraticFit)
	one, median, low := errorOf(LeastSquares), errorOf(Median), errorOf(LowQuantile)
	t.Logf("one request a length %.1f %%, median regression %.1f %%, lowest tenth %.2f %%, ours %.2f %%", 100*one, 100*median, 100*low, 100*ours)
	if one < 20*ours || median < 10*ours || low > 0.014 {
		t.Error("the estimators stand in another relation than published")
	}
}

// flagged is the diagnosis of a fit of the quadratic shape, as Fit makes it.
func flagged(s *sample, seed uint64, resamples int) (*fitted, *band, *Diagnosis) {
	f := fitShape(s, quadraticShape(32768), DefaultNoise())
	r := &dice{seed}
	b := newBand(s, f, f.resample(s, resamples, func(n int) int { return int(r.u() * float64(n)) }))
	return f, b, diagnose(s, f, b, nil, false)
}

// A curve that is wrong by more than a tenth somewhere never comes without a
// flag, and right ones seldom with one.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		world     string
		bad, good float64 // least share of the bad that is flagged, most of the good
	}{
		{"idle", 0.95, 0.10},
		{"fifo30", 0.95, 0.10},
		{"fifo60", 0.95, 0.20},
		{"burst", 0.95, 0.20},
		{"lognorm", 0.95, 1},
		{"ps30", 0.95, 1},
		{"ps60", 0.90, 1},
		{"mixed", 0.90, 1},
	} {
		const most = 12
		sets := most
		if !slow {
			if sets = 6; c.world != "idle" && c.world != "ps60" {
				continue
			}
		}
		var wrong, up [most]bool
		overSets(sets, func(r int) {
			f, _, d := flagged(sampleOf(t, probesOf("yi", c.world, 100, r)), uint64(r)+5, 30)
			_, worst := errorsOf(func(p float64) float64 { return f.shape.at(f.b, p) }, "yi", c.world)
			wrong[r], up[r] = worst > 0.10, len(d.Flags) > 0
		})
		count := map[[2]bool]float64{}
		for r := range sets {
			count[[2]bool{wrong[r], up[r]}]++
		}
		bad, good := count[[2]bool{true, true}]+count[[2]bool{true, false}], count[[2]bool{false, true}]+count[[2]bool{false, false}]
		t.Logf("%s: %v of %v bad fits flagged, %v of %v good ones", c.world, count[[2]bool{true, true}], bad, count[[2]bool{false, true}], good)
		if bad > 0 && count[[2]bool{true, true}]/bad < c.bad || good > 0 && count[[2]bool{false, true}]/good > c.good {
			t.Errorf("%s: %v of %v bad fits flagged, %v of %v good ones", c.world, count[[2]bool{true, true}], bad, count[[2]bool{false, true}], good)
		}
	}
}

// An empty event that is taken for the first token gives a curve that goes flat.
func TestSaturatingCurvesAreFlagged(t *testing.T) {
	var up [10]bool
	overSets(len(up), func(r int) {
		_, d, err := Fit(probesOf("yi", "rolechunk", 100, r), FitOptions{Resamples: 10})
		up[r] = err == nil && slices.Contains(d.Flags, Saturating)
	})
	if slices.Contains(up[:], false) {
		t.Errorf("flagged: %v", up)
	}
}

func TestBandHoldsTheTruth(t *testing.T) {
	for _, world := range []string{"fifo60", "burst"} {
		const most = 12
		sets := most
		if !slow {
			if sets = 4; world == "burst" {
				continue
			}
		}
		var inside [most]int
		overSets(sets, func(r int) {
			_, b, _ := flagged(sampleOf(t, probesOf("yi", world, 100, r)), uint64(r)+9, 60)
			for _, p := range worldLengths {
				if lo, hi := b.at(p); lo <= truthOf("yi", world, p) && truthOf("yi", world, p) <= hi {
					inside[r]++
				}
			}
		})
		n := 0
		for _, v := range inside {
			n += v
		}
		share := float64(n) / float64(sets*len(worldLengths))
		t.Logf("%s: %.0f %%", world, 100*share)
		if share < 0.88 {
			t.Errorf("%s: the band holds the truth in %.2f", world, share)
		}
	}
}

// Twenty new probes show a change of a tenth, and none where there is none.
func TestDrift(t *testing.T) {
	alarms := func(scale float64) int {
		var up [10]bool
		overSets(len(up), func(r int) {
			s := sampleOf(t, probesOf("yi", "fifo60", 100, r))
			f := fitShape(s, quadraticShape(32768), DefaultNoise())
			probes := probesOf("yi", "fifo60", 21, r+500)
			for i := range probes {
				probes[i].TTFTNs += int64(1e9 * (scale - 1) * prefillOf("yi", float64(probes[i].PromptTokens)))
			}
			d, err := Compare(&Curve{shape: *f.shape, b: f.b}, probes, FitOptions{Resamples: 60, Seed: uint64(r)})
			up[r] = err == nil && d.Alarm
		})
		n := 0
		for _, v := range up {
			if v {
				n++
			}
		}
		return n
	}
	same, slower, faster := alarms(1), alarms(1.1), alarms(0.8)
	t.Logf("alarms of 10: %d without a change, %d a tenth slower, %d a fifth faster", same, slower, faster)
	if same > 0 || slower < 9 || faster < 9 {
		t.Errorf("alarms of 10: %d without a change, %d a tenth slower, %d a fifth faster", same, slower, faster)
	}
}

// The order of the probes is nothing to the curve, and what is added to every
// probe moves it by as much.
func TestInvariances(t *testing.T) {
	probes := probesOf("yi", "fifo60", 100, 3)
	was := quadraticFit(sampleOf(t, probes))
	slices.Reverse(probes)
	turned := quadraticFit(sampleOf(t, probes))
	for i := range probes {
		probes[i].TTFTNs += 300e6
	}
	later := quadraticFit(sampleOf(t, probes))
	for _, p := range worldLengths {
		if math.Abs(turned(p)/was(p)-1) > 1e-3 {
			t.Errorf("the order matters at %v: %v, %v", p, was(p), turned(p))
		}
		if d := later(p) - turned(p); math.Abs(d-0.3) > 0.006+0.01*turned(p) {
			t.Errorf("300 ms more move the curve by %v at %v", d, p)
		}
	}
}

func TestCurveAndDiagnosis(t *testing.T) {
	probes := probesOf("yi", "fifo60", 100, 0)
	for i := range 3 {
		probes = append(probes, Probe{PromptTokens: int32(512 << i), TTFTNs: 1e6, CachedTokens: 100})
	}
	c, d, err := Fit(probes, FitOptions{Seed: 7, Resamples: 40})
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := Fit(probes, FitOptions{Seed: 7, Resamples: 40})
	last := 0.0
	for p := 256.0; p < 36000; p *= 1.1 {
		lo, hi := c.Band(p)
		lo2, hi2 := again.Band(p)
		if c.At(p) < last || lo > c.At(p) || hi < c.At(p) || math.Abs(lo-lo2)+math.Abs(hi-hi2) > 0 {
			t.Errorf("at %.0f tokens: %v in [%v, %v], before %v, again [%v, %v]", p, c.At(p), lo, hi, last, lo2, hi2)
		}
		last = c.At(p)
	}
	if d.Probes != 100 || d.LeftOut != 3 || c.Shortest != 512 || c.Longest != 32768 || len(d.BIC) != 4 || len(d.Flags) > 0 {
		t.Errorf("%+v", d)
	}
	// Over the last octave the true curve costs 70 µs and 7.17 ns times 49,152 a token.
	if math.Abs(d.TokensPerS*4.224e-4-1) > 0.02 {
		t.Errorf("%+v", d)
	}
}

// Probes at random times meet an idle queue with a chance of one less the load.
func TestUndelayedShare(t *testing.T) {
	for world, want := range map[string]float64{"fifo30": 0.7, "fifo60": 0.4, "fifo90": 0.1} {
		var v [12]float64
		overSets(len(v), func(r int) {
			v[r] = fitShape(sampleOf(t, probesOf("yi", world, 100, r)), quadraticShape(32768), DefaultNoise()).state.share[spike]
		})
		t.Logf("%s: %.3f, truly %.1f", world, mean(v[:]), want)
		if math.Abs(mean(v[:])-want) > 0.06 {
			t.Errorf("%s: %v, truly %v", world, mean(v[:]), want)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := probesOf("yi", "idle", 30, 0)
	with := func(change func([]Probe) []Probe) []Probe { return change(slices.Clone(good)) }
	for want, probes := range map[string][]Probe{
		"19 usable probes of 19, and 20 are needed": good[:19],
		"9 usable probes of 30": with(func(p []Probe) []Probe {
			for i := range 21 {
				p[i].CachedTokens = 1
			}
			return p
		}),
		"probe 4 has a TTFT of 0 ns":             with(func(p []Probe) []Probe { p[4].TTFTNs = 0; return p }),
		"probe 4 has a TTFT of -5 ns":            with(func(p []Probe) []Probe { p[4].TTFTNs = -5; return p }),
		"probe 0 has a prompt of 0 tokens":       with(func(p []Probe) []Probe { p[0].PromptTokens = 0; return p }),
		"2 prompt lengths, and 3 are needed":     with(func(p []Probe) []Probe { return lengthsOf(p, 512, 4096) }),
		"prompts from 512 to 1024 tokens, and":   with(func(p []Probe) []Probe { return lengthsOf(p, 512, 700, 1024) }),
		"are the times in nanoseconds?":          with(func(p []Probe) []Probe { return scaledBy(p, 1e-6) }),
		"1e+17 ns is no first token's":           with(func(p []Probe) []Probe { return constant(p, 1e17) }),
		"0 usable probes of 0, and 20 are neede": nil,
	} {
		if _, _, err := Fit(probes, FitOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Compare(&Curve{shape: linearShape(1), b: []float64{1, 1}}, good[:14], FitOptions{}); err == nil || !strings.Contains(err.Error(), "14 usable probes of 14, and 15 are needed") {
		t.Error(err)
	}
	if _, _, err := Fit(good, FitOptions{Shape: "round"}); err == nil || !strings.Contains(err.Error(), `no shape "round"`) {
		t.Error(err)
	}
	if c, _, err := Fit(good, FitOptions{Shape: Linear, Resamples: 5}); err != nil || c.Shape() != Linear {
		t.Error(err)
	}
	if _, err := Baseline("guess", good); err == nil || !strings.Contains(err.Error(), `no estimator "guess"`) {
		t.Error(err)
	}
}

func lengthsOf(p []Probe, lengths ...int32) []Probe {
	for i := range p {
		p[i].PromptTokens = lengths[i%len(lengths)]
	}
	return p
}

func scaledBy(p []Probe, by float64) []Probe {
	for i := range p {
		p[i].TTFTNs = max(1, int64(float64(p[i].TTFTNs)*by))
	}
	return p
}

func constant(p []Probe, ns int64) []Probe {
	for i := range p {
		p[i].TTFTNs = ns
	}
	return p
}

// nnls meets the conditions of Karush, Kuhn and Tucker, which only the minimum does.
func TestNNLSIsTheMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(t, "k")
		n := rapid.IntRange(k+2, 25).Draw(t, "n")
		x := rapid.SliceOfN(rapid.Float64Range(0, 1), n*k, n*k).Draw(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(-2, 2), n, n).Draw(t, "y")
		w := rapid.SliceOfN(rapid.Float64Range(0.1, 2), n, n).Draw(t, "w")
		b := nnls(x, k, y, w)
		for j := range k {
			gradient, size := 0.0, 1e-9
			for i := range n {
				r := dot(x[i*k:i*k+k], b) - y[i]
				gradient += w[i] * x[i*k+j] * r
				size += w[i] * x[i*k+j] * 4
			}
			if b[j] < 0 || gradient < -1e-6*size || b[j] > 1e-9 && math.Abs(gradient) > 1e-4*size {
				t.Fatalf("coefficient %d is %v with gradient %v of %v", j, b[j], gradient, size)
			}
		}
	})
}

// To full precision against the asymptotic series's neighbours: the two branches
// meet, and Φ(z) + Φ(−z) = 1 where that can be seen.
func TestLogPhi(t *testing.T) {
	for z, want := range map[float64]float64{0: math.Log(0.5), -1: -1.8410216450092636, 5: -2.866516129637633e-07, -20: -203.91715537109724} {
		if got := logPhi(z); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("log Φ(%v) = %v, want %v", z, got, want)
		}
	}
	for _, z := range []float64{-10, 6} {
		if a, b := logPhi(z-1e-9), logPhi(z+1e-9); math.Abs(a/b-1) > 1e-6 {
			t.Errorf("the branches do not meet at %v: %v, %v", z, a, b)
		}
	}
}
