package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fermata/deadline"
	"fermata/internal/stats"
	"fermata/recording"
)

// From where a warning is worth its line; docs/metrics.md has the catalogue.
const (
	failedOver     = 0.5  // share of requests: no measurement
	bunchedOver    = 1.05 // tokens an event
	promptOver     = 30   // thousandths between intended and reported, at the median …
	promptFrom     = 256  // … of prompts at least this long
	boundShare     = 10   // of the median gap
	p99ClosedFrom  = 368  // requests from which an interval of p99 has an upper end
	mostSaturated  = 0.97 // ratio of the load to saturation from which on no run is long enough
	maxInterrupted = 200  // characters of a reason that are repeated
)

// remarks collects what warnings are made of, over measured requests.
type remarks struct {
	opt                      *Options
	notes                    map[string]int64
	differ, reported, came   int64 // requests; tokens of those
	prompt                   *stats.Ints
	short, intended, shorter int64 // answers, those with an intention, tokens missing
	outside                  int64 // good answers to prompts that the deadlines are not valid for
}

func newRemarks(opt Options) *remarks {
	return &remarks{opt: &opt, notes: map[string]int64{}, prompt: stats.NewInts(opt.keep(keepRequests))}
}

func (m *remarks) see(a *answer) {
	t := a.t
	for i, n := range t.Notes {
		if !slices.Contains(t.Notes[:i], n) {
			m.notes[n]++
		}
	}
	if t.ArrivalSource == recording.ArrivalShared && !slices.Contains(t.Notes, recording.NoteUsageShared) {
		m.notes[recording.NoteUsageShared]++
	}
	if said := t.Output.Reported.Or(a.used.V); a.good && int64(said) != int64(len(a.times)) {
		m.differ++
		m.reported += int64(said)
		m.came += int64(len(a.times))
	}
	if a.good && a.outside {
		m.outside++
	}
	p := t.Prompt
	if p.Intended.OK && p.Reported.OK && p.Intended.V >= promptFrom {
		off := int64(p.Reported.V) - int64(p.Intended.V)
		m.prompt.Add(max(off, -off) * 1000 / int64(p.Intended.V))
	}
	if t.Outcome == recording.OK && t.Output.Intended.OK && t.Output.Intended.V > 0 {
		m.intended++
		if lack := int64(t.Output.Intended.V) - int64(a.used.V); lack > 0 {
			m.short++
			m.shorter += lack
		}
	}
}

// warnings is the catalogue in order of weight.
func (m *remarks) warnings(r *Result, y *tally, i *instrument, byFailures bool) {
	w := &list{}
	m.failures(w, r, y, byFailures)
	m.checks(w, r.Checks)
	if d := r.Load.Drift; d != nil && d.Unsteady {
		w.add("drift", drifted(d), "A longer run would have had longer waits: percentiles would tell how long it was, so that growth is told instead. Offer less.")
	} else if y.backlog() {
		w.add("backlog", fmt.Sprintf("requests came faster than they were answered: %d were under way in the middle of the measured phase, %d at its end", y.atHalf, y.atEnd),
			"Either the server cannot keep up, or the run was too short for it to reach its stride; latencies then depend on how long the run was. Offer less, or measure for longer and see whether they stay.")
	}
	m.deadlines(w, r)
	m.counts(w, r)
	m.stream(w)
	m.lengths(w)
	i.warnings(w, r)
	m.precision(w, r)
	w.cost(r)
	if d := r.DataSet; d != nil && d.Rounds > 0 {
		w.add("data_repeated", fmt.Sprintf("the data set of %d rows was started over %d times: prompts were asked again", d.Rows, d.Rounds),
			"A prefix cache may answer what it has seen. Give a longer data set, or --once.")
	}
	if d := r.DataSet; d != nil && d.Unreadable > 0 {
		w.add("data_skipped", fmt.Sprintf("%d rows of the data set could not be read and were skipped; the first: %s", d.Unreadable, d.FirstUnreadable),
			"What was asked is not the whole file. Mend those rows, or see that they do not matter.")
	}
	if i.waiting > 0 {
		w.add("waited", fmt.Sprintf("max_in_flight held requests back, up to %d at once", i.waiting),
			"Their latencies still count from the due time, but the server saw a gentler load than the schedule. Raise the limit to see what the schedule would do.")
	}
	r.Warnings = w.all
}

type list struct{ all []Warning }

func (l *list) add(code, text, help string) {
	l.all = append(l.all, Warning{Code: code, Text: text, Help: help})
}

