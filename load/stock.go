package load

import (
	"sync"
	"time"

	"fermata/schedule"
)

const (
	// stockLeast is how many requests stand ready besides one for each stream, so that few
	// users who are answered fast do not wait for them, and how few are too few.
	stockLeast = 32
	stockLow   = stockLeast / 2
	// stockRest is how long a stock is left as it is after something was drawn from it: who is
	// due, and perhaps a thousand others with it, is to leave first.
	stockRest = 20 * time.Millisecond
)

// A stock has requests of a closed loop stand ready, whose due times nobody knows yet:
// when a thousand answers end together, building a thousand bodies first would leave
// the server idle. The run's lock next guards it.
type stock struct {
	ring    []*prepared
	first   int     // in the ring
	n       int     // that stand ready
	over    bool    // no more will come
	waiting []*user // who found too few
	drawn   chan struct{}
	low     chan struct{} // too few are left, and nobody else is to leave first
}

// newCrowd returns when a query of each user stands ready, or else those that do
// not will be built while the first wait.
func newCrowd(r *run, users int) *crowd {
	c := &crowd{run: r, over: make(chan struct{})}
	c.think.first = make(chan struct{}, 1)
	streams := users * r.times.Streams()
	c.stock = stock{ring: make([]*prepared, streams+stockLeast), drawn: make(chan struct{}, 1), low: make(chan struct{}, 1)}
	stocked := make(chan struct{})
	c.work.Go(func() { c.fill(streams, sync.OnceFunc(func() { close(stocked) })) })
	select {
	case <-stocked:
	case <-time.After(200 * time.Millisecond):
	}
	return c
}

// fill builds requests while there are users, and says when so many stand ready, or
// all that will be asked for.
func (c *crowd) fill(streams int, stocked func()) {
	defer c.noMore()
	defer stocked()
	r := c.run
	first := int64(streams)
	most, known := r.atMost()
	if known {
		first = min(first, most)
	}
	for i := int64(0); c.wanted(known && i >= most); i++ {
		p := r.build(schedule.Arrival{Index: i, Session: r.times.SessionOf(i)})
		if p.end {
			return
		}
		if u := c.put(p); u != nil {
			u.goOn()
		}
		if p.err != nil {
			return
		}
		if i == first-1 {
			stocked()
		}
	}
}

// atMost is how many requests will be asked for, where that is known.
func (r *run) atMost() (n int64, known bool) {
	n, known = r.times.MeasuredTotal()
	warm, at := r.times.WarmupEnd()
	streams := int64(r.times.Streams())
	return n + (warm+streams-1)/streams*streams, known && r.times.Quiet() && warm >= 0 && at < 0
}

// wanted waits until another request should stand ready; false says that none will
// be asked for any more. Where enough are built for the whole run, only who waits for
// one gets it.
func (c *crowd) wanted(enough bool) bool {
	r, s := c.run, &c.stock
	for {
		select {
		case <-r.halt:
			return false
		case <-c.over:
			return false
		default:
		}
		r.next.Lock()
		room := s.n == 0 || s.n < len(s.ring) && r.aheadSize.Load() <= aheadBytes
		want := len(s.waiting) > 0 || room && !enough
		r.next.Unlock()
		if want {
			return true
		}
		select {
		case <-s.drawn:
		case <-r.halt:
		case <-c.over:
		}
		select {
		case <-s.low:
		case <-time.After(stockRest):
		case <-r.halt:
		case <-c.over:
		}
	}
}

// put adds a request to the stock. It gives the user who has waited for it longest.
func (c *crowd) put(p prepared) *user {
	c.run.aheadSize.Add(int64(len(p.body)))
	c.run.next.Lock()
	defer c.run.next.Unlock()
	s := &c.stock
	s.ring[(s.first+s.n)%len(s.ring)] = &p
	s.n++
	if len(s.waiting) == 0 || s.n < c.run.times.Streams() && p.err == nil {
		return nil
	}
	u := s.waiting[0]
	s.waiting = s.waiting[1:]
	return u
}

// noMore says that no more will be built, to those too who wait for it.
func (c *crowd) noMore() {
	c.run.next.Lock()
	c.stock.over = true
	waiting := c.stock.waiting
	c.stock.waiting = nil
	c.run.next.Unlock()
	for _, u := range waiting {
		u.goOn()
	}
}

// draw is the next request, of those that stand ready.
func (s *stock) draw() *prepared {
	p := s.ring[s.first]
	s.ring[s.first] = nil
	s.first = (s.first + 1) % len(s.ring)
	s.n--
	signal(s.drawn)
	if s.n < stockLow {
		signal(s.low)
	}
	return p
}

// wait has a user go on once enough stand ready.
func (s *stock) wait(u *user) {
	s.waiting = append(s.waiting, u)
	signal(s.drawn)
	signal(s.low)
}
