package recording

import "errors"

// A Sample is the state of the instrument in one second of a run, and what the
// server said of itself: what Health is made from, kept in series.parquet. What
// is a pointer is nil where it does not apply or nobody told.
type Sample struct {
	TimeNs        int64   `parquet:"time_ns"`         // end of the second, since the run's start
	Due           int64   `parquet:"due"`             // requests that were due so far
	Sent          int64   `parquet:"sent"`            // of them, those that left
	Finished      int64   `parquet:"finished"`        // ended in any way
	Failed        int64   `parquet:"failed"`          // of them, those that were not ok
	InFlight      int64   `parquet:"in_flight"`       // sent and not ended
	Waiting       int64   `parquet:"waiting"`         // due, but held back by max_in_flight
	Tokens        int64   `parquet:"tokens"`          // tokens that arrived so far
	LatenessMaxNs int64   `parquet:"lateness_max_ns"` // latest sending in this second
	CPU           float64 `parquet:"cpu"`             // cores that this process used in this second
	CoresFree     float64 `parquet:"cores_free"`      // cores that no one used; -1 where the system does not say
	Cores         int64   `parquet:"cores"`           // cores that this process may use
	GCPauseNs     int64   `parquet:"gc_pause_ns"`     // garbage collector's pauses in this second

	// How late sockets were read after the kernel had received their bytes; without
	// the kernel's word, how late events of a known time were stamped that went the
	// same way (a canary). As Histogram; empty where there is none.
	ReadLagBuckets []int32 `parquet:"read_lag_bucket,list"`
	ReadLagCounts  []int64 `parquet:"read_lag_count,list"`
	CanaryBuckets  []int32 `parquet:"canary_bucket,list"`
	CanaryCounts   []int64 `parquet:"canary_count,list"`

	Reads       *int64   `parquet:"reads"`         // of sockets, that brought something
	ReadsLeft   *int64   `parquet:"reads_left"`    // of them, those that left data in the queue
	LoopTurnNs  *int64   `parquet:"loop_turn_ns"`  // longest turn of an event loop, from when it was to begin
	GCCycles    *int64   `parquet:"gc_cycles"`     // garbage collections that ended
	CPUPressure *float64 `parquet:"cpu_pressure"`  // share of the second in which some task of this machine waited for a core
	ClockStepNs *int64   `parquet:"clock_step_ns"` // by how much the wall clock moved against the monotonic one

	Server              *string  `parquet:"server"`                // which server told, by the names of its figures
	ServerTimeNs        *int64   `parquet:"server_time_ns"`        // when it was asked, since the run's start
	ServerRunning       *float64 `parquet:"server_running"`        // requests that it works on
	ServerWaiting       *float64 `parquet:"server_waiting"`        // … that wait in it
	ServerKV            *float64 `parquet:"server_kv_usage"`       // share of its key-value cache in use
	ServerPreemptions   *float64 `parquet:"server_preemptions"`    // requests that lost their place, since its start
	ServerPrefixQueries *float64 `parquet:"server_prefix_queries"` // tokens that it looked up in its prefix cache, since its start …
	ServerPrefixHits    *float64 `parquet:"server_prefix_hits"`    // … and found
	ServerPrefixShare   *float64 `parquet:"server_prefix_share"`   // share found, where only that is told
}

// ReadLag is the sample's histogram of it.
func (s *Sample) ReadLag() *Histogram { return histogramOf(s.ReadLagBuckets, s.ReadLagCounts) }

// Canary is the sample's histogram of it.
func (s *Sample) Canary() *Histogram { return histogramOf(s.CanaryBuckets, s.CanaryCounts) }

func histogramOf(buckets []int32, counts []int64) *Histogram {
	if len(buckets) == 0 && len(counts) == 0 {
		return nil
	}
	return &Histogram{buckets, counts}
}

// check says what is wrong with a sample that was read from a file.
func (s *Sample) check() error {
	for _, h := range []*Histogram{s.ReadLag(), s.Canary()} {
		if h == nil {
			continue
		}
		if err := h.Check(); err != nil {
			return errors.Join(errColumn, err)
		}
	}
	return nil
}