func (m *remarks) failures(w *list, r *Result, y *tally, byFailures bool) {
	failed := y.failedRequests()
	// What a user cuts off says nothing about the server.
	stopped := r.Run.Interrupted != "" && !byFailures
	own := failed
	if stopped {
		own -= y.cutByUser()
	}
	if y.measured == 0 && byFailures {
		w.add("not_a_measurement", "This is not a measurement: too many requests failed before the measured phase began",
			"Every row of requests.parquet says how its request ended. Try one by hand, and compare the URL, the model's name and the key.")
		return
	}
	if byFailures || float64(own) > failedOver*float64(y.measured) {
		w.add("not_a_measurement", fmt.Sprintf("This is not a measurement of the server's speed: %d of %d requests failed (%s)", failed, y.measured, classes(r.Failures)),
			"The figures describe the few that came through. Find out why requests fail first: the failures list says at which step, with the first error of each kind.")
	}
	if y.outcomes[string(recording.OK)] == 0 && (!stopped || own > 0) {
		if y.measured == 0 {
			w.add("no_success", "no request was due in the measured phase", "Measure for longer, or offer more.")
			return
		}
		w.add("no_success", fmt.Sprintf("none of %d measured requests succeeded", y.measured),
			"There is nothing to judge. Try one request by hand, and compare the URL, the model's name and the key.")
	}
	if failed > 0 {
		w.add("failures", fmt.Sprintf("%d of %d requests failed: %s", failed, y.measured, classes(r.Failures)),
			"They count against every objective and as fluidity 0; distributions cover the requests that have the value and say how many are missing.")
	}
	if y.noRoom > 0 {
		w.add("no_room", fmt.Sprintf("%d of %d requests were not sent: %s", y.noRoom, y.measured, y.noRoomWhy),
			"That is a limit of this machine and says nothing about the server, which saw a gentler load than was asked for.")
	}
	if n := y.outcomes[truncated]; n > 0 {
		w.add("truncated", fmt.Sprintf("%d answers were cut by their length limit in a run that expects answers to end by themselves", n),
			"They count as failures. Raise the limit, or drop `expect: stop` if the length is the plan.")
	}
	if s := r.Run.Interrupted; s != "" {
		if len(s) > maxInterrupted {
			s = s[:maxInterrupted]
		}
		w.add("interrupted", "the run was cut short: "+s,
			"Requests cut off at the end count as failures (truncated_by_us, not_sent, incomplete), and a short run has wide intervals.")
	}
	if l := r.Load; l.Retried > 0 {
		w.add("retried", fmt.Sprintf("%d of %d requests were tried again: %d earlier tries are not judged, and each request counts from its first due time to the end of its last try", l.Retried, y.measured, l.EarlierTries),
			"Retries hide failures. Column outcome of requests.parquet says what the earlier tries met (the rows that another try follows).")
	}
}

func (m *remarks) deadlines(w *list, r *Result) {
	for _, v := range r.SLO {
		if text := disputed(v); text != "" {
			w.add("verdict_not_established", fmt.Sprintf("the verdict on %q is not established: %s", v.Objective, text),
				"It hangs on how well the curve of first-token deadlines is known, or on the slack that was chosen. Measure the curve more closely, or state the objective with the slack it needs; --judge point takes the curve as it is.")
		}
	}
	d := m.opt.Deadlines
	if d == nil {
		return
	}
	if from, to, _ := d.Range(); m.outside > 0 {
		w.add("deadline_range", fmt.Sprintf("%d answers have no fluidity with the first token: their prompts are outside the %d to %d tokens that %s is valid for", m.outside, from, to, d.Text()),
			"Deadlines are not guessed beyond what was measured. Measure the curve at such lengths, or keep prompts within them.")
	}
	for _, flag := range d.Flags() {
		why, help := deadline.Words(flag)
		w.add("deadline_curve", fmt.Sprintf("the curve of first-token deadlines is flagged %s: %s", flag, why), help)
	}
}

// disputed says which other deadlines lead to another verdict than the one as it
// stands, which is the first; empty where none does.
func disputed(v Verdict) string {
	var others []string
	for _, s := range v.Views {
		if s.Verdict == v.Views[0].Verdict {
			continue
		}
		name := "with the curve's " + s.Edge + " edge"
		if s.Edge == string(deadline.EdgeFit) {
			name = "with a slack of " + human(float64(s.SlackNs))
		}
		others = append(others, s.Verdict+" "+name)
	}
	if len(others) == 0 {
		return ""
	}
	return v.Views[0].Verdict + " as it stands, but " + strings.Join(others, ", ")
}

