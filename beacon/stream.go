package beacon

import (
	"sync"
	"time"
)

// A stream is one answer under way.
type stream struct {
	conn   *conn
	plan   Plan
	form   *form
	log    *Request
	chat   bool
	usage  bool
	prompt int // bytes of the request, told as its tokens
	left   int // events to send
	output int // events sent

	next  int64 // wall clock: when the next write is due
	place int   // in the queue
}

// write puts the next write's bytes at the end of b, all of them stamped with now.
func (s *stream) write(b []byte, now int64) []byte {
	for range min(s.plan.Bunch, s.left) {
		n := len(b)
		b = append(b, s.form.bytes...)
		digits(b[n+s.form.id:][:idDigits], s.log.Number)
		digits(b[n+s.form.time:][:timeDigits], now)
	}
	return b
}

// end is the answer's last write.
func (s *stream) end() []byte {
	return ending(s.chat, s.usage, s.log.Number, s.prompt, s.output)
}

// wrote notes that the bytes of a write left between now and after. over says that
// the answer's end is due at once.
func (s *stream) wrote(now, after int64) (over bool) {
	s.log.SentNs = append(s.log.SentNs, now)
	s.log.TookNs = append(s.log.TookNs, after-now)
	n := min(s.plan.Bunch, s.left)
	s.left, s.output = s.left-n, s.output+n
	s.next += s.log.StepNs
	if s.left == 0 {
		s.next += int64(s.plan.Tail) - s.log.StepNs
	}
	return s.left == 0 && s.plan.Tail == 0
}

// A ledger is what all loops and goroutines of a beacon share.
type ledger struct {
	mu      sync.Mutex
	number  int64
	log     []*Request
	waiting []*stream // for others to ask
	since   time.Time // when the first of them did
	conns   int
	stuck   int
	forms   map[[2]int]*form
}

// begin makes a stream of a request, numbered and logged. ready are the streams
// whose times are settled by it: itself, or all that waited, or none yet.
func (l *ledger) begin(c *conn, a *request, p Plan, received int64) (s *stream, ready []*stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s = &stream{conn: c, plan: p, chat: a.chat, usage: a.usage, prompt: len(a.body), left: p.Events}
	switch {
	case s.left == 0 && a.tokens > 0:
		s.left = a.tokens
	case s.left == 0:
		s.left = defaultEvents
	}
	writes := (s.left + p.Bunch - 1) / p.Bunch
	s.log = &Request{
		Number: l.number, Body: a.sum(), ReceivedNs: received, Bunch: p.Bunch, StepNs: int64(p.Gap) * int64(p.Bunch),
		SentNs: make([]int64, 0, writes), TookNs: make([]int64, 0, writes),
	}
	l.number++
	l.log = append(l.log, s.log)
	s.form = l.shape(a.chat, p.Size)
	if p.Wait <= 1 {
		s.start(received, int(s.log.Number))
		return s, []*stream{s}
	}
	if len(l.waiting) == 0 {
		l.since = time.Now()
	}
	l.waiting = append(l.waiting, s)
	if len(l.waiting) < p.Wait {
		return s, nil
	}
	return s, l.release(received)
}

// overdue are the streams that have waited for others long enough.
func (l *ledger) overdue() []*stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || time.Since(l.since) < mostWait {
		return nil
	}
	return l.release(time.Now().UnixNano())
}

func (l *ledger) release(at int64) []*stream {
	all := l.waiting
	l.waiting = nil
	for k, s := range all {
		s.start(at+int64(settle), k)
	}
	return all
}

// start settles when s sends.
func (s *stream) start(base int64, k int) {
	s.next = s.plan.first(base, k)
	s.log.FirstNs = s.next
}

func (l *ledger) shape(chat bool, size int) *form {
	key := [2]int{0, size}
	if chat {
		key[0] = 1
	}
	if l.forms == nil {
		l.forms = map[[2]int]*form{}
	}
	if l.forms[key] == nil {
		l.forms[key] = newForm(chat, size)
	}
	return l.forms[key]
}

// gone forgets a stream whose client has left.
func (l *ledger) gone(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == s {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
}

// report hands the log over and begins a new one. Requests under way go with it;
// what they send later is in no report.
func (l *ledger) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Streams: l.conns, Requests: len(l.log), Stuck: l.stuck, CPUNs: processCPU()}
	for _, q := range l.log {
		r.Log = append(r.Log, *q)
		r.Writes += len(q.SentNs)
	}
	l.log, l.stuck = nil, 0
	return r
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\nX-Fermata-Received-Ns: "
