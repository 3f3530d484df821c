package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"fermata/internal/schema"
	"fermata/internal/term"
	"fermata/metrics"
)

// SelftestSchemaName is the schema that a Selftest names.
const SelftestSchemaName = "fermata.selftest/1"

// A Selftest is how good the instrument is on one machine.
type Selftest struct {
	Schema    string            `json:"schema"`
	Tool      metrics.Tool      `json:"tool"`
	Machine   Machine           `json:"machine"`
	Transport string            `json:"transport"`
	Quick     bool              `json:"quick"`
	Steps     []SelftestStep    `json:"steps"`
	Dispatch  *SelftestDispatch `json:"dispatch,omitempty"`

	Violations   int64    `json:"violations"`
	PassesLow    *float64 `json:"passes_events_per_s_low,omitempty"`
	PassesHigh   *float64 `json:"passes_events_per_s_high,omitempty"`
	HighestValid *float64 `json:"highest_valid_events_per_s,omitempty"`

	Verdict  SelftestVerdict   `json:"verdict"`
	Warnings []metrics.Warning `json:"warnings"`
}

// A Machine is where it was measured.
type Machine struct {
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel,omitempty"`
	Processor   string `json:"processor,omitempty"`
	Cores       int    `json:"cores"`
	ServerCores []int  `json:"server_cores,omitempty"`
	ClientCores []int  `json:"client_cores,omitempty"`
	Realtime    bool   `json:"server_realtime"`
}