// sampleInts are the integers of a sample in the order of the journal.
func sampleInts(s *Sample) [11]*int64 {
	return [...]*int64{
		&s.TimeNs, &s.Due, &s.Sent, &s.Finished, &s.Failed, &s.InFlight, &s.Waiting,
		&s.Tokens, &s.LatenessMaxNs, &s.GCPauseNs, &s.Cores,
	}
}

// sampleMore are the numbers that a sample may have besides, in the order of
// their bits in the journal's mask: first whole ones, then others.
func sampleMore(s *Sample) ([6]**int64, [8]**float64) {
	return [...]**int64{&s.Reads, &s.ReadsLeft, &s.LoopTurnNs, &s.GCCycles, &s.ClockStepNs, &s.ServerTimeNs},
		[...]**float64{
			&s.CPUPressure, &s.ServerRunning, &s.ServerWaiting, &s.ServerKV, &s.ServerPreemptions,
			&s.ServerPrefixQueries, &s.ServerPrefixHits, &s.ServerPrefixShare,
		}
}

// The histograms and the server's name have bits of their own behind those.
const (
	sampleReadLag = 1 << (16 + iota)
	sampleCanary
	sampleServer
)

func appendSample(b []byte, s *Sample) []byte {
	for _, v := range sampleInts(s) {
		b = appendInt(b, *v)
	}
	b = appendFloat(appendFloat(b, s.CPU), s.CoresFree)
	ints, floats := sampleMore(s)
	mask := uint64(0)
	for i, v := range ints {
		if *v != nil {
			mask |= 1 << i
		}
	}
	for i, v := range floats {
		if *v != nil {
			mask |= 1 << (len(ints) + i)
		}
	}
	lag, canary := s.ReadLag(), s.Canary()
	if lag != nil {
		mask |= sampleReadLag
	}
	if canary != nil {
		mask |= sampleCanary
	}
	if s.Server != nil {
		mask |= sampleServer
	}
	if mask == 0 {
		return b
	}
	b = appendUint(b, mask)
	for _, v := range ints {
		if *v != nil {
			b = appendInt(b, **v)
		}
	}
	for _, v := range floats {
		if *v != nil {
			b = appendFloat(b, **v)
		}
	}
	for _, h := range []*Histogram{lag, canary} {
		if h != nil {
			b = appendHistogram(b, h)
		}
	}
	if s.Server != nil {
		b = appendString(b, *s.Server)
	}
	return b
}

// appendHistogram writes how many buckets there are, then each less the one
// before, and its count.
func appendHistogram(b []byte, h *Histogram) []byte {
	b = appendUint(b, uint64(len(h.Buckets)))
	last := int32(0)
	for i, bucket := range h.Buckets {
		b = appendUint(appendUint(b, uint64(bucket-last)), uint64(h.Counts[i]))
		last = bucket
	}
	return b
}

func (c *cursor) histogram() (buckets []int32, counts []int64) {
	last := uint64(0)
	for range c.count() {
		last += c.uint()
		if last >= histogramBuckets {
			c.fail()
			return nil, nil
		}
		buckets, counts = append(buckets, int32(last)), append(counts, int64(c.uint()))
	}
	return buckets, counts
}

func (c *cursor) sample() (Sample, error) {
	var s Sample
	for _, v := range sampleInts(&s) {
		*v = c.int()
	}
	s.CPU, s.CoresFree = c.float(), c.float()
	if len(c.b) == 0 || c.bad {
		return s, c.err()
	}
	ints, floats := sampleMore(&s)
	mask := c.uint()
	for i, v := range ints {
		if mask&(1<<i) != 0 {
			n := c.int()
			*v = &n
		}
	}
	for i, v := range floats {
		if mask&(1<<(len(ints)+i)) != 0 {
			f := c.float()
			*v = &f
		}
	}
	if mask&sampleReadLag != 0 {
		s.ReadLagBuckets, s.ReadLagCounts = c.histogram()
	}
	if mask&sampleCanary != 0 {
		s.CanaryBuckets, s.CanaryCounts = c.histogram()
	}
	if mask&sampleServer != 0 {
		name := c.string()
		s.Server = &name
	}
	return s, c.err()
}