func (m *remarks) checks(w *list, c *Checks) {
	if c == nil {
		return
	}
	kind := ""
	if c.Kind != "" {
		kind = " (" + c.Kind + ")"
	}
	if c.Failed > 0 {
		w.add("check_failed", fmt.Sprintf("%d of %d answers failed their check%s; the first is request %d: %s", c.Failed, c.Failed+c.Passed, kind, c.Example.Index, c.Example.Detail),
			"They are no goodput, and their times count like those of other answers. Column check_detail of requests.parquet has the finding for each; --keep-text keeps what they said.")
	}
	if c.Unchecked > 0 {
		w.add("unchecked", fmt.Sprintf("%d good answers were not checked%s: the run was cut first", c.Unchecked, kind),
			"They are no goodput. A check that takes longer than the answers come needs a longer wait at the end, or a faster command.")
	}
}

// classes names the kinds of failure, the most frequent first.
func classes(fs []Failure) string {
	var parts []string
	for i, f := range fs {
		if i == 3 {
			parts = append(parts, "…")
			break
		}
		s := fmt.Sprintf("%d %s", f.Count, f.Outcome)
		if f.HTTPStatus != 0 && f.HTTPStatus != 200 {
			s += fmt.Sprintf(" %d", f.HTTPStatus)
		}
		if f.FailedAt != "" {
			s += " at " + f.FailedAt
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func (m *remarks) counts(w *list, r *Result) {
	if m.differ > 0 {
		w.add("usage_differs", fmt.Sprintf("in %d answers the count in use differs from the tokens that arrived: %d reported, %d arrived", m.differ, m.reported, m.came),
			"TPOT, tokens a second, normalized latency and system throughput use the reported count; gaps, fluidity, stalls and token pace use arrivals. Hidden reasoning, merged tokens or a wrong usage are the usual causes.")
	}
	if n := m.notes[recording.NoteUsageShared]; n > 0 {
		w.add("usage_shared", fmt.Sprintf("in %d answers the server reported more tokens than there were events; the surplus was shared out by bytes of text", n),
			"Which event brought the extra tokens is an estimate: times are exact, gaps within an event are 0. Ask the server for token ids or log probabilities to know.")
	}
	if d := r.Metrics.TokensPerEvent; d != nil && d.Mean != nil && *d.Mean > bunchedOver {
		w.add("bunched", fmt.Sprintf("tokens came in bunches, %.3g an event on average", *d.Mean),
			"The median of tbt may be 0 and says little then: read tbt_event, token_pace and stalls. The server, or a proxy in between, merges tokens.")
	}
}

func (m *remarks) stream(w *list) {
	for _, n := range []struct{ code, text, help string }{
		{recording.NoteNoDone, "%d streams ended without their end marker", "They count as good because a finish reason came; a server should send [DONE]."},
		{recording.NoteGzip, "%d answers came compressed although identity was asked for", "Compression holds tokens back until a block is full. Look for a proxy that compresses, and switch it off for event streams."},
		{recording.NoteManyChoices, "%d answers had more than one choice; the first was judged", "Ask for one choice: usage covers all of them, and so do the server's costs."},
	} {
		if count := m.notes[n.code]; count > 0 {
			w.add(n.code, fmt.Sprintf(n.text, count), n.help)
		}
	}
}

func (m *remarks) lengths(w *list) {
	if n := m.prompt.N(); n > 0 {
		// Thousandths are few enough to be counted one by one: no second pass.
		m.prompt.Seek(stats.Rank(n, 500))
		if off, ok := m.prompt.At(stats.Rank(n, 500)); ok && off > promptOver {
			w.add("prompt_length", fmt.Sprintf("prompts were %.1f %% longer or shorter than intended at the median, by the server's own count", float64(off)/10),
				"First-token deadlines use the reported length. Calibrate the prompt generator against this model's tokenizer.")
		}
	}
	if m.short > 0 {
		w.add("output_length", fmt.Sprintf("%d of %d answers were shorter than intended, by %.4g tokens on average", m.short, m.intended, float64(m.shorter)/float64(m.short)),
			"The server did less work than planned, so compare throughput with care. Where the server knows ignore_eos or min_tokens, ask for them.")
	}
}

func (m *remarks) precision(w *list, r *Result) {
	width, known := r.Health.BoundWidth.of(0.5)
	gap, ok := r.Metrics.TBTEvent.of(0.5)
	if known && ok && width > gap/boundShare {
		w.add("stamp_bound", fmt.Sprintf("the stamps of arrivals may be late by %s at the median, more than a tenth of the median gap of %s", human(width), human(gap)),
			"Single gaps are only known within that bound; stamp_low and stamp_high of each percentile say how far it matters. Sums such as TPOT and stalls suffer little.")
	}
	n := r.Load.Measured
	if n > 0 && n < p99ClosedFrom {
		text := fmt.Sprintf("%d measured requests are too few for a p99 of requests to have an upper end", n)
		if n < stats.Correlated {
			text = fmt.Sprintf("%d measured requests are too few for any percentile of requests", n)
		}
		w.add("few_requests", text, fmt.Sprintf("A percentile needs %d requests to count, a p99 with two ends %d, and more where waits come in bursts.", stats.Correlated, p99ClosedFrom))
	}
	for _, p := range r.Load.Precision {
		if p.Met {
			continue
		}
		seen := "its interval has an open end"
		if p.Reached != nil {
			seen = fmt.Sprintf("it is known within %.3g %%", 100**p.Reached)
		}
		w.add("precision", fmt.Sprintf("%s was to be known within %.3g %%, and of %d values %s", p.Statistic, 100*p.Wanted, p.N, seen),
			"Allow more requests or more time, or ask for less. Where the run did stop for it, the last answers under way widened the interval again.")
	}
	m.dependence(w, r)
}

// dependence says on what intervals rest.
func (m *remarks) dependence(w *list, r *Result) {
	if of := r.Load.OfSaturation; of != nil && *of >= mostSaturated {
		w.add("saturated", fmt.Sprintf("%.4g requests/s were offered, %.3g of the saturation of %.4g requests/s", *r.Load.OfferedRPS, *of, *r.Load.SaturationRPS),
			"So near to saturation waits hardly end, or never: no run is long enough for a percentile. Offer less.")
	}
	if codes := m.opt.Doubts; len(codes) > 0 && m.opt.SaturationRPS > 0 {
		w.add("saturation_doubtful", fmt.Sprintf("the saturation of %.4g requests/s is not relied on, and counts as unknown: %s", m.opt.SaturationRPS, doubtsText(codes)),
			"Search for the capacity again until its result has none of these: with --precision 5%, from a machine that keeps up. Or give --saturation a rate that you know.")
	}
	if !m.assumed(r) {
		return
	}
	if m.opt.ClosedLoop {
		w.add("assumed_intervals", "intervals rest on how alike the waits in a row were in this run (batch means): a closed loop has no load to compare with saturation",
			"Where a run is too short to have seen a burst, true intervals are wider. Quantiles judged this way have the status assumed.")
		return
	}
	w.add("assumed_intervals", "intervals rest on how alike the waits in a row were in this run: how near the load is to saturation is not known",
		"Where a run is too short to have seen a burst, true intervals are wider, near saturation much wider: docs/evidence/coverage.md has how often. Give --saturation if it is known, or find it with --probe-saturation. Quantiles judged this way have the status assumed.")
}

// doubts are why the saturation in a capacity result is not relied on.
var doubts = map[string]string{
	"rough":              "its search was a first look (rough)",
	"client_bound":       "whoever asked was the bottleneck of its search, not the server (client_bound)",
	"unsteady":           "the rate that its search held has no steady state (unsteady)",
	"outside":            "its search had not settled (outside)",
	"saturation_guessed": "its search found it by doubling the rate until requests failed (saturation_guessed)",
}

func doubtsText(codes []string) string {
	var all []string
	for _, code := range codes {
		all = append(all, cmp.Or(doubts[code], code))
	}
	return strings.Join(all, "; ")
}

// drifted says how things grew.
func drifted(d *Drift) string {
	s := fmt.Sprintf("the run has no steady state: each request found %.2g more under way than the one before, %.4g on average in the first half and %.4g in the second", d.PerRequest, d.FirstHalf, d.SecondHalf)
	if d.PerS != nil {
		s += fmt.Sprintf("; that is %.3g more a second", *d.PerS)
	}
	if d.TTFTNsPerS != nil {
		s += fmt.Sprintf(", and the time to first token grew by %s a second", human(*d.TTFTNsPerS))
	}
	return s
}

// assumed says whether some percentile of the main figures rests on independence.
func (m *remarks) assumed(r *Result) bool {
	for _, d := range []*Dist{r.Metrics.TTFTDue, r.Metrics.TBT, r.Metrics.TPOT, r.Metrics.E2E} {
		if d == nil {
			continue
		}
		for _, q := range d.Quantiles {
			if q.Status == "assumed" {
				return true
			}
		}
	}
	return false
}
