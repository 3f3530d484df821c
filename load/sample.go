package load

import (
	"runtime"
	"runtime/debug"
	"time"

	"fermata/recording"
	"fermata/wire"
)

// sample records the state of the instrument once a second.
func (r *run) sample(over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := r.readings()
	take := func() {
		l := r.live()
		s, now := r.since(&l, last)
		last = now
		if r.Sampled != nil {
			r.Sampled(&s)
		}
		_ = r.keep.Sample(s)
		if r.Job.Live != nil {
			r.Job.Live(l)
		}
	}
	for {
		select {
		case <-tick.C:
			take()
		case <-over:
			if time.Since(last.at) > time.Second/10 {
				take()
			}
			return
		}
	}
}

// readings are those of counters that only their growth says something about.
type readings struct {
	at       time.Time
	cpu      time.Duration // that this process used
	idle     time.Duration // of the machine's cores; negative where the system does not say
	pressed  time.Duration // in which some task waited for a core; negative likewise
	pause    time.Duration // of the garbage collector
	cycles   int64
	wallNs   int64 // the wall clock less the monotonic one
	wallTold bool
}

func (r *run) readings() readings {
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	n := readings{
		at: time.Now(), cpu: processCPU(), idle: idleCores(), pressed: cpuPressure(),
		pause: gc.PauseTotal, cycles: gc.NumGC,
	}
	n.wallNs, n.wallTold = r.clock.Wall()
	return n
}

// since is the sample of the time since the readings before, with those of now.
func (r *run) since(l *Live, before readings) (recording.Sample, readings) {
	now := r.readings()
	took := float64(now.at.Sub(before.at))
	cycles := now.cycles - before.cycles
	s := recording.Sample{
		TimeNs: l.TimeNs, Due: l.Due, Sent: l.Sent, Finished: l.Finished, Failed: l.Failed,
		InFlight: l.InFlight, Waiting: l.Waiting, Tokens: l.Tokens,
		LatenessMaxNs: r.tally.latenessMax.Swap(0),
		CPU:           float64(now.cpu-before.cpu) / took, CoresFree: -1,
		Cores:     int64(runtime.NumCPU()),
		GCPauseNs: int64(now.pause - before.pause), GCCycles: &cycles,
	}
	if now.idle >= 0 {
		s.CoresFree = float64(now.idle-before.idle) / took
	}
	if now.pressed >= 0 {
		share := min(1, float64(now.pressed-before.pressed)/took)
		s.CPUPressure = &share
	}
	if now.wallTold && before.wallTold {
		step := now.wallNs - before.wallNs
		s.ClockStepNs = &step
	}
	if m, ok := r.transport.(wire.Monitored); ok {
		fill(&s, m.Vitals())
	}
	return s, now
}

// fill adds what a transport says of itself.
func fill(s *recording.Sample, v wire.Vitals) {
	s.Reads, s.ReadsLeft = &v.Reads, &v.Left
	if h := v.Lag; h != nil {
		s.ReadLagBuckets, s.ReadLagCounts = h.Buckets, h.Counts
	}
	if h := v.Canary; h != nil {
		s.CanaryBuckets, s.CanaryCounts = h.Buckets, h.Counts
	}
	if v.Turn.OK {
		s.LoopTurnNs = &v.Turn.V
	}
}
