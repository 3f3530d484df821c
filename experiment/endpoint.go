package experiment

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"fermata/load"
	"fermata/recording"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// An endpoint is asked one prompt at a time over a connection that stays open. Its
// clock is the wall's, or the simulated one of a server whose time runs faster.
type endpoint struct {
	target  *target
	prompts *workload.Workload
	tr      wire.Transport
	clock   wire.Clock
	page    string // that costs nothing
	began   time.Time
	scale   float64
	stop    <-chan struct{}
}

// newEndpoint finds out what the endpoint is and takes, and how it counts tokens.
func newEndpoint(ctx context.Context, s *spec.Run, o Options) (*endpoint, error) {
	all, err := newTargets(s, o)
	if err != nil {
		return nil, err
	}
	if err := chooseTransport(s, all); err != nil {
		return nil, err
	}
	prompts, _, err := open(s)
	if err != nil {
		return nil, err
	}
	if err := give(all, s, prompts); err != nil {
		return nil, err
	}
	if err := prepareAll(ctx, o.Stop, all); err != nil {
		return nil, err
	}
	scale, err := timeScale(s, all)
	if err != nil {
		return nil, err
	}
	if _, _, err := settle(s, all); err != nil {
		return nil, err
	}
	e := &endpoint{target: all[0], prompts: prompts, clock: wire.NewClock(), began: time.Now(), scale: scale, stop: o.Stop}
	e.tr = e.target.choice.New(e.clock)
	e.page, err = s.Endpoint("/v1/models")
	return e, err
}

func (e *endpoint) close() { e.tr.Close() }

func (e *endpoint) now() time.Time {
	return e.began.Add(time.Duration(e.scale * float64(time.Since(e.began))))
}

func (e *endpoint) wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Duration(float64(until.Sub(e.now())) / e.scale))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-e.stop:
		return ErrInterrupted
	case <-ctx.Done():
		return ErrInterrupted
	}
}

// ask asks for a small page first, so that the connection is there: a long prompt
// over a new one would take round trips that grow with it.
func (e *endpoint) ask(ctx context.Context, number int64, tokens int32) (probed, error) {
	var p probed
	ping, cancel := context.WithTimeout(ctx, labelTimeout)
	asked := e.clock.Now()
	if _, err := wire.Fetch(ping, e.tr, e.page, e.target.headerFor("identify")); err == nil {
		p.PingNs = e.scaled(e.clock.Now() - asked)
	}
	cancel()
	q, ok := e.prompts.At(number, tokens, 1)
	if !ok {
		return p, e.prompts.Err()
	}
	d, err := e.target.dialect()
	if err != nil {
		return p, err
	}
	id := strconv.FormatInt(number, 10)
	header := load.FillHeader(e.target.header, id, id, strconv.FormatUint(e.target.spec.Seed, 10))
	if e.target.ours {
		header = header.Clone()
		header.Set("X-Fermata-Prompt-Tokens", strconv.Itoa(int(tokens)))
	}
	t, err := load.Probe{
		Dialect: d, Transport: e.tr, Clock: e.clock, URL: e.target.url, Header: header,
		Timeout: e.target.spec.Load.Timeout, Secrets: e.target.secrets,
	}.Ask(ctx, &q)
	if err != nil {
		return p, err
	}
	if ctx.Err() != nil { // we cut it: it says nothing of the endpoint
		return p, ErrInterrupted
	}
	e.understand(&p, &t)
	return p, nil
}

// understand takes from a trace what a probe is about.
func (e *endpoint) understand(p *probed, t *recording.Trace) {
	p.Outcome, p.Error = t.Outcome, t.Error
	if t.HTTPStatus != http.StatusOK {
		p.HTTPStatus = t.HTTPStatus
	}
	p.PromptTokens, p.CachedTokens = t.Prompt.Used.Or(0), t.Cached.Or(0)
	p.Counted = !t.Prompt.Reported.OK
	first := t.FirstToken()
	if t.Outcome != recording.OK || first < 0 || !t.Sent.OK {
		return
	}
	at := t.Due - t.Sent.V
	for _, gap := range t.DeltaNs[:first+1] {
		at += gap
	}
	p.TTFTNs = e.scaled(at)
}

func (e *endpoint) scaled(ns int64) int64 { return int64(e.scale * float64(ns)) }
