package deadline

import (
	"fmt"
	"math"
	"slices"
)

// A Probe is one request whose first token was timed to learn the curve.
type Probe struct {
	PromptTokens int32 // by the server's own count
	TTFTNs       int64 // from the sending
	Block        int64 // the stretch of time that it belongs to, such as its hour: probes of one are not independent
	Gated        bool  // sent because a probe before it met no queue, so that its delay says nothing of the load
	CachedTokens int32 // of the prompt, where the server tells; such probes are left out
	Failed       bool  // no first token came; it is left out of the curve and counts as a delay beyond any
}

// What a fit needs at least.
const (
	minProbes      = 20
	minDriftProbes = 15 // to compare with an earlier curve
	minLengths     = 3
	minSpread      = 4. // longest prompt over shortest
)

// Times that no first token takes: whoever passes them has other units.
const (
	shortestNs = 10_000
	longestNs  = 3600e9
)

// A sample is what is fitted: lengths in tokens, times in seconds. The scales of
// the model's delays are absolute.
type sample struct {
	p, y  []float64
	block []int64
	gated []bool
	left  int // probes that are not in it

	asked, failed int // probes, and those of them that brought no first token
	lost          int // of the failed, those sent at a random time
}

// sampled takes the usable probes, and refuses where there are too few to fit a
// curve.
func sampled(probes []Probe, least int) (*sample, error) {
	s := &sample{asked: len(probes)}
	for i, p := range probes {
		switch {
		case p.Failed:
			s.failed++
			if !p.Gated {
				s.lost++
			}
			continue
		case p.PromptTokens < 1:
			return nil, fmt.Errorf("fitting a prefill curve: probe %d has a prompt of %d tokens", i, p.PromptTokens)
		case p.TTFTNs <= 0:
			return nil, fmt.Errorf("fitting a prefill curve: probe %d has a TTFT of %d ns; leave out requests without a first token", i, p.TTFTNs)
		case p.CachedTokens > 0:
			s.left++
			continue
		}
		s.p, s.y = append(s.p, float64(p.PromptTokens)), append(s.y, float64(p.TTFTNs)/1e9)
		s.block, s.gated = append(s.block, p.Block), append(s.gated, p.Gated)
	}
	if n := len(s.y); n < least {
		return nil, fmt.Errorf("fitting a prefill curve: %d usable probes of %d, and %d are needed", n, len(probes), least)
	}
	if m := quantile(sorted(s.y), 0.5) * 1e9; m < shortestNs || m > longestNs {
		return nil, fmt.Errorf("fitting a prefill curve: a median TTFT of %.3g ns is no first token's; are the times in nanoseconds?", m)
	}
	return s, nil
}

// spread refuses lengths that no curve can be fitted to.
func (s *sample) spread() error {
	lengths := slices.Compact(sorted(s.p))
	if n := len(lengths); n < minLengths {
		return fmt.Errorf("fitting a prefill curve: %d prompt lengths, and %d are needed", n, minLengths)
	}
	if lo, hi := lengths[0], lengths[len(lengths)-1]; hi/lo < minSpread {
		return fmt.Errorf("fitting a prefill curve: prompts from %.0f to %.0f tokens, and the longest must have %.0f times as many as the shortest", lo, hi, minSpread)
	}
	return nil
}

func (s *sample) shortest() float64 { return slices.Min(s.p) }
func (s *sample) longest() float64  { return slices.Max(s.p) }

// third says in which third of the log range of lengths a prompt lies.
func (s *sample) third(p float64) int {
	lo, hi := math.Log(s.shortest()), math.Log(s.longest())
	return max(0, min(2, int(3*(math.Log(p)-lo)/math.Max(hi-lo, 1e-9))))
}

// Lengths within this factor of the shortest of a group belong together, so that
// targets with a jitter stay one. Where that gives more groups than mostGroups,
// as many bins of equal log width as logBins do.
const (
	groupFactor = 1.25
	mostGroups  = 12
	logBins     = 8
)

// groups are the probes by length, each a list of indexes.
func groups(p []float64) [][]int {
	at := make([]int, len(p))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	var all [][]int
	for i := 0; i < len(at); {
		j := i
		for j < len(at) && p[at[j]] <= groupFactor*p[at[i]] {
			j++
		}
		all = append(all, at[i:j])
		i = j
	}
	if len(all) <= mostGroups {
		return all
	}
	lo, hi := math.Log(p[at[0]]), math.Log(p[at[len(at)-1]])
	bins := make([][]int, logBins)
	for _, i := range at {
		b := min(logBins-1, int(logBins*(math.Log(p[i])-lo)/(hi-lo)))
		bins[b] = append(bins[b], i)
	}
	return slices.DeleteFunc(bins, func(b []int) bool { return len(b) == 0 })
}

// at picks the values of some indexes.
func pick(v []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, j := range at {
		out[i] = v[j]
	}
	return out
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func sorted(v []float64) []float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s
}

// quantile interpolates between order statistics (Hyndman and Fan's type 7).
func quantile(ascending []float64, q float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	h := q * float64(len(ascending)-1)
	i := int(h)
	if i >= len(ascending)-1 {
		return ascending[len(ascending)-1]
	}
	return ascending[i] + (h-float64(i))*(ascending[i+1]-ascending[i])
}
