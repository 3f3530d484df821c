package beacon

// A due is a queue of streams by the time of their next write: a heap with four
// children a node, which touches fewer cache lines than one with two.
type due []*stream

func (h *due) push(s *stream) {
	*h = append(*h, s)
	q := *h
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 4
		if q[up].next <= s.next {
			break
		}
		q[i] = q[up]
		q[i].place = i
		i = up
	}
	q[i], s.place = s, i
}

// fix restores the order below place i, where s belongs or later.
func (h due) fix(i int, s *stream) {
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for k := first + 1; k < min(first+4, len(h)); k++ {
			if h[k].next < h[least].next {
				least = k
			}
		}
		if h[least].next >= s.next {
			break
		}
		h[i] = h[least]
		h[i].place = i
		i = least
	}
	h[i], s.place = s, i
}

// remove takes s out.
func (h *due) remove(s *stream) {
	q := *h
	last := q[len(q)-1]
	*h = q[:len(q)-1]
	if last == s {
		return
	}
	i := s.place
	for i > 0 && (*h)[(i-1)/4].next > last.next {
		up := (i - 1) / 4
		(*h)[i] = (*h)[up]
		(*h)[i].place = i
		i = up
	}
	h.fix(i, last)
}
