package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"fermata/internal/chart"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/recording"
)

// singles is the picture of one request at a time, with every request that can be
// chosen.
type singles struct {
	Picture picture
	Data    template.HTML // JSON in an element that no browser runs
	Runs    []string
	Gaps    []singleGap
	Count   int
}

// A singleGap is a pace at which answers can be played back.
type singleGap struct {
	Ns   int64
	Name string
	Main bool
}

// The data of the script: times in tenths of a millisecond, which is what a screen
// can show of minutes.
type singleRun struct {
	Name    string         `json:"name"`
	Worst   *int64         `json:"worst,omitempty"`
	Typical *int64         `json:"typical,omitempty"`
	Latest  *int64         `json:"latest,omitempty"`
	Streams []singleStream `json:"streams"`
}

type singleStream struct {
	Index    int64   `json:"i"`
	Outcome  string  `json:"o"`
	Prompt   int32   `json:"p,omitempty"`
	Deadline *int64  `json:"d,omitempty"` // of the first token, since due
	Gaps     []int64 `json:"g"`           // of arrivals; the first since due
	Tokens   []int32 `json:"k,omitempty"` // of each arrival; one where it is left out
}

const tenthMs = 100_000 // ns

func tenths(ns int64) int64 { return (ns + tenthMs/2) / tenthMs }

func newSingleStream(s *metrics.Stream) singleStream {
	one := singleStream{Index: s.Index, Outcome: term.Plain(s.Outcome), Prompt: s.Prompt.V, Gaps: []int64{}}
	if s.Deadline.OK {
		d := tenths(s.Deadline.V)
		one.Deadline = &d
	}
	last, single := int64(0), true
	for i, at := range s.At {
		now := tenths(at)
		one.Gaps = append(one.Gaps, now-last)
		last = now
		single = single && s.Tokens[i] == 1
	}
	if !single {
		one.Tokens = s.Tokens
	}
	return one
}

// singles are the requests that can be looked at one by one; nil without any.
func (h *htmlPage) singles() *singles {
	s := &singles{}
	var runs []singleRun
	first := -1
	for i := range h.runs {
		r := singleRun{Name: h.titles[i], Streams: []singleStream{}}
		if p := h.runs[i].Portrait; p != nil {
			for k := range p.Streams {
				r.Streams = append(r.Streams, newSingleStream(&p.Streams[k]))
			}
			r.Worst, r.Typical, r.Latest = pointer(p.Worst), pointer(p.Typical), pointer(p.Latest)
			s.Count += len(p.Streams)
			if first < 0 && p.Worst.OK {
				first = i
			}
		}
		runs = append(runs, r)
		s.Runs = append(s.Runs, h.titles[i])
	}
	if first < 0 {
		return nil
	}
	// What shows most by itself: the longest silence of all runs.
	longest := int64(-1)
	for i := range h.runs {
		if p := h.runs[i].Portrait; p != nil && p.Worst.OK {
			if one := streamOf(p, p.Worst.V); one != nil && one.Silence.Or(0) > longest {
				longest, first = one.Silence.Or(0), i
			}
		}
	}
	data, err := json.Marshal(struct {
		First int         `json:"first"`
		Runs  []singleRun `json:"runs"`
	}{first, runs})
	if err != nil {
		return nil // numbers and texts always encode
	}
	// Marshal writes <, > and & as escapes, so that no text ends the element.
	s.Data = template.HTML(`<script type="application/json" id="requests">` + string(data) + `</script>`)
	r := h.runs[first].Result
	gaps := targetGaps(r)
	for k, g := range gaps {
		s.Gaps = append(s.Gaps, singleGap{g, "deadlines every " + term.Bound(g), k == len(gaps)/2})
	}
	if r.Stalls != nil && r.Stalls.PaceNs > 0 {
		s.Gaps = append(s.Gaps, singleGap{r.Stalls.PaceNs, "reading at " + paceText(r.Stalls.PaceNs), false})
	}
	gap := int64(50_000_000)
	for _, g := range s.Gaps {
		if g.Main {
			gap = g.Ns
		}
	}
	s.Picture = h.oneRequest(first, gap)
	return s
}

func pointer(m recording.Maybe[int64]) *int64 {
	if !m.OK {
		return nil
	}
	return &m.V
}

