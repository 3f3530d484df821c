package load

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
)

// A diary is a witness that keeps what it was told.
type diary struct {
	mu     sync.Mutex
	begun  []int64
	silent []int64
	first  map[int64]int64
	ended  map[int64]recording.Outcome
	tell   chan int64 // index of each that has begun; nil for nobody
}

func (d *diary) Begun(index, _ int64) {
	d.mu.Lock()
	d.begun = append(d.begun, index)
	d.mu.Unlock()
	if d.tell != nil {
		d.tell <- index
	}
}

func (d *diary) Silent(index int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent = append(d.silent, index)
}

func (d *diary) First(index, ns int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first == nil {
		d.first = map[int64]int64{}
	}
	d.first[index] = ns
}

func (d *diary) Ended(t *recording.Trace) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = map[int64]recording.Outcome{}
	}
	d.ended[t.Index] = t.Outcome
}

// steeredJob is a job whose rate the helm sets.
func steeredJob(t testing.TB, url string) (Job, *schedule.Helm) {
	t.Helper()
	j := job(t, url, newTape(), schedule.Options{Rate: 1, Requests: 1})
	s, h, err := schedule.NewSteered(schedule.Options{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	j.Schedule = s
	return j, h
}

// gaps are the times between due times, the first from time zero.
func gaps(traces []recording.Trace) []float64 {
	var all []float64
	var before int64
	for _, tr := range traces {
		all = append(all, float64(tr.Due-before))
		before = tr.Due
	}
	return all
}

// What is offered is what was steered, to the nanosecond: with one seed the gaps of
// two runs that were steered differently, from outside and while they ran, are the
// same but for the rates. The leg that the helm calls measured is the window.
func TestSteeredRun(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 5ms, gap: 1ms}")
	rates := [2][]float64{{400, 200, 800}, {100, 1600, 300}}
	var units [2][]float64
	for k := range rates {
		j, h := steeredJob(t, url)
		d := &diary{tell: make(chan int64, 1000)}
		j.Witness = d
		go func() {
			phases := []schedule.Phase{schedule.Warmup, schedule.Warmup, schedule.Measured}
			for i, rate := range rates[k] {
				if err := h.Go(schedule.Leg{Requests: 20, Rate: rate, Phase: phases[i]}); err != nil {
					t.Error(err)
				}
				for n := 0; n < 20; n++ {
					<-d.tell
				}
			}
			if err := h.Go(schedule.Leg{Rate: rates[k][2], Phase: schedule.Drain}); err != nil {
				t.Error(err)
			}
		}()
		end, r := offer(t, j)
		p := phases(r)
		if len(p[recording.Warmup]) != 40 || len(p[recording.Measured]) != 20 || end.WindowStart != p[recording.Measured][0].Due || end.Why != schedule.NextWasDue || end.Interrupted != "" {
			t.Errorf("%d and %d requests, %+v", len(p[recording.Warmup]), len(p[recording.Measured]), end)
		}
		if next := p[recording.Drain]; len(next) > 0 && end.WindowEnd != next[0].Due {
			t.Errorf("the window ends at %d, the next request was due at %d", end.WindowEnd, next[0].Due)
		}
		all := append(p[recording.Warmup], p[recording.Measured]...)
		for i, gap := range gaps(all) {
			units[k] = append(units[k], gap*rates[k][i/20]/1e9)
		}
		if len(d.ended) != len(r.traces) || !slices.IsSorted(d.begun) || len(d.silent) > 0 {
			t.Errorf("the witness was told of %d ends of %d, and of %d silences", len(d.ended), len(r.traces), len(d.silent))
		}
		for _, tr := range r.traces {
			if d.ended[tr.Index] != tr.Outcome {
				t.Errorf("request %d ended as %s, told was %s", tr.Index, tr.Outcome, d.ended[tr.Index])
			}
		}
	}
	sum := 0.0
	for i := range units[0] {
		if math.Abs(units[0][i]-units[1][i]) > 4e-6 { // two roundings of half a ns at 1600/s, on either side
			t.Errorf("gap %d is %v and %v", i, units[0][i], units[1][i])
		}
		sum += units[0][i]
	}
	if mean := sum / 60; mean < .6 || mean > 1.5 { // 4 standard deviations
		t.Errorf("mean gap %v", mean)
	}
}

// A pause is as long as whoever steers waits, and nothing is sent meanwhile.
func TestSteeredRunPauses(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 5ms}")
		j, h := steeredJob(t, url)
		d := &diary{tell: make(chan int64, 100)}
		j.Witness = d
		j.TimeScale = 10 // simulated: 40/s are 400/s on the clock
		if err := h.Go(schedule.Leg{Requests: 10, Rate: 40, Phase: schedule.Warmup}); err != nil {
			t.Fatal(err)
		}
		resume := 10 * 400 * ms
		go func() {
			for range 10 {
				<-d.tell
			}
			time.Sleep(100 * time.Millisecond)
			if err := h.Go(schedule.Leg{Requests: 10, Rate: 40, Phase: schedule.Measured, NotBefore: resume}); err != nil {
				t.Error(err)
			}
			h.End()
		}()
		_, r := offer(t, j)
		p := phases(r)
		if first := p[recording.Measured][0].Due; len(p[recording.Measured]) != 10 || first < resume/10 || first > resume/10+200*ms {
			t.Errorf("%d after the pause, the first due at %d", len(p[recording.Measured]), first)
		}
		if last := p[recording.Warmup][9].Due; last > 100*ms {
			t.Errorf("the tenth at 400/s was due at %d", last)
		}
	})
}

