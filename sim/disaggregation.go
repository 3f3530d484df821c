package sim

import "math"

// pcieBandwidth is how fast a decode instance moves keys and values to the
// host's memory and back, bytes a second (a PCIe 4.0 x16 slot).
const pcieBandwidth = 25e9

// decodeOnly is the policy of the decode side (Zhong et al., OSDI 2024).
type decodeOnly struct{}

func (decodeOnly) form(i *instance, now int64) { i.decodeRoom(now, i.draftsFor(len(i.running))) }

// load is how many requests an instance has.
func (i *instance) load() int {
	return len(i.running) + len(i.pulling) + len(i.flying) + len(i.swapped) + i.queue.len()
}

// handOver gives a request whose prefill is complete to the least loaded decode
// instance. Its keys and values stay where they are until that pulls them.
func (e *Engine) handOver(s *sequence) {
	var to *instance
	for _, i := range e.instances {
		if i.side == decodeSide && (to == nil || i.load() < to.load()) {
			to = i
		}
	}
	s.silence.eventful, s.silence.iteration = true, math.MaxInt64
	to.pulling = append(to.pulling, s)
}

// exchange lands what has arrived and pulls what there is room for. A full
// memory leaves requests on the prefill side, whose memory then fills too. Who
// comes has memory for a step, so that each coming brings a token.
func (i *instance) exchange(now int64) {
	i.land(now)
	for len(i.swapped) > 0 {
		s := i.swapped[len(i.swapped)-1]
		n := i.blocksFor(s.computed + 1 + i.drafts())
		// A block more for each of the others, lest it push them out at once.
		others := len(i.running) + len(i.flying)
		if i.memory.free < n || others > 0 && !i.memory.admits(n+others) {
			break
		}
		i.swapped = i.swapped[:len(i.swapped)-1]
		s.silence.comeBack(now)
		i.fly(s, n, now, int64(math.Round(2*float64(s.computed)*float64(i.kvBytes)/pcieBandwidth*1e9)))
	}
	for len(i.pulling) > 0 && len(i.swapped) == 0 && len(i.running)+len(i.flying) < i.Scheduler.MaxNumSeqs {
		s := i.pulling[0]
		n := i.blocksFor(s.computed + 1 + i.drafts())
		if !i.memory.admits(n) {
			break
		}
		i.pulling = append(i.pulling[:0], i.pulling[1:]...)
		start := max(i.link, now)
		i.fly(s, n, start, i.transfer(s))
		i.link = s.lands
	}
	i.land(now)
}

// transfer is the time that the keys and values of s take on the link.
func (i *instance) transfer(s *sequence) int64 {
	d := i.Disaggregation
	ns := int64(d.Transfer)
	if d.Bandwidth > 0 {
		ns += int64(math.Round(float64(s.computed) * float64(i.kvBytes) / d.Bandwidth))
	}
	if d.Overlap {
		ns = max(0, ns-(s.record.PrefillEnd-s.record.FirstScheduled))
	}
	return ns
}

func (i *instance) fly(s *sequence, blocks int, start, ns int64) {
	i.memory.free -= blocks
	s.blocked, s.lands = blocks, start+ns
	s.silence.transferred += ns
	i.flying = append(i.flying, s)
}

func (i *instance) land(now int64) {
	stay := i.flying[:0]
	for _, s := range i.flying {
		if s.lands > now {
			stay = append(stay, s)
			continue
		}
		s.home.memory.release(s)
		s.home, s.blocks = i, s.blocked
		if s.cancelled {
			i.memory.release(s)
			i.engine.end(s, i, Cancelled, now)
			i.engine.recycle(s)
			continue
		}
		i.running = append(i.running, s)
	}
	clear(i.flying[len(stay):])
	i.flying = stay
}

// without is a list without s.
func without(list []*sequence, s *sequence) []*sequence {
	for k, l := range list {
		if l == s {
			return append(list[:k], list[k+1:]...)
		}
	}
	return list
}