func streamOf(p *metrics.Portrait, index int64) *metrics.Stream {
	for i := range p.Streams {
		if p.Streams[i].Index == index {
			return &p.Streams[i]
		}
	}
	return nil
}

// oneRequest is the still picture of the longest silence: what the script draws for
// any other request.
func (h *htmlPage) oneRequest(run int, gap int64) picture {
	portrait := h.runs[run].Portrait
	s := streamOf(portrait, portrait.Worst.V)
	p := picture{
		ID: "request", Title: "One request, token by token", Hover: "x", Wide: true,
		Lead:    "What a reader gets: the thick line is tokens that have arrived, the thin one where they were due. A flat stretch is a silence; where the deadlines reach the line, the screen stands still.",
		columns: []string{"token", "arrived (ms)", "due (ms)", "late (ms)"},
		Legend:  []legendKey{{"s0", "arrived"}, {"due", "due"}, {"stall", "waiting for a token"}},
	}
	arrived, due := chart.Line{Class: "thick s0", Step: true}, chart.Line{Class: "due"}
	plot := chart.Plot{Height: 320, X: chart.Axis{Label: "since the request was due", Min: 0, Format: timeTick}, Y: chart.Axis{Label: "tokens", Min: 0, Format: countTick, Whole: true}}
	n, deadline := 0, int64(-1)
	if s.Deadline.OK {
		deadline = s.Deadline.V
	}
	arrived.X, arrived.Y = append(arrived.X, 0), append(arrived.Y, 0)
	for i, at := range s.At {
		for range s.Tokens[i] {
			n++
			if deadline < 0 {
				deadline = at // the first token, where nothing says when it is due
			}
			late := max(0, at-deadline)
			if late > 0 {
				plot.Marks = append(plot.Marks, chart.Shade{Class: "stall", From: float64(deadline), To: float64(at)})
			}
			due.X, due.Y = append(due.X, float64(deadline)), append(due.Y, float64(n))
			p.row(0, float64(at), float64(n), fmt.Sprint(n), inMs(float64(at)), inMs(float64(deadline)), inMs(float64(late)))
			deadline = max(at, deadline) + gap
		}
		arrived.X, arrived.Y = append(arrived.X, float64(at)), append(arrived.Y, float64(n))
	}
	if len(s.At) > 0 {
		plot.X.Max = chart.Ceil(float64(s.At[len(s.At)-1]))
	}
	plot.Y.Max = chart.Ceil(float64(n))
	plot.Marks = append(plot.Marks, due, arrived)
	p.Name = fmt.Sprintf("Request %d of %s: %d tokens, longest silence %s", s.Index, h.titles[run], n, term.Duration(float64(s.Silence.Or(0))))
	p.draw(plot)
	return p
}

// rasterRows is how many requests a raster shows at most.
const rasterRows = 300

// rasterSection has a row a request, a picture a run.
func (h *htmlPage) rasterSection() section {
	s := section{ID: "requests", Title: "All requests over the run"}
	h.each(&s, h.raster)
	if p := h.againstPrompt(); p != nil {
		s.Pictures = append(s.Pictures, *p)
	}
	return s
}

// thinned is every so manieth life, so that there are no more than most.
func thinned(lives []metrics.Life, most int) []metrics.Life {
	if len(lives) <= most {
		return lives
	}
	var all []metrics.Life
	for k := range most {
		all = append(all, lives[k*len(lives)/most])
	}
	return all
}

