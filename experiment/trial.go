package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"fermata/beacon"
	"fermata/dialect"
	"fermata/load"
	"fermata/recording"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

// A Trial is one load of the self-test: what a beacon is asked for, and how. The
// client of a trial is a process of its own (TrialMain).
type Trial struct {
	Streams   int         // of a closed loop
	Requests  int         // of the closed loop in all; 0: one a stream
	Rate      float64     // requests a second of a Poisson process, instead of a closed loop; a second of warm-up comes first
	Plan      beacon.Plan // Wait and Events are filled in where they are 0
	Transport string      // fast, compatible or empty: as a run would choose
	Collect   bool        // the client collects its garbage once all streams have asked, before the first event
	Wide      bool        // the client may use the beacon's cores too: with one core alone nothing spins until a due time

	URL string // of the beacon; the rig's
	Dir string // for the recording; the rig's
}

// Taken is what the client of a trial tells besides its recording.
type Taken struct {
	ZeroWallNs int64  // wall clock at time zero
	DriftNs    int64  // how much farther the wall clock went than the monotonic one from then to the end …
	SpanNs     int64  // … this much later
	Transport  string // that was used
	Marks      []Mark
	Peak       int64  // most memory that it had, files that it mapped included, in bytes; -1 where the system does not say
	Failure    string // why there is no recording
}

// A Mark is the client's use of the machine at one moment.
type Mark struct {
	At     int64 // since time zero
	CPU    int64 // processor time used, ns
	Timed  int64 // of it, by the event loops; -1 where there are none
	Memory int64 // bytes of its own: neither files nor shared; -1 where the system does not say
}

// openWarmup is what an open loop's connections are made in.
const openWarmup = "1s"

const markEvery = 50 * time.Millisecond

// TrialMain is the client of a trial as a process of its own: it reads a Trial from
// in and writes what it took to out. It ends early when in does: whoever started
// it is gone.
func TrialMain(in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	var t Trial
	if err := d.Decode(&t); err != nil {
		return fmt.Errorf("reading the trial: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_ = d.Decode(&struct{}{}) // nothing more comes
		cancel()
	}()
	taken, err := t.take(ctx)
	if err != nil {
		taken.Failure = err.Error()
	}
	return json.NewEncoder(out).Encode(taken)
}

// take offers the load and records it into t.Dir.
func (t *Trial) take(ctx context.Context) (taken Taken, err error) {
	d, err := dialect.New(dialect.Options{Model: "beacon"})
	if err != nil {
		return taken, err
	}
	arrivals, err := schedule.New(t.schedule(), 1)
	if err != nil {
		return taken, err
	}
	rec, err := recording.Create(t.Dir, recording.Meta{Tool: "fermata selftest", TimeScale: 1})
	if err != nil {
		return taken, err
	}
	choice, err := wire.Choose(t.Transport, wire.Options{}, t.URL)
	if err != nil {
		return taken, err
	}
	taken.Transport = choice.Name
	var clock wire.Clock
	var marks marker
	marks.mark(0)
	var record load.Recorder = rec
	if t.Collect {
		record = &collecting{Recorder: rec, left: int64(t.Streams)}
	}
	job := load.Job{
		Schedule: arrivals, Record: record,
		Target: load.Target{
			URL: t.URL, Dialect: d, Prompts: asks{int32(t.Plan.Events)},
			Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Accept-Encoding": {"identity"}},
		},
		Transport: func(c wire.Clock) wire.Transport {
			t := choice.New(c)
			marks.loops, _ = t.(wire.Looped)
			return t
		},
		Started: func(c wire.Clock) {
			clock, taken.ZeroWallNs = c, c.ZeroWallNs()
			marks.start(c)
		},
	}
	end, err := load.Run(ctx, nil, job)
	marks.end()
	taken.Marks, taken.Peak = marks.all, peakMemory()
	now := time.Now()
	taken.SpanNs = clock.At(now)
	taken.DriftNs = now.UnixNano() - taken.ZeroWallNs - taken.SpanNs
	if err != nil {
		_ = rec.Abandon()
		return taken, err
	}
	if err := rec.Close(); err != nil {
		return taken, err
	}
	if end.Interrupted != "" {
		return taken, fmt.Errorf("the load was cut short: %s", end.Interrupted)
	}
	return taken, nil
}

func (t *Trial) schedule() schedule.Options {
	o := schedule.Options{Kind: schedule.Closed, Concurrency: t.Streams, Requests: int64(max(t.Streams, t.Requests)), Warmup: "0", Drain: "quiet"}
	if t.Rate > 0 {
		o = schedule.Options{Kind: schedule.Poisson, Rate: t.Rate, Requests: int64(t.Requests), Warmup: openWarmup, Drain: "quiet"}
	}
	return o
}

// A collecting recorder has the process collect its garbage a moment after so many
// requests have left.
type collecting struct {
	load.Recorder
	left int64
}

// Sent implements load.Recorder. One goroutine calls it, the transport's decoder.
func (c *collecting) Sent(index int64, try int32, at int64, connected recording.Maybe[int64]) error {
	if c.left--; c.left == 0 {
		time.AfterFunc(2*markEvery, debug.FreeOSMemory)
	}
	return c.Recorder.Sent(index, try, at, connected)
}

// asks are the prompts of a trial, all alike.
type asks struct{ output int32 }

// At implements load.Prompts.
func (a asks) At(index int64, _, _ int32) (workload.Request, bool) {
	return workload.Request{ID: index, Prompt: "Count.", OutputTokens: a.output}, true
}

// Conversation implements load.Prompts.
func (a asks) Conversation(int64) (int64, int, bool) { return 0, 0, false }

// A marker marks the use of the machine every markEvery until end.
type marker struct {
	all   []Mark
	loops wire.Looped // nil where there are none
	stop  chan struct{}
	done  chan struct{}
}

func (m *marker) mark(at int64) {
	k := Mark{At: at, Timed: -1}
	k.CPU, k.Memory = ownUse()
	if m.loops != nil {
		k.Timed = m.loops.Timed()
	}
	m.all = append(m.all, k)
}

func (m *marker) start(c wire.Clock) {
	m.all[0].At = c.Now()
	m.stop, m.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(m.done)
		tick := time.NewTicker(markEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.mark(c.Now())
			case <-m.stop:
				m.mark(c.Now())
				return
			}
		}
	}()
}

func (m *marker) end() {
	if m.stop != nil {
		close(m.stop)
		<-m.done
	}
}

// room is how many streams this machine lets one process have.
func room() int {
	l := limits(wire.MachineLimits())
	n := int64(1 << 30)
	if l.Files > 0 {
		n = min(n, l.Files-2*ownFiles)
	}
	if l.Ports > 0 {
		n = min(n, l.Ports)
	}
	return int(max(0, n))
}

// trialFolders is how the names of folders for trials begin.
const trialFolders = "fermata-selftest-"

func tempFolder() (string, func(), error) {
	dir, err := os.MkdirTemp("", trialFolders)
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for the self-test's recordings: %w", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}
