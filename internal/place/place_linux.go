package place

import "golang.org/x/sys/unix"

const (
	roundRobin = 2  // SCHED_RR: as SCHED_FIFO, but threads of one priority take turns
	priority   = 50 // in the middle of what it has
)

// Cores are those that this process may use.
func Cores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for c := range 8 * len(set) * 8 {
		if set.IsSet(c) {
			all = append(all, c)
		}
	}
	return all
}

// enter takes the calling thread there.
func (p Place) enter() (cores, realtime bool) {
	if len(p.Cores) > 0 {
		var set unix.CPUSet
		for _, c := range p.Cores {
			set.Set(c)
		}
		cores = unix.SchedSetaffinity(0, &set) == nil
	}
	if p.Realtime {
		realtime = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: roundRobin, Priority: priority}, 0) == nil
	}
	return cores, realtime
}