func (h *htmlPage) raster(i int) *picture {
	portrait := h.runs[i].Portrait
	if portrait == nil || len(portrait.Lives) == 0 {
		return nil
	}
	lives := thinned(portrait.Lives, rasterRows)
	title := "A row a request"
	if len(h.runs) > 1 {
		title = h.titles[i]
	}
	p := &picture{
		ID: fmt.Sprintf("raster-%d", i), Title: title, Hover: "y", Wide: true,
		Lead:    "By due time, from the top. Columns of the same colour are moments in which everybody waits at once.",
		columns: []string{"request", "outcome", "due (s)", "first token (s)", "last token (s)", "prompt tokens", "output tokens", "longest silence (ms)", "stalls shown"},
	}
	if len(lives) < int(portrait.Requests) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s of %s requests are shown.", term.Count(int64(len(lives))), term.Count(portrait.Requests)))
	}
	thick := min(7, 480/float64(len(lives)))
	r := newRows(thick * 0.86)
	end := 0.0
	for k := range lives {
		l := &lives[k]
		end = max(end, r.add(l, float64(k)))
		p.row(0, float64(l.Due), float64(k),
			fmt.Sprint(l.Index), term.Plain(l.Outcome), inS(float64(l.Due)),
			maybeCell(l.First, func(v int64) string { return inS(float64(v)) }), maybeCell(l.Last, func(v int64) string { return inS(float64(v)) }),
			maybeCell(l.Prompt, func(v int32) string { return fmt.Sprint(v) }), maybeCell(l.Output, func(v int32) string { return fmt.Sprint(v) }),
			maybeCell(l.Silence, func(v int64) string { return inMs(float64(v)) }), fmt.Sprint(len(l.Stalls)))
	}
	plot := chart.Plot{
		Height: max(160, thick*float64(len(lives))+60),
		X:      sinceStart(max(end, 1)),
		Y:      chart.Axis{Min: float64(len(lives)) - 0.5, Max: -0.5, Ticks: []chart.Tick{}},
	}
	plot.Y.Min, plot.Y.Max = -0.5, float64(len(lives))-0.5
	for k := range p.rows { // the first request is on top
		p.rows[k].y = float64(len(lives)-1) - p.rows[k].y
	}
	r.flip(float64(len(lives) - 1))
	plot.Marks = append(plot.Marks, phases(h.runs[i].Result, plot.X.Max)...)
	if slices.ContainsFunc(lives, func(l metrics.Life) bool { return l.Estimated }) {
		p.Notes = append(p.Notes, "Queue and prefill are estimated, by a measured prefill curve.")
	}
	var marks []chart.Mark
	marks, p.Legend = r.marks()
	plot.Marks = append(plot.Marks, marks...)
	p.Name = fmt.Sprintf("%s: %s requests over %s, %s failed", title, term.Count(int64(len(lives))), term.Duration(end), term.Count(int64(len(r.failed.X))))
	if n := len(r.cut.X); n > 0 {
		p.Name += fmt.Sprintf(", %s %s", term.Count(int64(n)), cutByUs)
	}
	p.draw(plot)
	return p
}

// rows are what a raster is made of.
type rows struct {
	wait, queue, prefill, decode, stall chart.Spans
	failed, cut                         chart.Dots
}

// cutByUs are requests that were given up because the run was at its end: the server
// failed none of them.
const cutByUs = "cut by us at the end"

func newRows(thick float64) *rows {
	of := func(class string) chart.Spans { return chart.Spans{Class: class, Thickness: thick} }
	ends := func(class string) chart.Dots {
		return chart.Dots{Class: class, Radius: max(1, min(2.5, thick/2))}
	}
	return &rows{wait: of("wait"), queue: of("queue"), prefill: of("prefill"), decode: of("decode"), stall: of("stall"), failed: ends("failed"), cut: ends("cut")}
}

func span(s *chart.Spans, y, from, to float64) {
	if to > from {
		s.Y, s.From, s.To = append(s.Y, y), append(s.From, from), append(s.To, to)
	}
}

// add puts a request's life into row y and says when it ended.
func (r *rows) add(l *metrics.Life, y float64) float64 {
	due, end := float64(l.Due), float64(l.Due)
	if l.End.OK {
		end = float64(l.End.V)
	}
	switch {
	case !l.First.OK:
		span(&r.wait, y, due, end)
	case l.Scheduled.OK:
		span(&r.queue, y, due, float64(l.Scheduled.V))
		span(&r.prefill, y, float64(l.Scheduled.V), float64(l.First.V))
	default:
		span(&r.wait, y, due, float64(l.First.V))
	}
	if l.First.OK {
		span(&r.decode, y, float64(l.First.V), float64(l.Last.V))
		end = max(end, float64(l.Last.V))
	}
	for _, s := range l.Stalls {
		span(&r.stall, y, float64(s.From), float64(s.To))
	}
	switch {
	case l.Stopped:
		r.cut.X, r.cut.Y = append(r.cut.X, end), append(r.cut.Y, y)
	case !l.Good:
		r.failed.X, r.failed.Y = append(r.failed.X, end), append(r.failed.Y, y)
	}
	return end
}

func (r *rows) flip(most float64) {
	for _, ys := range [][]float64{r.wait.Y, r.queue.Y, r.prefill.Y, r.decode.Y, r.stall.Y, r.failed.Y, r.cut.Y} {
		for k := range ys {
			ys[k] = most - ys[k]
		}
	}
}

