package sim

import (
	"container/heap"
	"iter"
)

// Keep makes e keep the records of ended requests, for Settled. It is called
// before the first request.
func (e *Engine) Keep() { e.ordering = &ordering{} }

// Settled are the kept records that nothing can come before any more, in order
// of arrival and index, each valid until the next and brought once. After an
// Advance to the end of time they are all there are.
func (e *Engine) Settled() iter.Seq[*Record] {
	return func(yield func(*Record) bool) { e.ordering.yield(e.frontier, yield) }
}

// An ordering holds ended records until none before them is missing.
type ordering struct {
	submitted places
	ended     ended
	spare     []*Record
}

// A place is where a record belongs.
type place struct{ arrival, index int64 }

func (a place) before(b place) bool {
	return a.arrival < b.arrival || a.arrival == b.arrival && a.index < b.index
}

func (r *Record) place() place { return place{r.Request.Arrival, r.Request.Index} }

func (o *ordering) submit(r *Request) { heap.Push(&o.submitted, place{r.Arrival, r.Index}) }

func (o *ordering) keep(r *Record) {
	c := &Record{}
	if n := len(o.spare); n > 0 {
		c, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	tokens, apart, culprits := c.Tokens[:0], c.apart[:0], c.culprits[:0]
	*c = *r
	c.Tokens, c.apart, c.culprits = append(tokens, r.Tokens...), append(apart, r.apart...), append(culprits, r.culprits...)
	heap.Push(&o.ended, c)
}

// yield brings the records that nothing before frontier can come before any
// more.
func (o *ordering) yield(frontier int64, yield func(*Record) bool) {
	for len(o.ended) > 0 && o.ended[0].place() == o.submitted[0] && o.submitted[0].arrival < frontier {
		heap.Pop(&o.submitted)
		r := heap.Pop(&o.ended).(*Record)
		more := yield(r)
		o.spare = append(o.spare, r)
		if !more {
			return
		}
	}
}

type places []place

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i].before(p[j]) }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(x any)        { *p = append(*p, x.(place)) }
func (p *places) Pop() any {
	old := *p
	x := old[len(old)-1]
	*p = old[:len(old)-1]
	return x
}

type ended []*Record

func (e ended) Len() int           { return len(e) }
func (e ended) Less(i, j int) bool { return e[i].place().before(e[j].place()) }
func (e ended) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ended) Push(x any)        { *e = append(*e, x.(*Record)) }
func (e *ended) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}
