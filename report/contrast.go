package report

import (
	"math"

	"fermata/internal/term"
	"fermata/metrics"
)

// Two figures differ beyond these ratios.
const (
	near        = 1.05 // percentiles, rates and shares
	nearExtreme = 1.5  // single largest or smallest values, which jump by chance
)

// A reading is one statistic of one run; without a value where it has none.
type reading struct {
	value, low, high *float64 // the interval covers chance and the bounds of stamps
	status           string
	unstated         *float64 // in place of value, where there are too few requests to state it …
	takes            int64    // … which takes so many
}

// A contrast is one statistic over all runs.
type contrast struct {
	name     string // p50, p99, max …
	readings []reading
	ratio    float64 // of two runs second to first, of more largest to smallest; NaN without one
	differs  bool
	overlap  bool // it differs, but not beyond the intervals
	alone    bool // it differs, but is a mean, or a single value where medians do not
	mute     bool // too few requests to compare it at all
}

// A comparison is one metric over all runs.
type comparison struct {
	label, unit        string
	median, tail, mean contrast
	runs               int // that have the metric
}

// shared is how many runs have the statistic.
func (c *contrast) shared() int {
	n := 0
	for _, r := range c.readings {
		if r.value != nil {
			n++
		}
	}
	return n
}

func (c *contrast) extreme() bool { return c.name == "max" || c.name == "min" }

// sober takes back what the median does not bear out. The largest of a few
// values jumps by chance, so it tells runs apart only with their medians; and
// where there are too few requests for medians, nothing does.
func (c *comparison) sober() {
	if c.tail.extreme() && !c.median.differs {
		c.tail.differs, c.tail.alone = false, c.tail.differs
	}
	if c.tooFew() {
		for _, x := range []*contrast{&c.median, &c.tail, &c.mean} {
			x.differs, x.overlap, x.mute = false, false, true
		}
	}
}

// tooFew says that runs have the metric, but too few requests to compare it.
func (c *comparison) tooFew() bool { return c.runs > 1 && c.median.shared() < 2 }

func (c *comparison) differs() bool { return c.median.differs || c.tail.differs }

func quantileContrast(dists []*metrics.Dist, p float64) contrast {
	c := contrast{name: percentile(p)}
	for _, d := range dists {
		var x reading
		if q := claimed(d, p); q != nil {
			x = reading{value: &q.Value, low: least(q.Low, q.StampLow), high: most(q.High, q.StampHigh), status: q.Status}
		} else if q := at(d, p); q != nil {
			x = reading{unstated: &q.Value, takes: needed(d, q)}
		}
		c.readings = append(c.readings, x)
	}
	c.judge(near)
	return c
}

// plainContrast compares extremes with room for chance. Means are shown beside
// each other but not judged: they have no interval.
func plainContrast(dists []*metrics.Dist, name string) contrast {
	c := contrast{name: name}
	for _, d := range dists {
		c.readings = append(c.readings, reading{value: plain(d, name)})
	}
	if c.extreme() {
		c.judge(nearExtreme)
		return c
	}
	c.judge(near)
	c.differs, c.alone = false, c.differs
	return c
}

// judge sets the ratio and whether it is more than tolerance and chance.
func (c *contrast) judge(tolerance float64) {
	low, high := -1, -1
	for i, r := range c.readings {
		if r.value == nil {
			continue
		}
		if low < 0 || *r.value < *c.readings[low].value {
			low = i
		}
		if high < 0 || *r.value > *c.readings[high].value {
			high = i
		}
	}
	c.ratio = math.NaN()
	if low < 0 {
		return
	}
	small, large := c.readings[low], c.readings[high]
	a, b := *small.value, *large.value
	if len(c.readings) == 2 {
		if x, y := c.readings[0].value, c.readings[1].value; x != nil && y != nil {
			c.ratio = ratio(*x, *y)
		}
	} else {
		c.ratio = ratio(a, b)
	}
	c.differs = b-a > (tolerance-1)*min(math.Abs(a), math.Abs(b))
	if c.differs && small.high != nil && large.low != nil && *large.low <= *small.high {
		c.differs, c.overlap = false, true
	}
}

// ratio is b over a: 1 where both are nothing, NaN where signs leave it without
// meaning.
func ratio(a, b float64) float64 {
	switch {
	case a < 0 || b < 0:
		return math.NaN()
	case a == 0 && b == 0:
		return 1
	case a == 0:
		return math.Inf(1)
	}
	return b / a
}

func least(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func ratioText(r float64) string {
	switch {
	case math.IsNaN(r):
		return term.None
	case math.IsInf(r, 0):
		return "×∞"
	}
	return "×" + term.Number(r, false)
}

func (c *contrast) ratioCell() cell {
	switch {
	case c.mute:
		return cell{}
	case c.differs:
		return cell{text: ratioText(c.ratio), tone: term.Care}
	case c.alone:
		return cell{text: ratioText(c.ratio), tone: term.Faint}
	case c.overlap:
		return cell{text: ratioText(c.ratio), mark: "≈", tone: term.Faint}
	case math.IsNaN(c.ratio):
		return cell{text: term.None, tone: term.Faint}
	}
	return cell{text: "=", tone: term.Faint}
}

func (c *contrast) cells(unit string) []cell {
	var cells []cell
	for _, r := range c.readings {
		x := text(amountOrNone(unit, r.value))
		if r.value == nil {
			x.tone = term.Faint
		}
		if r.unstated != nil {
			x.text, x.mark = amount(unit, *r.unstated), marks[statusInsufficient]
		}
		cells = append(cells, x)
	}
	return append(cells, c.ratioCell())
}
