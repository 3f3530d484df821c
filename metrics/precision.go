package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fermata/internal/stats"
	"fermata/recording"
)

// An Aim is how well a run is to know a percentile before it ends. ParseAim makes
// one.
type Aim struct {
	Text  string
	term  Term
	p     int     // thousandths
	width float64 // wanted: half the interval's width, as a share of the value
}

// aimed are the figures that an aim can be about, one a request and never 0, each
// with its distribution.
var aimed = []struct {
	name string
	dist func(*Metrics) *Dist
}{
	{"ttft", func(m *Metrics) *Dist { return m.TTFTDue }},
	{"ttft_sent", func(m *Metrics) *Dist { return m.TTFTSent }},
	{"tpot", func(m *Metrics) *Dist { return m.TPOT }},
	{"token_pace", func(m *Metrics) *Dist { return m.TokenPace }},
	{"normlat", func(m *Metrics) *Dist { return m.NormalizedLatency }},
	{"e2e", func(m *Metrics) *Dist { return m.E2E }},
	{"even_gap", func(m *Metrics) *Dist { return m.EvenGap }},
	{"gap.longest", func(m *Metrics) *Dist { return m.GapLongest }},
}

// ParseAim reads NAME.pNN<=SHARE, such as ttft.p99<=5%: the 95 % interval of that
// percentile is to reach from 5 % below its value to 5 % above, or so: half its
// width is 5 % of the value.
func ParseAim(text string) (Aim, error) {
	a := Aim{Text: strings.TrimSpace(text)}
	fail := func(why string) (Aim, error) {
		return Aim{}, fmt.Errorf("must be a percentile with the width of its interval, such as ttft.p99<=5%%: %s", why)
	}
	figure, width, ok := strings.Cut(a.Text, "<=")
	if !ok {
		return fail(fmt.Sprintf("%q has no <=", a.Text))
	}
	share, ok := strings.CutSuffix(strings.TrimSpace(width), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
	if !ok || err != nil || !(v >= 0.1 && v <= 100) {
		return fail(fmt.Sprintf("%q is no share from 0.1%% to 100%%", strings.TrimSpace(width)))
	}
	a.width = v / 100
	figure = strings.TrimSpace(figure)
	dot := max(0, strings.LastIndex(figure, ".p"))
	p, known := thousandths(strings.TrimPrefix(figure[dot:], ".p"))
	if !known || dot == 0 || !slices.Contains(percentiles, p) {
		return fail(fmt.Sprintf("%q does not end in .p50, .p90, .p95, .p99 or .p99.9", figure))
	}
	a.p = p
	var names []string
	for _, one := range aimed {
		if names = append(names, one.name); one.name == figure[:dot] {
			a.term, err = parseName(one.name)
			return a, err
		}
	}
	return fail(fmt.Sprintf("%q is not among %s", figure[:dot], strings.Join(names, ", ")))
}

// figure is the percentile's name, such as ttft.p99.
func (a Aim) figure() string { return a.term.String() + ".p" + decimal(a.p) }

// decimal is a number of thousandths in per cent.
func decimal(thousandths int) string {
	return strconv.FormatFloat(float64(thousandths)/10, 'f', -1, 64)
}

// reached is what came of the aim in a whole recording.
func (a Aim) reached(m *Metrics) Precision {
	p := Precision{Statistic: a.figure(), Wanted: a.width}
	for _, one := range aimed {
		if one.name != a.term.String() {
			continue
		}
		d := one.dist(m)
		if d == nil {
			return p
		}
		p.N = d.N
		i := slices.IndexFunc(d.Quantiles, func(q Quantile) bool { return int(math.Round(q.P*1000)) == a.p })
		if d.Better == higher || i < 0 {
			return p
		}
		if q := d.Quantiles[i]; q.Low != nil && q.High != nil && q.Value > 0 {
			width := (*q.High - *q.Low) / 2 / q.Value
			p.Reached = &width
		}
	}
	p.Met = p.Reached != nil && *p.Reached <= a.width
	return p
}

const (
	// An interval is looked at from so many values on; fewer say little about
	// their own spread.
	aimFrom = 100
	// Each further look waits for this share more. Looking often is what makes
	// an interval narrow by chance: see docs/metrics.md.
	aimMore = 0.1
)

// A Watch says under way whether a run knows enough. See is for any goroutine,
// Look for one.
type Watch struct {
	aims []Aim
	opt  Options

	mu    sync.Mutex
	fresh []recording.Trace // since the last look

	answer answer
	values [][]timed // of each aim
	looked []int     // values at the last look
	said   []string  // what was reached; empty until then
}

type timed struct{ due, value int64 }

// NewWatch makes a watch over requests judged by opt.
func NewWatch(aims []Aim, opt Options) (*Watch, error) {
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	n := len(aims)
	return &Watch{aims: aims, opt: opt, values: make([][]timed, n), looked: make([]int, n), said: make([]string, n)}, nil
}

// See takes a measured request that has ended, whose arrivals stay as they are.
func (w *Watch) See(t *recording.Trace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = append(w.fresh, *t)
}

// Look says whether every aim is reached by the good answers among what was seen,
// and how well. Once an aim is, it stays so.
func (w *Watch) Look() (reached string, ok bool) {
	w.mu.Lock()
	fresh := w.fresh
	w.fresh = nil
	w.mu.Unlock()
	for i := range fresh {
		if w.answer.read(&fresh[i], &w.opt) != nil || !w.answer.good {
			continue
		}
		for k, aim := range w.aims {
			if v, has := aim.term.value(&w.answer, w.opt.PaceNs); has && v > 0 {
				w.values[k] = append(w.values[k], timed{fresh[i].Due, v})
			}
		}
	}
	for k := range w.aims {
		if w.said[k] == "" {
			w.look(k)
		}
	}
	if slices.Contains(w.said, "") {
		return "", false
	}
	return strings.Join(w.said, ", "), true
}

// look is Look for one aim.
func (w *Watch) look(k int) {
	n := len(w.values[k])
	if n < aimFrom || float64(n) < (1+aimMore)*float64(w.looked[k]) {
		return
	}
	w.looked[k] = n
	aim := w.aims[k]
	if width, ok := halfWidth(w.values[k], aim.p); ok && width <= aim.width {
		w.said[k] = fmt.Sprintf("%s within %.3g %% after %d answers", aim.figure(), 100*width, n)
	}
}

// halfWidth is half the width of a percentile's interval, as a share of its value.
func halfWidth(values []timed, p int) (width float64, ok bool) {
	low, high := interval95(values, p)
	if low == 0 || high == 0 {
		return 0, false
	}
	sorted := make([]int64, len(values))
	for i, v := range values {
		sorted[i] = v.value
	}
	slices.Sort(sorted)
	value := sorted[stats.Rank(int64(len(sorted)), p)-1]
	return float64(high-low) / 2 / float64(value), true
}

// interval95 is the interval of a percentile of values that are above 0; an end
// that is missing is 0. It is the one place where a watch and internal/stats meet:
// values are in the order of their due times, for intervals that ask for that.
func interval95(values []timed, p int) (low, high int64) {
	slices.SortFunc(values, func(a, b timed) int { return cmp.Compare(a.due, b.due) })
	sorted, series := make([]int64, len(values)), make([]float32, len(values))
	for i, v := range values {
		sorted[i], series[i] = v.value, float32(v.value)
	}
	n := len(values)
	first, last := stats.OrderInterval(int64(n), p, float64(n)/stats.TauOf(series, stats.UpperTail, false).V)
	slices.Sort(sorted)
	if first > 0 {
		low = sorted[first-1]
	}
	if last > 0 {
		high = sorted[last-1]
	}
	return low, high
}
