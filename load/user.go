package load

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"fermata/schedule"
)

// A crowd is the users of a closed loop who do not converse. They are no goroutines:
// whoever takes the end of a user's last answer has the user go on, and waits for
// nothing. That is the transport's decoder as a rule, so that from the end of an
// answer to the next request nobody needs to wake.
type crowd struct {
	run    *run
	stock  stock
	think  thinking
	asking sync.WaitGroup // users
	over   chan struct{}  // closed once there are none
	work   sync.WaitGroup // who stocks up, and who waits for the thinkers
}

// A user asks again when it has its answer and has thought.
type user struct {
	crowd  *crowd
	number int
	turn   int64        // that comes next
	came   int64        // when it came to be: nobody was free before
	due    int64        // of that turn, once it is known
	free   atomic.Int64 // since when it has had its answers
	left   atomic.Int32 // of its query: answers that have not ended, and 1 while it is sent
	last   bool         // nothing is to follow its query
}

// ask lets n users ask until nothing more is to be asked.
func (c *crowd) ask(n int) {
	c.work.Go(c.wake)
	users := make([]user, n)
	c.asking.Add(n)
	for number := range users {
		u := &users[number]
		u.crowd, u.number, u.came = c, number, c.run.clock.Now()
		u.goOn()
	}
	c.asking.Wait()
	close(c.over)
	c.work.Wait()
}

// goOn has a user who has no query under way think, or ask until it has to wait.
func (u *user) goOn() {
	r := u.crowd.run
	for {
		u.due = u.free.Load() + int64(r.times.Think(u.number, u.turn))
		if u.due > r.clock.Now() && !r.drained() && !r.halted() {
			u.crowd.think.add(u)
			return
		}
		if !u.ask() {
			return
		}
	}
}

// ask sends what is due for a user now. True says that all of its answers have ended.
func (u *user) ask() (ended bool) {
	r := u.crowd.run
	if r.halted() {
		u.crowd.asking.Done()
		return false
	}
	var few [4]*flight
	query, ready, err := u.take(few[:0])
	r.die(err)
	if !ready {
		return false
	}
	u.turn++
	u.left.Store(int32(len(query)) + 1)
	for _, f := range query {
		r.send(f, u)
	}
	return u.settle()
}

// take enters the requests that are due together, as many as make a query, and adds them
// to it; there is no other query where there are not so many any more. False says that
// they do not stand ready yet: the user goes on once they do.
func (u *user) take(query []*flight) (all []*flight, ready bool, err error) {
	r, s := u.crowd.run, &u.crowd.stock
	r.next.Lock()
	defer r.next.Unlock()
	streams := r.times.Streams()
	if s.n < streams && !s.over {
		s.wait(u)
		return nil, false, nil
	}
	due := max(u.due, u.came, r.lastDue) // phases count in order of due times
	r.lastDue = due
	for range streams {
		at, ok := r.times.Next(due)
		r.rephase(&at)
		if !ok || at.Phase == schedule.Drain {
			r.startDrain()
		}
		if !ok || at.Phase == schedule.Drain && (r.drained() || r.times.Quiet()) || s.n == 0 {
			u.last = true
			return query, true, nil
		}
		p := s.draw()
		r.aheadSize.Add(-int64(len(p.body)))
		at.Session = p.at.Session // a row of a data set has one of its own
		p.at = at
		if p.err != nil || !r.afford(p) {
			u.last = true
			return query, true, p.err
		}
		query = append(query, r.enter(*p))
	}
	return query, true, nil
}

// ended implements caller.
func (u *user) ended(f *flight) {
	r := u.crowd.run
	if r.retries(f.trace) {
		r.answers.Go(func() { u.has(r.persist(f)) })
		return
	}
	r.close(f)
	u.has(f)
}

// has notes that one of the user's requests is over. After the last of its query
// the user goes on.
func (u *user) has(f *flight) {
	raise(&u.free, u.crowd.run.freed(f))
	if u.settle() {
		u.goOn()
	}
}

// settle counts one less of a query to wait for. True says that the user is to go on.
func (u *user) settle() bool {
	if u.left.Add(-1) > 0 {
		return false
	}
	if u.last {
		u.crowd.asking.Done()
		return false
	}
	return true
}

// thinking are the users who think.
type thinking struct {
	mu    sync.Mutex
	users byDue
	first chan struct{} // holds 1 where somebody is due before all who were there
}

func (k *thinking) add(u *user) {
	k.mu.Lock()
	heap.Push(&k.users, u)
	first := k.users[0] == u
	k.mu.Unlock()
	if first {
		signal(k.first)
	}
}

// next takes a user who is due by now; else it says when the first one is, if there
// is any.
func (k *thinking) next(now int64) (u *user, due int64, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.users) == 0 {
		return nil, 0, false
	}
	if due = k.users[0].due; due > now {
		return nil, due, true
	}
	return heap.Pop(&k.users).(*user), due, true
}

// wake has those go on who have thought for long enough, and all of them where the
// run was stopped or nobody will ask again.
func (c *crowd) wake() {
	r := c.run
	halt := r.halt
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		by := r.clock.Now()
		if r.halted() || r.drained() {
			by = 1<<63 - 1
		}
		u, due, any := c.think.next(by)
		if u != nil {
			if u.ask() {
				u.goOn()
			}
			continue
		}
		timer.Stop()
		if any {
			timer.Reset(min(time.Duration(due-r.clock.Now()), thinkSlice))
		}
		select {
		case <-timer.C:
		case <-c.think.first:
		case <-halt:
			halt = nil
		case <-c.over:
			return
		}
		r.noticeOver()
	}
}

// byDue is a heap of users, the one who is due first on top.
type byDue []*user

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due < h[j].due }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(u any)        { *h = append(*h, u.(*user)) }

func (h *byDue) Pop() any {
	n := len(*h) - 1
	u := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	return u
}

// signal makes sure that c, which holds one, holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
