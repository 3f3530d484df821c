package load

import (
	"net"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
	"fermata/wire"
)

// A departures is a recorder that counts what was sent.
type departures struct {
	*recording.Recorder
	n atomic.Int64
}

func (d *departures) Sent(index int64, try int32, at int64, connected recording.Maybe[int64]) error {
	d.n.Add(1)
	return d.Recorder.Sent(index, try, at, connected)
}

// A stream that waits for its answer costs less than a KiB of this process's memory: its user, its
// request, its connection, its place in the journal. Beside it are the blocks of the transport's
// log, as many as its decoder was behind.
func TestStreamsAreSmall(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		const streams = 2000
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}) // the system connects without us
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		url := "http://" + ln.Addr().String() + "/v1/chat/completions"
		if choice, err := wire.Choose(os.Getenv("FERMATA_TRANSPORT"), wire.Options{}, url); err != nil || choice.Name != wire.FastName {
			t.Skip("net/http has goroutines and buffers for each connection")
		}
		rec, err := recording.Create(t.TempDir()+"/run", recording.Meta{Tool: "test", TimeScale: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Abandon()
		use := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc + m.StackInuse)
		}
		sent := &departures{Recorder: rec}
		j := job(t, url, sent, schedule.Options{Kind: schedule.Closed, Concurrency: streams, Requests: streams, Warmup: "0", Drain: "quiet"})
		j.Options.Timeout = 20 * time.Second // for which this may take, on any machine
		before := use()
		stop, done := make(chan struct{}), make(chan struct{})
		var took int64
		go func() {
			defer close(done)
			for sent.n.Load() < streams {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond) // the decoder's turn
			took = (use() - before) / streams
			close(stop)
			ln.Close() // which resets them all
		}()
		if _, err := Run(t.Context(), stop, j); err != nil {
			t.Fatal(err)
		}
		<-done
		t.Logf("%d bytes a stream", took)
		if took > 3*1024 {
			t.Errorf("%d bytes a stream", took)
		}
	})
}

// Taking an arrival allocates nothing but the room for it.
func TestArrivalsAllocateNothing(t *testing.T) {
	const events = 1000
	r := &run{Job: Job{Record: unrecorded{}}}
	f := &flight{run: r, to: &Target{Dialect: chat(t, dialect.Options{Model: "m"})}}
	r.keep = keeper{r}
	r.furnish(f.to)
	r.arm(f, false)
	if err := f.Head(200, http.Header{"Content-Type": {"text/event-stream"}}, wire.Stamp{}); err != nil {
		t.Fatal(err)
	}
	f.read().came = make([]candidate, 0, 2*events)
	event := []byte(`data: {"id":"a","choices":[{"index":0,"delta":{"content":"word"}}]}` + "\n\n")
	got := testing.AllocsPerRun(events, func() {
		if err := f.Data(event, wire.Stamp{At: 1, Read: 1}); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 || len(f.reading.came) != events+1 {
		t.Errorf("%v allocations for an event; %d arrivals of %d", got, len(f.reading.came), events+1)
	}
}