// A Spread is a distribution of times in ns. A percentile is the value of rank
// ⌈np⌉.
type Spread struct {
	N    int64 `json:"n"`
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// A SelftestStep is one load.
type SelftestStep struct {
	Streams    int     `json:"streams"`
	PerStream  float64 `json:"events_per_s_per_stream"`
	Asked      float64 `json:"events_per_s_asked"`
	Sent       float64 `json:"events_per_s"`
	Events     int64   `json:"events"`
	Failed     int64   `json:"failed"`
	Void       bool    `json:"void"`
	Sender     Spread  `json:"sender_lateness_ns"`
	Error      Spread  `json:"error_ns"`
	ErrorExact *Spread `json:"error_exact_ns,omitempty"`
	ExactShare float64 `json:"exact_share"`
	Bound      Spread  `json:"bound_ns"`
	GapError   Spread  `json:"gap_error_ns"`
	TTFTError  Spread  `json:"ttft_error_ns"`
	Violations int64   `json:"violations"`
	Early      int64   `json:"early"`

	CPUPerEvent   *float64 `json:"cpu_per_event_ns,omitempty"`
	TimedPerEvent *float64 `json:"timed_cpu_per_event_ns,omitempty"`
	SetupCPU      *float64 `json:"setup_cpu_per_stream_ns,omitempty"`
	Memory        *float64 `json:"memory_per_stream_bytes,omitempty"`
	InFlight      float64  `json:"in_flight_mean"`
}

// A SelftestDispatch is how late requests of an open loop left.
type SelftestDispatch struct {
	Rate     float64 `json:"requests_per_s"`
	Realised float64 `json:"requests_per_s_realised"`
	CV       float64 `json:"gap_cv"`
	KS       float64 `json:"ks"`
	Root     float64 `json:"ks_root_n"`
	Lateness Spread  `json:"lateness_ns"`
	Wire     Spread  `json:"schedule_to_wire_ns"`
}

// A SelftestVerdict is what may be quoted from this machine.
type SelftestVerdict struct {
	Text    string `json:"text"`
	Streams int    `json:"streams"`
	ErrorNs *int64 `json:"error_ns,omitempty"`
}

func selftestTypes() map[string]string {
	return map[string]string{
		"Selftest":         "How good the instrument is on one machine: what it recorded, against a server that knows when it sent.",
		"Tool":             "What made the document.",
		"Machine":          "Where it was measured.",
		"Spread":           "A distribution of times in ns; a percentile is the value of rank ⌈np⌉.",
		"SelftestStep":     "One load: streams of chunked server-sent events, independent of each other, over loopback.",
		"SelftestDispatch": "How late the requests of a Poisson process left.",
		"SelftestVerdict":  "What may be quoted from this machine.",
		"Warning":          "What a careful reader must know.",
	}
}

func selftestKeys() map[string]string {
	return map[string]string{
		"Selftest.schema":                      "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Selftest.transport":                   "The transport that was tested: fast or compatible.",
		"Selftest.quick":                       "Fewer and shorter loads (--quick).",
		"Selftest.steps":                       "The loads, rising.",
		"Selftest.dispatch":                    "How late requests left. Absent where that was not tested.",
		"Selftest.violations":                  "Arrivals outside the bounds that their stamps state, of all loads that are not void. It must be 0.",
		"Selftest.passes_events_per_s_low":     "The highest load, in events a second, whose stamps' p99 error stayed under 1 ms before a higher one passed it. Absent where the lowest passed it.",
		"Selftest.passes_events_per_s_high":    "The load at which it passed 1 ms. Absent where no valid load did.",
		"Selftest.highest_valid_events_per_s":  "The highest load that was not void. Absent where all were.",
		"Machine.server_cores":                 "Processor cores that the server was kept to. Absent where the system has no such thing.",
		"Machine.client_cores":                 "Processor cores of the client.",
		"Machine.server_realtime":              "The server ran ahead of everything else (SCHED_RR).",
		"SelftestStep.events_per_s_asked":      "Streams × events a second and stream.",
		"SelftestStep.events_per_s":            "What the server really sent.",
		"SelftestStep.failed":                  "Requests that did not end well.",
		"SelftestStep.void":                    "The server's own lateness was 1 ms or more at p99: the load was not what it should have been.",
		"SelftestStep.sender_lateness_ns":      "Times of sending less the times that were due.",
		"SelftestStep.error_ns":                "Stamps less times of sending, of all arrivals; it contains the server's own way through the system, some µs.",
		"SelftestStep.error_exact_ns":          "The same of exact arrivals alone. Absent where there are none.",
		"SelftestStep.exact_share":             "Share of arrivals whose stamp the kernel gives exactly.",
		"SelftestStep.bound_ns":                "The bounds that the recording states on its stamps.",
		"SelftestStep.gap_error_ns":            "Recorded less true gaps between the events of an answer, absolute values.",
		"SelftestStep.ttft_error_ns":           "Recorded less true times from a request's departure to its first token: true ones begin with the server's kernel stamp; absolute values.",
		"SelftestStep.violations":              "Arrivals outside their bounds by more than 0.5 ms, which is what the server's own times are good for.",
		"SelftestStep.early":                   "Of them, stamps before the time of sending.",
		"SelftestStep.cpu_per_event_ns":        "The client's processor time for an event: timed path, decoding, journal. Absent where the system does not say.",
		"SelftestStep.timed_cpu_per_event_ns":  "Of it, that of the event loops. Absent where the transport has none.",
		"SelftestStep.setup_cpu_per_stream_ns": "Processor time from the start of the load to the first event, a stream.",
		"SelftestStep.memory_per_stream_bytes": "Memory of the client's own with all streams open and its garbage collected, before the first event, a stream.",
		"SelftestStep.in_flight_mean":          "Requests truly in flight, the mean over the load.",
		"SelftestDispatch.gap_cv":              "Coefficient of variation of the gaps between due times; 1 for a Poisson process.",
		"SelftestDispatch.ks":                  "Kolmogorov and Smirnov's distance of those gaps from the exponential distribution.",
		"SelftestDispatch.ks_root_n":           "That distance times the root of the number of gaps: over 1.36 once in twenty for a true Poisson process.",
		"SelftestDispatch.lateness_ns":         "Recorded times of leaving less due times.",
		"SelftestDispatch.schedule_to_wire_ns": "The server's kernel stamps of requests less their due times.",
		"SelftestVerdict.streams":              "The most streams, of the events a second that were tested, for which the verdict holds; 0 if for none.",
		"SelftestVerdict.error_ns":             "The largest p99 error of stamps, gaps and TTFT up to there, rounded up. Absent where the verdict holds for no load.",
	}
}

func selftestOptions() schema.Options {
	return schema.Options{
		ID: "urn:fermata:selftest:1", Title: "What Fermata's self-test found on one machine", Types: selftestTypes(), Keys: selftestKeys(),
	}
}

// WriteSelftest writes s as format says, one of DocumentFormats.
func WriteSelftest(format string, w io.Writer, s *Selftest, o TerminalOptions) error {
	return writeDocument("the self-test", format, w, s, s.page, o)
}

func (s *Selftest) page() *page {
	p := &page{verdict: fact{text: s.Verdict.Text, tone: term.Good}}
	if s.Verdict.ErrorNs == nil {
		p.verdict.tone = term.Bad
	}
	var facts block
	facts.fact("machine", s.Machine.text())
	facts.fact("transport", s.Transport)
	facts.fact("bounds", fmt.Sprintf("%s arrivals outside what their stamps state", term.Count(s.Violations)))
	facts.fact("limit", s.limit())
	if d := s.Dispatch; d != nil {
		facts.fact("dispatch", fmt.Sprintf("at %s requests/s (realised %s, gaps' CV %.3f, Kolmogorov-Smirnov √n·D %.2f) late by %s at p50, %s at p99, %s at most; from schedule to wire %s at p50, %s at p99",
			term.Number(d.Rate, true), term.Number(d.Realised, true), d.CV, d.Root,
			nsText(d.Lateness.P50), nsText(d.Lateness.P99), nsText(d.Lateness.Max), nsText(d.Wire.P50), nsText(d.Wire.P99)))
	}
	facts.warnings = s.Warnings
	p.add(facts)
	p.add(s.errors())
	p.add(s.costs())
	return p
}

func (s *Selftest) errors() block {
	b := block{title: "Errors: stamps less true times of sending", table: &table{columns: []column{
		{head: "streams × events/s", left: true},
		{head: "events/s"},
		{head: "p50"},
		{head: "p99"},
		{head: "p99.9"},
		{head: "max"},
		{head: "exact", name: "share of exact arrivals"},
		{head: "exact p99", drop: 1},
		{head: "exact p99.9", drop: 2},
		{head: "bound p50", name: "the stamps' own bounds at p50", drop: 3},
		{head: "gap p99", name: "error of gaps at p99", drop: 4},
		{head: "TTFT p99", name: "error of TTFT at p99", drop: 5},
		{head: "sender p99", name: "lateness of the server itself"},
	}}}
	for i := range s.Steps {
		t := &s.Steps[i]
		row := t.begin()
		for _, v := range []int64{t.Error.P50, t.Error.P99, t.Error.P999, t.Error.Max} {
			row = append(row, text(nsText(v)))
		}
		row = append(row, text(term.Percent(t.ExactShare)))
		if e := t.ErrorExact; e != nil {
			row = append(row, text(nsText(e.P99)), text(nsText(e.P999)))
		} else {
			row = append(row, text(term.None), text(term.None))
		}
		row = append(row, text(nsText(t.Bound.P50)), text(nsText(t.GapError.P99)), text(nsText(t.TTFTError.P99)))
		sender := text(nsText(t.Sender.P99))
		if t.Void {
			sender.mark, sender.tone = " void", term.Bad
		}
		b.table.rows = append(b.table.rows, append(row, sender))
	}
	if slices.ContainsFunc(b.table.rows, func(row []cell) bool { return row[len(row)-1].mark != "" }) {
		b.notes = []string{"Void: the server itself was 1 ms late or more at p99, so that the load says nothing about the client."}
	}
	return b
}

func (s *Selftest) costs() block {
	b := block{title: "Costs of the client", table: &table{columns: []column{
		{head: "streams × events/s", left: true},
		{head: "events/s"},
		{head: "CPU/event"},
		{head: "timed path"},
		{head: "set-up/stream"},
		{head: "memory/stream"},
		{head: "in flight"},
	}}}
	for i := range s.Steps {
		t := &s.Steps[i]
		b.table.rows = append(b.table.rows, append(t.begin(),
			text(maybe(t.CPUPerEvent, term.Duration)), text(maybe(t.TimedPerEvent, term.Duration)), text(maybe(t.SetupCPU, term.Duration)),
			text(maybe(t.Memory, kib)), text(term.Number(t.InFlight, false))))
	}
	b.notes = []string{"CPU/event: everything, with decoding and journal; timed path: the event loops alone. Memory: with all streams open and garbage collected, before the first event."}
	return b
}

func (t *SelftestStep) begin() []cell {
	return []cell{text(fmt.Sprintf("%s × %s", term.Count(int64(t.Streams)), term.Number(t.PerStream, true))), text(term.Count(int64(t.Sent)))}
}

func (s *Selftest) limit() string {
	switch {
	case s.PassesHigh != nil && s.PassesLow != nil:
		return fmt.Sprintf("the p99 error passes 1 ms between %s and %s events/s", term.Count(int64(*s.PassesLow)), term.Count(int64(*s.PassesHigh)))
	case s.PassesHigh != nil:
		return fmt.Sprintf("the p99 error is over 1 ms already at the lowest load, %s events/s", term.Count(int64(*s.PassesHigh)))
	case s.HighestValid != nil:
		return fmt.Sprintf("the p99 error stays under 1 ms up to the highest load that the server held, %s events/s", term.Count(int64(*s.HighestValid)))
	}
	return "unknown: the server held none of the loads"
}

func (m *Machine) text() string {
	parts := []string{fmt.Sprintf("%d cores", m.Cores)}
	if m.Processor != "" {
		parts = append(parts, m.Processor)
	}
	parts = append(parts, strings.Join(strings.Fields(m.OS+" "+m.Kernel+" "+m.Arch), " "))
	if len(m.ServerCores) > 0 {
		where := fmt.Sprintf("server on cores %v", m.ServerCores)
		if m.Realtime {
			where += " in real time"
		}
		parts = append(parts, where, fmt.Sprintf("client on %v", m.ClientCores))
	}
	return strings.Join(parts, ", ")
}

func nsText(v int64) string { return term.Duration(float64(v)) }

func maybe(v *float64, show func(float64) string) string {
	if v == nil {
		return term.None
	}
	return show(*v)
}

func kib(bytes float64) string { return term.Number(bytes/1024, false) + " KiB" }
