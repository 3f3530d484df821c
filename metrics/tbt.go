package metrics

import (
	"fermata/recording"
)

// exactWithinNs is the largest bound on a stamp's error at which the stamp
// counts as exact in health.exact_share.
const exactWithinNs = 1_000_000

// gaps judges the time between tokens and between arrivals, over all measured
// requests as far as they came, and how tokens were bunched.
type gaps struct {
	tbt, event, longest         *series // tbt is event itself as long as both are the same
	perEvent, perRead           *series
	width, wide                 *series // of the stamps' bounds, and of those that are not exact
	others, exact               int64   // arrivals before the last read of their answers, and of them those with exact stamps
	decode, sameEvent, sameRead int64   // tokens
	reads                       bool    // reads are known
	lo, hi                      []int64
}

func newGaps(opt Options) *gaps {
	pooled := func(s *series) *series { return s.pooled(opt) }
	g := &gaps{
		event:    pooled(newSeries(opt, "ns", lower).exceeding(opt).stamps()),
		longest:  newSeries(opt, "ns", lower).exceeding(opt).stamps(),
		perEvent: newSeries(opt, "tokens", neutral).many(opt),
		perRead:  newSeries(opt, "events", neutral).many(opt),
		width:    newSeries(opt, "ns", lower).many(opt).instrument(),
		wide:     newSeries(opt, "ns", lower).many(opt).instrument(),
	}
	g.tbt = g.event
	return g
}

// expects makes room for the values of that many arrivals.
func (g *gaps) expects(arrivals int64) {
	g.event.expects(arrivals)
	g.width.expects(arrivals)
}

func (g *gaps) see(a *answer) {
	d := a.t.DeltaNs
	if len(d) == 0 {
		return
	}
	if !a.single && g.tbt == g.event {
		g.tbt = g.event.clone()
	}
	g.event.all(d[1:])
	if g.tbt != g.event {
		g.tbt.all(a.gaps)
	}
	if a.stamps && !a.second {
		g.stampEnds(a)
	} else if v, ok := a.longestGap(); ok {
		g.longest.int(v)
	}
	g.bunches(a)
	if a.stamps {
		g.widths(a)
	}
}

// widths takes the bounds of the stamps. The end of a stream often follows an
// answer's last event at once, so that what came in the same read as that says
// nothing of the reader.
func (g *gaps) widths(a *answer) {
	e, read := a.t.StampErrorNs, a.t.Read
	end := len(e) - 1
	for len(read) == len(e) && end > 0 && read[end-1] == read[len(e)-1] {
		end--
	}
	g.width.all(e)
	g.width.stands(float64(e[0]))
	widest := int64(0)
	for i, v := range e {
		if i < end && !a.second {
			g.others++
			if v <= exactWithinNs {
				g.exact++
			}
		}
		if v > exactWithinNs {
			g.wide.run(v, 1)
			widest = max(widest, v)
		}
	}
	if widest > 0 && !a.second {
		g.wide.requests++
		g.wide.stands(float64(widest))
	}
}

// stampEnds puts ends to the gaps: with both stamps late by up to their bounds,
// a gap lies in [gap - its own bound, gap + the bound before].
func (g *gaps) stampEnds(a *answer) {
	d, e := a.t.DeltaNs, a.t.StampErrorNs
	g.lo, g.hi = g.lo[:0], g.hi[:0]
	var longest, longestLo, longestHi int64
	before := e[0]
	for i := 1; i < len(d); i++ {
		gap := d[i]
		lo, hi := max(0, gap-e[i]), gap+before
		before = e[i]
		g.lo, g.hi = append(g.lo, lo), append(g.hi, hi)
		longest, longestLo, longestHi = max(longest, gap), max(longestLo, lo), max(longestHi, hi)
	}
	g.event.low.AddAll(g.lo)
	g.event.high.AddAll(g.hi)
	if len(d) > 1 {
		g.longest.stamped(longest, longestLo, longestHi, true)
	}
	if g.tbt == g.event {
		return
	}
	if !a.single {
		g.tokenEnds(a)
	}
	g.tbt.low.AddAll(g.lo)
	g.tbt.high.AddAll(g.hi)
}

