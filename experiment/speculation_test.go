package experiment

import (
	"math"
	"slices"
	"testing"
)

// playback is the fluidity index's playback of one answer's tokens (times since
// the first), decode only, written down from its definition.
func playback(at []int64, gap int64) (met, missed int64) {
	due := int64(gap) // e_0 = τ_0, so that e_1 = τ_0 + D_d
	for _, t := range at[1:] {
		if late := t - due; late > 0 {
			missed += late/gap + 1
		} else {
			met++
		}
		due = max(t, due) + gap
	}
	return met, missed
}

// smallest is the smallest gap at which nine of ten deadlines are met.
func smallest(at []int64) int64 {
	low, high := int64(1), int64(1)
	fluid := func(gap int64) bool {
		met, missed := playback(at, gap)
		return 10*met >= 9*(met+missed)
	}
	for !fluid(high) {
		high *= 2
	}
	for low < high {
		if mid := (low + high) / 2; fluid(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// Speculative decoding brings tokens in bursts. F, stalls and the fluid rate of the
// recording equal a playback of the same steps, written down here anew; F rises with the
// gap while TBT stays as it is.
func TestSpeculationIsPlayedBack(t *testing.T) {
	done, rows := simulate(t, "host: modern\nspeculation: {gamma: 4, alpha: 0.7, draft_step: 2ms}\nscheduler: {policy: prefill-first}\n", map[string]string{
		"schedule.rate": "4", "schedule.requests": "300", "schedule.warmup": "0", "workload.input": "lognormal:500,4000", "workload.output": "uniform:20,300",
		"schedule.drain": "quiet", "judge.target_gap": "5ms,10ms,25ms",
	})
	var steps, tokens, bursts int64
	var gaps []int64
	frozen := 0
	met, missed := map[int64]int64{}, map[int64]int64{}
	for _, r := range rows {
		var at []int64
		now := int64(0)
		for i, d := range r.DeltaNs {
			if i > 0 {
				now += d
				steps++
				tokens += int64(r.Tokens[i])
			}
			if r.Tokens[i] > 1 {
				bursts++
			}
			for range r.Tokens[i] {
				at = append(at, now)
			}
		}
		for _, gap := range []int64{5e6, 10e6, 25e6} {
			m, x := playback(at, gap)
			met[gap], missed[gap] = met[gap]+m, missed[gap]+x
		}
		gaps = append(gaps, smallest(at))
		const pace = 166_666_667
		due, late := int64(pace), false
		for _, t := range at[1:] {
			late = late || t > due
			due = max(t, due) + pace
		}
		if late {
			frozen++
		}
	}
	// The last step of an answer is cut off where it ends.
	if mean, want := float64(tokens)/float64(steps), (1-math.Pow(.7, 5))/.3; math.Abs(mean-want) > .05*want || bursts == 0 {
		t.Errorf("%g tokens a step, want about %g", mean, want)
	}
	last := -1.0
	for _, f := range done.Result.Fluidity {
		if f.Variant != "decode" {
			continue
		}
		if f.Met != met[f.TargetGapNs] || f.Missed != missed[f.TargetGapNs] {
			t.Errorf("gap %d: %d met and %d missed, by hand %d and %d", f.TargetGapNs, f.Met, f.Missed, met[f.TargetGapNs], missed[f.TargetGapNs])
		}
		if f.Index == nil || f.Index.Mean == nil || *f.Index.Mean <= last {
			t.Errorf("F does not rise with the gap: %+v after %g", f.Index, last)
			continue
		}
		last = *f.Index.Mean
	}
	slices.Sort(gaps)
	want := gaps[int(math.Ceil(.99*float64(len(gaps))))-1]
	for _, r := range done.Result.FluidRate {
		if r.Variant == "decode" && (r.GapNs == nil || *r.GapNs != want) {
			t.Errorf("D_d* %v, by hand %d", r.GapNs, want)
		}
	}
	if got := done.Result.Stalls.RequestsWithAny; got != int64(frozen) {
		t.Errorf("%d answers froze, by hand %d", got, frozen)
	}
	if done.Result.SameEventShare == nil || *done.Result.SameEventShare < .4 {
		t.Errorf("same event share %v", done.Result.SameEventShare)
	}
}
