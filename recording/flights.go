package recording

import "iter"

// flights are the requests in flight, by their keys. Nearly all are first tries, and
// those are found by their number alone, which is faster: it is done for every arrival.
// The zero value is empty.
type flights[T any] struct {
	first map[int64]*T
	again map[key]*T
}

// at is the request with that key, or nil.
func (f *flights[T]) at(k key) *T {
	if k.try == 0 {
		return f.first[k.index]
	}
	return f.again[k]
}

func (f *flights[T]) put(k key, v *T) {
	switch {
	case k.try != 0 && f.again == nil:
		f.again = map[key]*T{k: v}
	case k.try != 0:
		f.again[k] = v
	case f.first == nil:
		f.first = map[int64]*T{k.index: v}
	default:
		f.first[k.index] = v
	}
}

func (f *flights[T]) remove(k key) {
	delete(f.again, k)
	if k.try == 0 {
		delete(f.first, k.index)
	}
}

// all are the requests in any order.
func (f *flights[T]) all() iter.Seq2[key, *T] {
	return func(yield func(key, *T) bool) {
		for index, v := range f.first {
			if !yield(key{index: index}, v) {
				return
			}
		}
		for k, v := range f.again {
			if !yield(k, v) {
				return
			}
		}
	}
}
