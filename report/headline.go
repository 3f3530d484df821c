package report

import (
	"fmt"
	"math"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// headline is the first line: how many metrics see a difference, and which sees
// the greatest.
func headline(rs []*metrics.Result, differ, agree, few []comparison) string {
	s := fmt.Sprintf("%d runs %s: ", len(rs), sameLoad(rs))
	compared := len(differ) + len(agree)
	switch {
	case compared == 0 && len(few) == 0:
		return s + "they have no metric in common."
	case compared == 0:
		return s + "too few requests to tell them apart by any metric."
	case len(differ) == 0:
		s += fmt.Sprintf("no metric of %d tells them apart", compared)
	default:
		s += fmt.Sprintf("%d of %d metrics tell them apart", len(differ), compared) + mostOfAll(differ)
	}
	if len(few) > 0 {
		s += fmt.Sprintf("; for %d more there are too few requests to tell", len(few))
	}
	return s + "."
}

// mostOfAll names the metric whose medians are furthest apart, and beside it a
// tail that is further apart still.
func mostOfAll(differ []comparison) string {
	median, medianDepth := furthest(differ, func(c *comparison) *contrast { return &c.median })
	tail, tailDepth := furthest(differ, func(c *comparison) *contrast { return &c.tail })
	switch {
	case median == nil && tail == nil:
		return ""
	case median == nil:
		return ", most of all " + apart(tail.label, &tail.tail)
	case tail == nil || tailDepth <= medianDepth:
		return ", most of all " + apart(median.label, &median.median)
	}
	return ", most of all " + apart(median.label, &median.median) + ", and in the tail " + apart(tail.label, &tail.tail)
}

func apart(label string, c *contrast) string {
	return fmt.Sprintf("%s (%s %s)", label, c.name, ratioText(c.ratio))
}

// furthest is the comparison with the largest finite ratio of one statistic, up
// or down, and the logarithm of that ratio. Single values lead nothing.
func furthest(cs []comparison, of func(*comparison) *contrast) (most *comparison, depth float64) {
	for i := range cs {
		x := of(&cs[i])
		if !x.differs || x.extreme() || !(x.ratio > 0) || math.IsInf(x.ratio, 0) {
			continue
		}
		if d := math.Abs(math.Log(x.ratio)); most == nil || d > depth {
			most, depth = &cs[i], d
		}
	}
	return most, depth
}

// sameLoad says whether runs stood under the same load: by the gaps that were
// asked for, since those that chance made differ, or else by the rates.
func sameLoad(rs []*metrics.Result) string {
	if asked := askedGaps(rs); asked != nil {
		if shapes := askedShapes(rs); shapes != "" {
			return "at the same rate in other bursts (CV " + shapes + ")"
		}
		return "under the same load"
	}
	var rates []string
	low, high := math.Inf(1), 0.0
	for _, r := range rs {
		v := r.Load.OfferedRPS
		if v == nil {
			v = r.Load.AchievedRPS
		}
		if v == nil {
			return "side by side"
		}
		low, high = min(low, *v), max(high, *v)
		rates = append(rates, term.Number(*v, false))
	}
	if high <= low*near {
		return "under the same load"
	}
	return "under different loads (" + strings.Join(rates, ", ") + " requests/s)"
}

// askedGaps is the mean gap that every run was asked for, nil unless it is one.
func askedGaps(rs []*metrics.Result) *int64 {
	var asked *int64
	for _, r := range rs {
		a := r.Load.Arrivals
		if a == nil || a.AskedMeanNs == nil || asked != nil && *asked != *a.AskedMeanNs {
			return nil
		}
		asked = a.AskedMeanNs
	}
	return asked
}

// askedShapes lists the coefficients of variation that were asked for, where
// every run has one and they are not the same.
func askedShapes(rs []*metrics.Result) string {
	var cvs []string
	low, high := math.Inf(1), 0.0
	for _, r := range rs {
		cv := r.Load.Arrivals.AskedCV
		if cv == nil {
			return ""
		}
		low, high = min(low, *cv), max(high, *cv)
		cvs = append(cvs, term.Number(*cv, false))
	}
	if high <= low*near {
		return ""
	}
	return strings.Join(cvs, ", ")
}
