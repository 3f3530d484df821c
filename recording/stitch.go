package recording

import (
	"cmp"
	"fmt"
	"slices"
)

// NoteDamaged stands in Trace.Notes where the journal lost frames of the
// request: the arrivals are those before the damage.
const NoteDamaged = "journal_damaged"

// A pending is a request whose end has not been read yet.
type pending struct {
	begun   Trace // scalars so far; Index is -1 where the begin was lost
	events  eventLog
	count   uint64 // of events
	damaged bool   // frames of it are missing from here on
}

// A stitcher joins the frames of a journal into traces. In memory it holds the
// requests in flight.
type stitcher struct {
	open    flights[pending]
	free    []*pending
	trace   Trace // reused
	emit    func(*Trace) error
	meta    Meta
	sample  func(Sample) error
	text    func(k key, fields []byte) error
	hasLost bool // frames were lost somewhere

	requests, incomplete, events, arrivals, orphans int64
}

func newStitcher(emit func(*Trace) error) *stitcher {
	return &stitcher{emit: emit}
}

// lost notes that frames of any request may be missing from here on.
func (s *stitcher) lost() {
	s.hasLost = true
	for _, p := range s.open.all() {
		p.damaged = true
	}
}

// add takes one payload. An error means that the payload is not what its kind
// says, in spite of its checksum.
func (s *stitcher) add(payload []byte) error {
	kind := payload[0]
	c := cursor{b: payload[1:]}
	if kind&arrivalBit != 0 {
		k := key{index: int64(c.uint())}
		if kind&arrivalTry != 0 {
			k.try = int32(c.uint())
		}
		p, err := s.pending(k)
		if err != nil || c.bad {
			return firstError(err, c.err())
		}
		s.events++
		if !p.damaged {
			p.events.add(kind, c.b)
			p.count++
		}
		return nil
	}
	switch kind {
	case kindMeta:
		m, err := c.meta()
		s.meta = m
		return err
	case kindSample:
		v, err := c.sample()
		if err != nil || s.sample == nil {
			return err
		}
		return s.sample(v)
	case kindText:
		fields := c.b
		k := c.key()
		if c.bad || s.text == nil {
			return c.err()
		}
		return s.text(k, fields)
	case kindBegin:
		return s.begin(&c)
	case kindSent, kindFirstByte:
		p, err := s.pending(c.key())
		if err != nil {
			return err
		}
		if at := Some(c.int()); kind == kindSent {
			p.begun.Sent, p.begun.Connected = at, c.maybe()
		} else {
			p.begun.FirstByte = at
		}
		return c.err()
	case kindEnd:
		return s.end(&c)
	}
	return nil // of a later version: not needed to read the rest
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// pending finds a request in flight. One that is not known is an error, unless
// its begin may have been lost.
func (s *stitcher) pending(k key) (*pending, error) {
	p := s.open.at(k)
	if p == nil {
		if !s.hasLost {
			return nil, fmt.Errorf("%w: request %d, try %d is not in flight", errPayload, k.index, k.try)
		}
		p = s.take()
		p.begun.Index, p.damaged = -1, true
		s.open.put(k, p)
	}
	return p, nil
}

func (s *stitcher) take() *pending {
	n := len(s.free)
	if n == 0 {
		return &pending{}
	}
	p := s.free[n-1]
	s.free = s.free[:n-1]
	*p = pending{events: p.events[:0]}
	return p
}

func (s *stitcher) begin(c *cursor) error {
	p := s.take()
	c.scalars(&p.begun)
	if c.bad {
		return c.err()
	}
	s.open.put(key{p.begun.Index, p.begun.Try}, p)
	return nil
}

// end settles a request from its end frame.
func (s *stitcher) end(c *cursor) error {
	t := &s.trace
	c.scalars(t)
	mode, count := c.byte(), c.uint()
	if c.bad {
		return c.err()
	}
	k := key{t.Index, t.Try}
	p, err := s.pending(k)
	if err != nil {
		return err
	}
	switch {
	case mode&listsWhole != 0:
		c.lists(&t.Arrivals)
	case p.damaged || p.count != count:
		err = s.cutShort(p)
	default:
		if _, err = p.events.settle(p.begun.Due, t.Due, mode&listsAllEvents != 0, &t.Arrivals); err == nil && mode&listsTokens != 0 {
			t.Tokens = readRuns(c, t.Tokens[:0], len(t.DeltaNs))
		}
	}
	if err = firstError(err, c.err()); err != nil {
		return err
	}
	return s.finish(k, p)
}

// cutShort turns the trace, whose end is known but not all of its arrivals,
// into an incomplete one.
func (s *stitcher) cutShort(p *pending) error {
	t := &s.trace
	due := p.begun.Due
	if p.begun.Index < 0 {
		due = t.Due
	}
	open, err := p.events.settle(due, t.Due, false, &t.Arrivals)
	t.Notes = append(t.Notes, NoteDamaged)
	t.End = Maybe[int64]{}
	s.incompleted(open)
	return err
}

// incompleted fills in what can be said of a request that has no end.
func (s *stitcher) incompleted(open bool) {
	t := &s.trace
	s.incomplete++
	t.Outcome = Incomplete
	switch {
	case t.FirstToken() >= 0:
		t.FailedAt = AtMidStream
	case t.FirstByte.OK:
		t.FailedAt = AtFirstToken
	case t.Sent.OK:
		t.FailedAt = AtHeaders
	default:
		t.FailedAt = AtSend
	}
	if t.ArrivalSource = ""; open {
		t.ArrivalSource = ArrivalAssumed
	}
	var sum int32
	for _, k := range t.Tokens {
		sum += k
	}
	t.Output.Counted = Some(sum)
	t.Output.Settle(false)
	t.Prompt.Settle(true)
}

func (s *stitcher) finish(k key, p *pending) error {
	if s.open.at(k) == p {
		s.open.remove(k)
	}
	s.free = append(s.free, p)
	s.requests++
	s.arrivals += int64(s.trace.Len())
	return s.emit(&s.trace)
}

// rest emits what was in flight when the journal ended.
func (s *stitcher) rest() error {
	var keys []key
	for k := range s.open.all() {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return firstNonZero(cmp.Compare(a.index, b.index), cmp.Compare(a.try, b.try))
	})
	for _, k := range keys {
		p := s.open.at(k)
		if p.begun.Index < 0 { // neither its begin nor its end: it has no place
			s.orphans++
			s.open.remove(k)
			continue
		}
		lists := s.trace.Arrivals
		s.trace = p.begun
		s.trace.Arrivals = lists
		open, err := p.events.settle(p.begun.Due, p.begun.Due, false, &s.trace.Arrivals)
		if err != nil {
			return err
		}
		if p.damaged {
			s.trace.Notes = append(s.trace.Notes, NoteDamaged)
		}
		s.incompleted(open)
		if err := s.finish(k, p); err != nil {
			return err
		}
	}
	return nil
}
