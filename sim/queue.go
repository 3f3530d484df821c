package sim

import "cmp"

// A queue holds the requests that wait: first those that were evicted, the last
// one at the front, then the others in their order.
type queue struct {
	order   string
	evicted []*sequence // a stack
	heap    []*sequence
}

// before is the one comparator of waiting requests.
func (q *queue) before(a, b *sequence) bool {
	c := 0
	switch q.order {
	case ByPriority:
		c = cmp.Compare(a.Priority, b.Priority)
	case ShortestPrompt:
		c = cmp.Compare(a.Prompt, b.Prompt)
	}
	return cmp.Or(c, cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Index, b.Index)) < 0
}

func (q *queue) len() int { return len(q.evicted) + len(q.heap) }

// head is who goes next, or nil.
func (q *queue) head() *sequence {
	if n := len(q.evicted); n > 0 {
		return q.evicted[n-1]
	}
	if len(q.heap) > 0 {
		return q.heap[0]
	}
	return nil
}

func (q *queue) pop() *sequence {
	s := q.head()
	if n := len(q.evicted); n > 0 {
		q.evicted[n-1] = nil
		q.evicted = q.evicted[:n-1]
	} else {
		q.take(0)
	}
	s.waiting = false
	return s
}

// push adds a request that arrived.
func (q *queue) push(s *sequence) {
	s.waiting, s.place = true, len(q.heap)
	q.heap = append(q.heap, s)
	q.up(s.place)
}

// pushFront adds a request that was evicted.
func (q *queue) pushFront(s *sequence) {
	s.waiting = true
	q.evicted = append(q.evicted, s)
}

// remove takes out a request whose client has left.
func (q *queue) remove(s *sequence) {
	s.waiting = false
	for i, e := range q.evicted {
		if e == s {
			q.evicted = append(q.evicted[:i], q.evicted[i+1:]...)
			return
		}
	}
	q.take(s.place)
}

func (q *queue) take(i int) {
	last := len(q.heap) - 1
	q.heap[i] = q.heap[last]
	q.heap[i].place = i
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
}

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.before(q.heap[i], q.heap[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *queue) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.before(q.heap[child], q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}

func (q *queue) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].place, q.heap[j].place = i, j
}
