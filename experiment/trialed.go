package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/beacon"
	"fermata/recording"
	"fermata/report"
)

const (
	// truthSlack is what a beacon's times are good for: it may lose its processor
	// between the reading of the clock and the write.
	truthSlack = int64(500 * time.Microsecond)
	// mostExact bounds the stamp errors among which that of exact ones is looked for.
	mostExact = int64(2 * time.Millisecond)
	voidNs    = int64(time.Millisecond)
	clockSlop = int64(time.Microsecond) // between two readings that are taken as one
)

// Trialed is what a trial's recording comes to beside the truth. Times are ns.
type Trialed struct {
	Taken    *Taken
	Requests int
	Failed   int64
	Sender   []int64 // lateness of the beacon's writes
	Error    []int64 // stamps less times of sending
	Exact    []int64 // of exact arrivals
	Bound    []int64
	Gap      []int64 // recorded less true gaps, absolute
	TTFT     []int64 // recorded (from departure) less true (from the server's kernel), absolute
	Lateness []int64 // departures less due times, of measured requests
	Wire     []int64 // the server's kernel stamps less due times, of them
	Due      []int64 // of them

	Violations, Early int64
	Beyond            []int64 // by how much the violated bounds are too narrow, the slack not counted
	EventsPerS        float64 // sent
	InFlight          float64
	CPUPerEvent       float64 // NaN where nobody knows; so the others
	TimedPerEvent     float64
	SetupCPU          float64 // ns a stream
	Memory            float64 // bytes a stream
}

// judgeTrial joins a recording with the truth.
func judgeTrial(t *Trial, taken *Taken, told *beacon.Report) (*Trialed, error) {
	rec, err := recording.Open(t.Dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	r := &Trialed{Taken: taken, Requests: told.Requests}
	truth := map[int64]*beacon.Request{}
	for i := range told.Log {
		truth[told.Log[i].Number] = &told.Log[i]
	}
	r.sender(told)
	clock := taken.clock()
	exact := exactBound(rec)
	var stamps []int64
	for tr := range rec.Traces(recording.Times | recording.Errors) {
		q := truth[numberOf(tr.ResponseID)]
		if tr.Outcome != recording.OK || q == nil || tr.Len() == 0 {
			r.Failed++
			continue
		}
		if err := r.join(&tr, q, clock, exact, &stamps); err != nil {
			return nil, err
		}
	}
	if err := rec.Err(); err != nil {
		return nil, err
	}
	slices.Sort(stamps)
	r.costs(stamps, max(t.Streams, 1))
	return r, nil
}

// numberOf is that of a beacon's answer; -1 for another's.
func numberOf(id string) int64 {
	text, ok := strings.CutPrefix(id, "beacon-")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return -1
	}
	return n
}

// clock turns the server's wall-clock times into the recording's. The wall clock
// may be adjusted under way, as steadily as nothing contradicts.
func (t *Taken) clock() func(wallNs int64) int64 {
	return func(wallNs int64) int64 {
		at := wallNs - t.ZeroWallNs
		if t.SpanNs > 0 {
			at -= int64(float64(t.DriftNs) * float64(at) / float64(t.SpanNs))
		}
		return at
	}
}

// exactBound is the bound that exact arrivals carry, all the same one, to the ns:
// what the start-up probe of the kernel's stamps found. 0 if there is none.
func exactBound(src recording.Source) int64 {
	seen := map[int64]int{}
	for t := range src.Traces(recording.Errors) {
		for _, e := range t.StampErrorNs {
			if e <= mostExact {
				seen[e]++
			}
		}
	}
	bound, most := int64(0), 1
	for e, n := range seen {
		if n > most || n == most && n > 1 && e < bound {
			bound, most = e, n
		}
	}
	return bound
}

// join adds one answer.
func (r *Trialed) join(t *recording.Trace, q *beacon.Request, clock func(int64) int64, exact int64, stamps *[]int64) error {
	if want := len(q.SentNs) * q.Bunch; t.Len() > want || t.Len() <= want-q.Bunch {
		return fmt.Errorf("the recording has %d arrivals of an answer with %d events", t.Len(), want)
	}
	if t.Sent.OK {
		r.TTFT = append(r.TTFT, abs(t.Due+t.DeltaNs[0]-t.Sent.V-(q.SentNs[0]-q.ReceivedNs)))
	}
	if t.Phase == recording.Measured {
		if t.Sent.OK {
			r.Lateness = append(r.Lateness, t.Sent.V-t.Due)
		}
		r.Wire = append(r.Wire, clock(q.ReceivedNs)-t.Due)
		r.Due = append(r.Due, t.Due)
	}
	at, before := t.Due, int64(0)
	for i, d := range t.DeltaNs {
		at += d
		write := i / q.Bunch
		sent := clock(q.SentNs[write])
		late, bound := at-sent, t.StampErrorNs[i]
		*stamps = append(*stamps, at)
		r.Error, r.Bound = append(r.Error, late), append(r.Bound, bound)
		if bound == exact && exact > 0 {
			r.Exact = append(r.Exact, late)
		}
		switch {
		case late < -clockSlop:
			r.Early++
			r.Violations++
			r.Beyond = append(r.Beyond, late)
		case at-bound-truthSlack > sent+q.TookNs[write]:
			r.Violations++
			r.Beyond = append(r.Beyond, at-bound-sent-q.TookNs[write])
		}
		if i%q.Bunch == 0 {
			if i > 0 {
				r.Gap = append(r.Gap, abs(at-before-(q.SentNs[write]-q.SentNs[write-1])))
			}
			before = at
		}
	}
	return nil
}

