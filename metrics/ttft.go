package metrics

import "fermata/recording"

// latencies judges what each request waited for: the first token, the last, and
// the parts in between that a server tells.
type latencies struct {
	due, sent, server, answer               *series
	network, queue, prefill, scheduling     *series
	normalized, e2e, streamEnd, tps, prompt *series
	output                                  *series
	reasoning                               bool // some answer reasoned first
}

func newLatencies(opt Options) *latencies {
	ns := func() *series { return newSeries(opt, "ns", lower) }
	return &latencies{
		due: ns().exceeding(opt).stamps(), sent: ns().exceeding(opt).stamps(),
		server: ns().stamps(), answer: ns().stamps(),
		network: ns(), queue: ns(), prefill: ns(), scheduling: ns().exceeding(opt),
		normalized: ns().stamps(), e2e: ns().stamps(), streamEnd: ns(),
		tps:    newFloats(opt, "tokens/s", higher),
		prompt: newSeries(opt, "tokens", neutral), output: newSeries(opt, "tokens", neutral),
	}
}

func (l *latencies) see(a *answer) {
	t := a.t
	if t.Prompt.Used.OK {
		l.prompt.int(int64(t.Prompt.Used.V))
	}
	if t.ServerReceived.OK && t.Sent.OK {
		l.network.int(t.ServerReceived.V - t.Sent.V)
	}
	if t.ServerQueue.OK {
		l.queue.int(t.ServerQueue.V)
	}
	if t.ServerPrefill.OK {
		l.prefill.int(t.ServerPrefill.V)
	}
	if a.first < 0 {
		return
	}
	l.firstToken(a)
	if a.good {
		l.whole(a)
	}
}

// firstToken is what any request has that got a token, however it ended.
func (l *latencies) firstToken(a *answer) {
	t, late := a.t, a.err(a.first)
	v := a.times[0]
	l.due.stamped(v, v-late, v, a.stamps)
	if v, ok := a.ttftSent(); ok {
		l.sent.stamped(v, v-late, v, a.stamps)
	}
	if t.ServerReceived.OK {
		v := a.times[0] + t.Due - t.ServerReceived.V
		l.server.stamped(v, v-late, v, a.stamps)
	}
	if v, ok := a.schedulingDelay(); ok {
		l.scheduling.int(v)
	}
	if at, i, ok := l.firstAnswer(t); ok {
		l.answer.stamped(at, at-a.err(i), at, a.stamps)
	}
}

// firstAnswer is when the first token that is neither reasoning nor a tool call
// nor a refusal came, and with which arrival.
func (l *latencies) firstAnswer(t *recording.Trace) (at int64, arrival int, ok bool) {
	if len(t.Channel) != len(t.DeltaNs) {
		return 0, 0, false
	}
	for i, d := range t.DeltaNs {
		at += d
		if t.Tokens[i] == 0 {
			continue
		}
		switch t.Channel[i] {
		case recording.ChannelAnswer:
			return at, i, true
		case recording.ChannelReasoning:
			l.reasoning = true
		}
	}
	return 0, 0, false
}

// whole is what only a whole answer has.
func (l *latencies) whole(a *answer) {
	late := a.err(a.last)
	e2e, _ := a.e2e()
	l.e2e.stamped(e2e, e2e-late, e2e, a.stamps)
	n := int64(a.used.V)
	l.output.int(n)
	if a.t.End.OK {
		l.streamEnd.int(a.t.End.V - a.t.Due)
	}
	if v, ok := a.normalized(); ok {
		l.normalized.stamped(v, max(0, e2e-late)/n, v, a.stamps)
	}
	if span := e2e - a.times[0]; span > 0 && n > 0 {
		l.tps.float(float64(n) * 1e9 / float64(span))
	}
}

func (l *latencies) seek() recording.Columns {
	want := l.answer.seek()
	if want != 0 {
		want |= recording.Channels
	}
	return want | seekAll(l.due, l.sent, l.server, l.network, l.queue, l.prefill, l.scheduling,
		l.normalized, l.e2e, l.streamEnd, l.tps, l.prompt, l.output)
}

func (l *latencies) result(r *Result, measured int64) {
	m := &r.Metrics
	m.TTFTDue, m.TTFTSent, m.TTFTServer = l.due.dist(measured), l.sent.dist(measured), l.server.dist(measured)
	if l.reasoning {
		m.TTFTAnswer = l.answer.dist(measured)
	}
	m.Network, m.ServerQueue, m.Prefill = l.network.dist(measured), l.queue.dist(measured), l.prefill.dist(measured)
	m.SchedulingDelay = l.scheduling.dist(measured)
	m.NormalizedLatency, m.E2E, m.StreamEnd = l.normalized.dist(measured), l.e2e.dist(measured), l.streamEnd.dist(measured)
	m.TPS = l.tps.dist(measured)
	m.PromptTokens, m.OutputTokens = l.prompt.dist(measured), l.output.dist(measured)
}