func (r *rows) marks() ([]chart.Mark, []legendKey) {
	var marks []chart.Mark
	var keys []legendKey
	for _, one := range []struct {
		spans *chart.Spans
		text  string
	}{
		{&r.wait, "waiting for the first token"},
		{&r.queue, "queued"},
		{&r.prefill, "prefill"},
		{&r.decode, "decode"},
		{&r.stall, "stalled at the reading pace"},
	} {
		if len(one.spans.Y) > 0 {
			marks = append(marks, *one.spans)
			keys = append(keys, legendKey{one.spans.Class, one.text})
		}
	}
	for _, one := range []struct {
		dots chart.Dots
		text string
	}{{r.failed, "failed"}, {r.cut, cutByUs}} {
		if len(one.dots.X) > 0 {
			marks = append(marks, one.dots)
			keys = append(keys, legendKey{one.dots.Class, one.text})
		}
	}
	return marks, keys
}

// againstPrompt is the time to first token by the length of the prompt, with the
// deadline curve where there is one.
func (h *htmlPage) againstPrompt() *picture {
	p := &picture{
		ID: "ttft-prompt", Title: "Time to first token against the prompt", Hover: "xy", Wide: true,
		Lead:    "A cloud far above the shortest time at its length is waiting, not prefill.",
		columns: []string{"run", "request", "prompt tokens", "TTFT (ms)", "deadline (ms)"},
	}
	plot := chart.Plot{Height: 320, X: chart.Axis{Label: "prompt tokens", Format: countTick, Whole: true}, Y: logTimes()}
	shortest, longest, least, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	deadline := map[float64]float64{}
	for i := range h.runs {
		if h.runs[i].Portrait == nil {
			continue
		}
		dots := chart.Dots{Class: seriesClass(i)}
		for k := range h.runs[i].Portrait.Lives {
			l := &h.runs[i].Portrait.Lives[k]
			if l.Phase != recording.Measured && l.Phase != "" || !l.First.OK || !l.Prompt.OK {
				continue
			}
			x, y := float64(l.Prompt.V), max(float64(l.First.V-l.Due), 1)
			dots.X, dots.Y = append(dots.X, x), append(dots.Y, y)
			shortest, longest, least, most = min(shortest, x), max(longest, x), min(least, y), max(most, y)
			if l.Deadline.OK {
				deadline[x] = float64(l.Deadline.V)
				least, most = min(least, float64(l.Deadline.V)), max(most, float64(l.Deadline.V))
			}
			p.row(i, x, y, h.names[i], fmt.Sprint(l.Index), fmt.Sprint(l.Prompt.V), inMs(y), maybeCell(l.Deadline, func(v int64) string { return inMs(float64(v)) }))
		}
		plot.Marks = append(plot.Marks, dots)
	}
	if len(p.rows) == 0 {
		return nil
	}
	p.Legend = h.keysOf(func(r *Portrayed) bool { return r.Portrait != nil })
	if len(deadline) > 0 {
		plot.Marks = append(plot.Marks, curveThrough(deadline))
		p.Legend = append(p.Legend, legendKey{"due", "deadline of the first token"})
	}
	plot.X.Min, plot.X.Max = max(0, shortest-(longest-shortest)*0.05-1), longest+(longest-shortest)*0.05+1
	if longest > 30*max(shortest, 1) {
		plot.X.Scale = chart.Log
		plot.X.Min, plot.X.Max = bounds(max(shortest, 1), longest)
	}
	plot.Y.Min, plot.Y.Max = bounds(least, most)
	p.Name = fmt.Sprintf("Time to first token against prompt tokens, %d requests", len(p.rows))
	p.draw(plot)
	return p
}

// curveThrough joins points by their x.
func curveThrough(points map[float64]float64) chart.Line {
	line := chart.Line{Class: "due", X: slices.Sorted(maps.Keys(points))}
	for _, x := range line.X {
		line.Y = append(line.Y, points[x])
	}
	return line
}

// pictures are all of the page, section by section.
func (h *htmlPage) pictures() {
	h.Sections = filled(
		h.rasterSection(), h.distributionSection(), h.fluiditySection(), h.loadSection(), h.bunchSection(), h.frontierSection(), h.boxSection(),
	)
}
