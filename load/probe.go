package load

import (
	"context"
	"net/http"
	"time"

	"fermata/dialect"
	"fermata/recording"
	"fermata/wire"
	"fermata/workload"
)

// A Probe is a single request outside any run, such as a preflight. It is not
// recorded.
type Probe struct {
	Dialect   dialect.Dialect
	Transport wire.Transport
	Clock     wire.Clock
	URL       string
	Header    http.Header
	Timeout   time.Duration
	Secrets   []string
	Aside     bool // only what is answered matters, not when: see wire.Request
}

// Ask sends q and returns what became of it. The error says that q could not
// even be written down.
func (p Probe) Ask(ctx context.Context, q *workload.Request) (recording.Trace, error) {
	body, err := p.Dialect.Body(q)
	if err != nil {
		return recording.Trace{}, err
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	late := time.AfterFunc(p.Timeout, func() { cut(errTimeout) })
	defer late.Stop()
	a := &answer{desk: &desk{dialect: p.Dialect, record: unrecorded{}, tally: new(tally)}}
	a.due, a.prompt = p.Clock.Now(), known(q.PromptTokens)
	res := p.Transport.Exchange(ctx, &wire.Request{Method: http.MethodPost, URL: p.URL, Header: p.Header, Body: body, Aside: p.Aside}, a)
	a.judge(res, p.Clock.ZeroWallNs(), hider(p.Secrets))
	return *a.trace, nil
}

// unrecorded is the recorder of what is not recorded.
type unrecorded struct{}

func (unrecorded) Begin(*recording.Trace) error                           { return nil }
func (unrecorded) Sent(int64, int32, int64, recording.Maybe[int64]) error { return nil }
func (unrecorded) FirstByte(int64, int32, int64) error                    { return nil }
func (unrecorded) Arrive(int64, int32, recording.Arrival) error           { return nil }
func (unrecorded) End(*recording.Trace) error                             { return nil }
func (unrecorded) Text(int64, int32, string, string, string) error        { return nil }
func (unrecorded) Sample(recording.Sample) error                          { return nil }