// A request without a token is told of once, as soon as nobody waits for it any
// longer, and when it ends.
func TestWitnessOfSilence(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 700ms}")
		j, h := steeredJob(t, url)
		d := &diary{}
		j.Witness, j.Patience = d, 50*ms
		if err := h.Go(schedule.Leg{Requests: 5, Rate: 1000, Phase: schedule.Measured}); err != nil {
			t.Fatal(err)
		}
		h.End()
		var early int
		seen := make(chan struct{})
		go func() {
			defer close(seen)
			for range 100 { // until all are silent, which is long before one has ended
				time.Sleep(5 * time.Millisecond)
				d.mu.Lock()
				early = len(d.silent)
				ended := len(d.ended)
				d.mu.Unlock()
				if early == 5 || ended > 0 {
					return
				}
			}
		}()
		offer(t, j)
		<-seen
		slices.Sort(d.silent)
		if early != 5 || !slices.Equal(d.silent, []int64{0, 1, 2, 3, 4}) || len(d.ended) != 5 {
			t.Errorf("%d before the first had ended, silent %v, ended %v", early, d.silent, d.ended)
		}
	})
}

// The first token is told of while the answer goes on, with the time that the
// recording has.
func TestWitnessOfFirstTokens(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 30ms, gap: 150ms}")
	j, h := steeredJob(t, url)
	d := &diary{}
	j.Witness, j.Patience = d, 60_000*ms
	if err := h.Go(schedule.Leg{Requests: 5, Rate: 1000, Phase: schedule.Measured}); err != nil {
		t.Fatal(err)
	}
	h.End()
	_, r := offer(t, j)
	if len(d.first) != 5 || len(d.silent) > 0 {
		t.Errorf("told of %d, silent %v", len(d.first), d.silent)
	}
	for _, tr := range r.traces {
		if d.first[tr.Index] != tr.DeltaNs[0] {
			t.Errorf("request %d: %d ns, %d recorded", tr.Index, d.first[tr.Index], tr.DeltaNs[0])
		}
	}
}

// Who stops a steered run that waits for its helm need not wait.
func TestSteeredRunStops(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 5ms}")
	j, h := steeredJob(t, url)
	d := &diary{tell: make(chan int64, 100)}
	j.Witness = d
	if err := h.Go(schedule.Leg{Requests: 3, Rate: 1000, Phase: schedule.Warmup}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go func() {
		for range 3 {
			<-d.tell
		}
		time.Sleep(50 * time.Millisecond)
		close(stop)
	}()
	end, r := offerUntil(t, t.Context(), stop, j)
	if end.Interrupted != "interrupted" || len(r.traces) != 3 {
		t.Errorf("%d requests, %+v", len(r.traces), end)
	}
}