// tokenEnds is the same token by token: those of one arrival came together.
func (g *gaps) tokenEnds(a *answer) {
	g.lo, g.hi = g.lo[:0], g.hi[:0]
	if a.first < 0 {
		return
	}
	var at, before int64
	for i := a.first; i <= a.last; i++ {
		if i > a.first {
			at += a.t.DeltaNs[i]
		}
		k := a.t.Tokens[i]
		if k <= 0 {
			continue
		}
		if i > a.first {
			g.lo = append(g.lo, max(0, at-a.t.StampErrorNs[i]))
			g.hi = append(g.hi, at+before)
		}
		for ; k > 1; k-- {
			g.lo, g.hi = append(g.lo, 0), append(g.hi, 0)
		}
		at, before = 0, a.t.StampErrorNs[i]
	}
}

// bunches counts tokens an event, events a read, and decode tokens that came
// with the one before.
func (g *gaps) bunches(a *answer) {
	t := a.t
	if !a.second {
		g.decode += int64(max(0, len(a.times)-1))
	}
	if a.good && !a.second {
		g.perEvent.requests++
		g.perEvent.stands(float64(len(a.times)) / float64(len(t.Tokens)))
	}
	if a.single {
		if a.good {
			g.perEvent.run(1, int64(len(t.Tokens)))
		}
	} else {
		for _, k := range t.Tokens {
			if a.good {
				g.perEvent.run(int64(k), 1)
			}
			if k > 1 && !a.second {
				g.sameEvent += int64(k - 1)
			}
		}
	}
	if len(t.Read) == len(t.DeltaNs) {
		g.readsOf(a)
	}
}

func (g *gaps) readsOf(a *answer) {
	t := a.t
	g.reads = true
	if a.good && !a.second {
		g.perRead.requests++
	}
	if a.single && apart(t.Read) {
		if a.good {
			g.perRead.run(1, int64(len(t.Read)))
			g.perRead.stands(1)
		}
		return
	}
	read, events, alone, reads := t.Read[0]-1, int64(0), int64(0), 0
	token := int32(-1) // read of the token before
	var same int64
	for i, r := range t.Read {
		if r == read {
			events++
		} else {
			if events == 1 {
				alone++
			} else if events > 0 && a.good {
				g.perRead.run(events, 1)
			}
			read, events = r, 1
			reads++
		}
		if k := t.Tokens[i]; k > 0 {
			same += int64(k - 1)
			if i > a.first && r == token {
				same++
			}
			token = r
		}
	}
	if a.good {
		g.perRead.run(events, 1)
		g.perRead.run(1, alone)
		g.perRead.stands(float64(len(t.Read)) / float64(reads))
	}
	if !a.second {
		g.sameRead += same
	}
}

// apart says whether no two arrivals in a row came in the same read.
func apart(reads []int32) bool {
	for i := 1; i < len(reads); i++ {
		if reads[i] == reads[i-1] {
			return false
		}
	}
	return true
}

func (g *gaps) seek() recording.Columns {
	want := seekAll(g.tbt, g.event, g.longest)
	if g.perEvent.seek() != 0 {
		want |= recording.Times
	}
	if g.perRead.seek() != 0 {
		want |= recording.Times | recording.Reads
	}
	if seekAll(g.width, g.wide) != 0 {
		want |= recording.Times | recording.Errors
	}
	return want
}

func (g *gaps) result(r *Result, measured int64) {
	m := &r.Metrics
	m.TBT, m.TBTEvent, m.GapLongest = g.tbt.dist(measured), g.event.dist(measured), g.longest.dist(measured)
	m.TokensPerEvent, m.EventsPerRead = g.perEvent.dist(measured), g.perRead.dist(measured)
	if m.TBT != nil {
		r.Rates.TailTBT = perSecondOf(m.TBT, 0.99)
	}
	if g.decode > 0 {
		share := float64(g.sameEvent) / float64(g.decode)
		r.SameEventShare = &share
		if g.reads {
			share := float64(g.sameRead) / float64(g.decode)
			r.SameReadShare = &share
		}
	}
	r.Health.BoundWidth, r.Health.BoundedWidth = g.width.dist(measured), g.wide.dist(measured)
	if g.others > 0 {
		share := float64(g.exact) / float64(g.others)
		r.Health.ExactShare = &share
	}
}
