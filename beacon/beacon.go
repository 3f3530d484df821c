// Package beacon is the server that the instrument itself is tested against. It
// sends events at scheduled times; each carries the wall clock as it was read just
// before its write, and a log keeps that time for every event, with the kernel's
// stamp of each request's arrival. It does little else, so that one core sends to
// ten thousand streams, and it measures its own lateness: where that is large, the
// load was not what it should have been and a test against it is void.
//
// It speaks HTTP/1.1 and answers each POST as a stream of OpenAI's Chat Completions
// (or Completions, by the path). It is not a server for anything but tests.
package beacon

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Phases of streams, for Plan.Phase.
const (
	Own    = "own"    // from the request's arrival: closed loops
	Spread = "spread" // evenly spread over a gap, so that streams are independent
	Step   = "step"   // on a grid that all streams share, as the decode steps of an engine
)

// A Plan is how requests are answered: the query of their URL. The zero value sends
// as many events as max_tokens asks for, 20 a second, from the request's arrival.
type Plan struct {
	Events int           // of an answer; 0: as many as the request's max_tokens, or 128
	TTFT   time.Duration // before the first event
	Gap    time.Duration // between events; default 50ms
	Phase  string        // default Own
	Wait   int           // streams begin together, once so many of them have asked; 0: at once
	Bunch  int           // events that leave in one write, every Bunch gaps; default 1
	Size   int           // of an event, in bytes; default 260
	Tail   time.Duration // between the last event and the answer's end, which is a write of its own
}

const (
	defaultEvents = 128
	defaultSize   = 260
	settle        = 300 * time.Millisecond // between the last stream's asking and the first event of those that wait
	mostWait      = 20 * time.Second       // for streams that do not come
)

// Query is p as the query of a URL.
func (p Plan) Query() string {
	v := url.Values{}
	set := func(name string, n int) {
		if n > 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	set("events", p.Events)
	set("wait", p.Wait)
	set("bunch", p.Bunch)
	set("size", p.Size)
	if p.TTFT > 0 {
		v.Set("ttft", p.TTFT.String())
	}
	if p.Gap > 0 {
		v.Set("gap", p.Gap.String())
	}
	if p.Tail > 0 {
		v.Set("tail", p.Tail.String())
	}
	if p.Phase != "" {
		v.Set("phase", p.Phase)
	}
	return v.Encode()
}

// parsePlan reads a query, the inverse of Query.
func parsePlan(query string) (p Plan, err error) {
	v, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("beacon: reading the query: %w", err)
	}
	for name := range v {
		text := v.Get(name)
		switch name {
		case "events":
			p.Events, err = strconv.Atoi(text)
		case "wait":
			p.Wait, err = strconv.Atoi(text)
		case "bunch":
			p.Bunch, err = strconv.Atoi(text)
		case "size":
			p.Size, err = strconv.Atoi(text)
		case "ttft":
			p.TTFT, err = time.ParseDuration(text)
		case "gap":
			p.Gap, err = time.ParseDuration(text)
		case "tail":
			p.Tail, err = time.ParseDuration(text)
		case "phase":
			p.Phase = text
		default:
			err = fmt.Errorf("there is no such setting")
		}
		if err != nil {
			return p, fmt.Errorf("beacon: %s=%s: %w", name, text, err)
		}
	}
	return p, p.check()
}

func (p *Plan) check() error {
	p.Gap, p.Phase = cmp.Or(p.Gap, 50*time.Millisecond), cmp.Or(p.Phase, Own)
	p.Bunch, p.Size = cmp.Or(p.Bunch, 1), cmp.Or(p.Size, defaultSize)
	switch {
	case p.Events < 0 || p.Wait < 0 || p.TTFT < 0 || p.Gap < 0 || p.Tail < 0 || p.Bunch < 0:
		return fmt.Errorf("beacon: a plan has no negative numbers")
	case p.Size > 4096 || p.Bunch > 64:
		return fmt.Errorf("beacon: events have at most 4096 bytes, and at most 64 leave in one write")
	case p.Phase != Own && p.Phase != Spread && p.Phase != Step:
		return fmt.Errorf("beacon: phase %q is none of own, spread, step", p.Phase)
	}
	return nil
}

// first is when the first event of stream number k is due that counts from base.
// Times are wall-clock ns.
func (p *Plan) first(base int64, k int) int64 {
	at := base + int64(p.TTFT)
	switch gap := int64(p.Gap); p.Phase {
	case Spread:
		if p.Wait > 0 {
			return at + gap*int64(k%p.Wait)/int64(p.Wait)
		}
		// Multiples of the golden ratio are spread evenly however many there are.
		const golden = 0.6180339887498949
		x := float64(k) * golden
		return at + int64((x-float64(int64(x)))*float64(gap))
	case Step:
		return (at + gap - 1) / gap * gap
	}
	return at
}

// A Request is what truly happened to one request. Times are wall-clock ns.
type Request struct {
	Number     int64  // the number in the answer's id
	Body       uint64 // FNV-1a of the request's body, by which a client without ids can be joined
	ReceivedNs int64  // kernel's stamp of the request's last segment; where there is none, when it was read
	FirstNs    int64  // when the first write was due
	StepNs     int64  // between the due times of writes
	SentNs     []int64
	TookNs     []int64 // of the write: the event had left SentNs + TookNs at the latest
	Bunch      int     // events of a write
}

// ID is the id of the answer with a number.
func ID(number int64) string { return fmt.Sprintf("beacon-%010d", number) }

// A Report is what a beacon did since the last one.
type Report struct {
	Streams  int   `json:"streams"` // open connections
	Requests int   `json:"requests"`
	Writes   int   `json:"writes"`
	Stuck    int   `json:"stuck"` // writes that a full socket held up: the client did not read
	CPUNs    int64 `json:"cpu_ns"`

	Log []Request `json:"-"`
}