// sender is how the beacon kept its times, and what it came to.
func (r *Trialed) sender(told *beacon.Report) {
	first, last, writes, inFlight := int64(math.MaxInt64), int64(0), 0, 0.0
	asked := int64(math.MaxInt64)
	for i := range told.Log {
		q := &told.Log[i]
		if len(q.SentNs) == 0 {
			continue
		}
		for k, at := range q.SentNs {
			r.Sender = append(r.Sender, at-q.FirstNs-int64(k)*q.StepNs)
		}
		end := q.SentNs[len(q.SentNs)-1]
		first, last, asked = min(first, q.SentNs[0]), max(last, end), min(asked, q.ReceivedNs)
		writes += len(q.SentNs) * q.Bunch
		inFlight += float64(end - q.ReceivedNs)
	}
	if last > first {
		r.EventsPerS = float64(writes) / (float64(last-first) / 1e9)
		r.InFlight = inFlight / float64(last-asked)
	}
}

// costs are what the client's marks say: processor time over a stretch in which
// nothing but events came, what came before, and memory just before the first.
func (r *Trialed) costs(stamps []int64, streams int) {
	r.CPUPerEvent, r.TimedPerEvent, r.SetupCPU, r.Memory = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	marks := r.Taken.Marks
	if len(stamps) == 0 || len(marks) < 2 || marks[0].Memory < 0 {
		return
	}
	first, last := stamps[0], stamps[len(stamps)-1]
	ready := slices.IndexFunc(marks, func(m Mark) bool { return m.At >= first }) - 1
	if ready > 0 {
		r.SetupCPU = float64(marks[ready].CPU-marks[0].CPU) / float64(streams)
		r.Memory = float64(marks[ready].Memory-marks[0].Memory) / float64(streams)
	}
	// Decoding follows a while behind arrivals, so that both ends are left out.
	edge := min(int64(200*time.Millisecond), (last-first)/8)
	a := slices.IndexFunc(marks, func(m Mark) bool { return m.At >= first+edge })
	b := slices.IndexFunc(marks, func(m Mark) bool { return m.At > last-edge }) - 1
	if a < 0 || b <= a {
		return
	}
	from, _ := slices.BinarySearch(stamps, marks[a].At)
	to, _ := slices.BinarySearch(stamps, marks[b].At)
	if to <= from {
		return
	}
	r.CPUPerEvent = float64(marks[b].CPU-marks[a].CPU) / float64(to-from)
	if marks[a].Timed >= 0 && marks[b].Timed >= 0 {
		r.TimedPerEvent = float64(marks[b].Timed-marks[a].Timed) / float64(to-from)
	}
}

// Void says that the beacon itself was too late for the trial to mean anything.
func (r *Trialed) Void() bool { return spread(r.Sender).P99 >= voidNs }

// Step is the trial as the self-test shows it.
func (r *Trialed) Step(t *Trial) report.SelftestStep {
	s := report.SelftestStep{
		Streams: t.Streams, PerStream: float64(time.Second) / float64(t.Plan.Gap), Sent: r.EventsPerS, Events: int64(len(r.Error)),
		Failed: r.Failed, Void: r.Void(), Sender: spread(r.Sender), Error: spread(r.Error), Bound: spread(r.Bound),
		GapError: spread(r.Gap), TTFTError: spread(r.TTFT), Violations: r.Violations, Early: r.Early, InFlight: r.InFlight,
		CPUPerEvent: known(r.CPUPerEvent), TimedPerEvent: known(r.TimedPerEvent), SetupCPU: known(r.SetupCPU), Memory: known(r.Memory),
	}
	s.Asked = float64(s.Streams) * s.PerStream
	if len(r.Exact) > 0 {
		e := spread(r.Exact)
		s.ErrorExact, s.ExactShare = &e, float64(len(r.Exact))/float64(len(r.Error))
	}
	return s
}

func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// spread sorts v and takes its percentiles.
func spread(v []int64) report.Spread {
	slices.Sort(v)
	n := len(v)
	if n == 0 {
		return report.Spread{}
	}
	at := func(p float64) int64 { return v[max(0, int(math.Ceil(float64(n)*p-1e-9))-1)] }
	return report.Spread{N: int64(n), P50: at(.5), P99: at(.99), P999: at(.999), Max: v[n-1]}
}

func abs(v int64) int64 { return max(v, -v) }
