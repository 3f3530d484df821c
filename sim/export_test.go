package sim

import (
	"cmp"
	"fmt"
	"iter"
	"math"
)

// Records plays requests to the end as Run does and brings their records in
// order of arrival and index, each valid until the next. A record waits for
// those before it, so that memory holds what is under way and what ended since
// the oldest of it arrived. The engine's observer is told too.
func (e *Engine) Records(requests iter.Seq[Request]) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		e.Keep()
		defer func() { e.ordering = nil }()
		settled := func() bool {
			for r := range e.Settled() {
				if !yield(r, nil) {
					return false
				}
			}
			return true
		}
		for r := range requests {
			e.Advance(r.Arrival)
			if !settled() {
				return
			}
			if err := e.Submit(r); err != nil {
				yield(nil, err)
				return
			}
		}
		for at, more := e.Next(); more; at, more = e.Next() {
			e.Advance(at + 1)
			if !settled() {
				return
			}
		}
		if err := e.drained(); err != nil {
			yield(nil, err)
			return
		}
		e.Advance(math.MaxInt64)
		settled()
	}
}

// NewRoofline is the roofline of the system that the options describe, whatever
// its cost model.
func NewRoofline(o Options) (*Roofline, error) {
	p, problem := o.plan()
	if problem == nil {
		host := hostPresets["modern"]
		if o.Host != nil {
			host = *o.Host
		}
		var r *Roofline
		if r, problem = p.roofline(cmp.Or(o.Model, "Llama-3-8B"), "model", host); problem == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("sim: %s %s", problem.Path, problem.Text)
}
