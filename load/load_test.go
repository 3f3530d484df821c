package load

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/recording"
	"fermata/schedule"
	"fermata/serve"
	"fermata/wire"
	"fermata/workload"
)

const (
	ms     = int64(time.Millisecond)
	tokens = 6 // of an answer, unless a script says otherwise
)

// A ledger is the truth log of a scripted server.
type ledger struct {
	mu    sync.Mutex
	lines []serve.Truth
}

func (l *ledger) Write(b []byte) (int, error) {
	var line serve.Truth
	if err := json.Unmarshal(bytes.TrimSpace(b), &line); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(b), nil
}

// wait gives all lines, once there are n.
func (l *ledger) wait(t testing.TB, n int) []serve.Truth {
	t.Helper()
	for range 12000 {
		l.mu.Lock()
		lines := l.lines
		l.mu.Unlock()
		if len(lines) >= n {
			return lines
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the truth log has not %d lines after a minute", n)
	return nil
}

// scripted starts a real server in this process, whose model m answers as model
// says, and gives its address and its truth log.
func scripted(t testing.TB, model string) (string, *ledger) {
	t.Helper()
	s, err := serve.NewScript("script", []byte("models: {m: "+model+"}"))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	truth := &ledger{}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- serve.New(s, serve.Options{Truth: truth, Grace: 50 * time.Millisecond}).Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String() + "/v1/chat/completions", truth
}

// closedPort is an address at which nothing listens.
func closedPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// A tape is a recorder in memory. It checks the order of what it is told.
type tape struct {
	mu      sync.Mutex
	begun   map[[2]int64]bool // by index and try
	told    map[int64][]recording.Arrival
	traces  []recording.Trace // in order of their end
	samples []recording.Sample
	texts   map[int64][3]string
	wrong   []string
	fail    func(call string) error // may be nil
}

func newTape() *tape {
	return &tape{begun: map[[2]int64]bool{}, told: map[int64][]recording.Arrival{}, texts: map[int64][3]string{}}
}

func (r *tape) note(call string, index int64, try int32, opens bool) error {
	if r.begun[[2]int64{index, int64(try)}] == opens {
		r.wrong = append(r.wrong, call+" out of order")
	}
	if r.fail != nil {
		return r.fail(call)
	}
	return nil
}

func (r *tape) Begin(t *recording.Trace) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.note("begin", t.Index, t.Try, true)
	r.begun[[2]int64{t.Index, int64(t.Try)}] = true
	return err
}

func (r *tape) Sent(index int64, try int32, _ int64, _ recording.Maybe[int64]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note("sent", index, try, false)
}

func (r *tape) FirstByte(index int64, try int32, _ int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note("first byte", index, try, false)
}

func (r *tape) Arrive(index int64, try int32, a recording.Arrival) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[index] = append(r.told[index], a)
	return r.note("arrive", index, try, false)
}

func (r *tape) End(t *recording.Trace) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traces = append(r.traces, t.Clone())
	return r.note("end", t.Index, t.Try, false)
}

func (r *tape) Text(index int64, try int32, prompt, answer, reasoning string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[index] = [3]string{prompt, answer, reasoning}
	return r.note("text", index, try, false)
}

func (r *tape) Sample(s recording.Sample) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, s)
	return nil
}

// at are the moments of a trace's arrivals.
func at(t *recording.Trace) []int64 {
	moments := make([]int64, t.Len())
	sum := t.Due
	for i, d := range t.DeltaNs {
		sum += d
		moments[i] = sum
	}
	return moments
}

func sum(tokens []int32) (n int32) {
	for _, k := range tokens {
		n += k
	}
	return n
}

// job is one for a server at url, recorded on the tape.
func job(t testing.TB, url string, record Recorder, when schedule.Options) Job {
	t.Helper()
	prompts, err := workload.Open(workload.Options{Input: workload.Tokens(8), Output: workload.Tokens(tokens)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := schedule.New(when, 1)
	if err != nil {
		t.Fatal(err)
	}
	return Job{
		Schedule: plan, Record: record,
		Target: Target{
			Prompts: prompts, Dialect: chat(t, dialect.Options{Model: "m"}), URL: url,
			Header: http.Header{"Content-Type": {"application/json"}, "Accept-Encoding": {"identity"}},
		},
		Transport: transport(t, url),
	}
}

// transport is what a run would choose; FERMATA_TRANSPORT asks for one by name.
func transport(t testing.TB, url string) func(wire.Clock) wire.Transport {
	t.Helper()
	choice, err := wire.Choose(os.Getenv("FERMATA_TRANSPORT"), wire.Options{}, url)
	if err != nil {
		t.Fatal(err)
	}
	return choice.New
}

func chat(t testing.TB, o dialect.Options) dialect.Dialect {
	t.Helper()
	d, err := dialect.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run carries out a job and checks what holds for every run: each request is
// begun and ended once, in order, and what was recorded on the way is what
// stands in its trace.
func offer(t testing.TB, j Job) (End, *tape) {
	t.Helper()
	return offerUntil(t, t.Context(), nil, j)
}

func offerUntil(t testing.TB, ctx context.Context, stop <-chan struct{}, j Job) (End, *tape) {
	t.Helper()
	end, err := Run(ctx, stop, j)
	if err != nil {
		t.Fatal(err)
	}
	r := j.Record.(*tape)
	for _, w := range r.wrong {
		t.Error(w)
	}
	if len(r.begun) != len(r.traces) {
		t.Errorf("%d requests were begun and %d ended", len(r.begun), len(r.traces))
	}
	for i := range r.traces {
		checkTrace(t, &r.traces[i], r.told[r.traces[i].Index])
	}
	return end, r
}

func checkTrace(t testing.TB, tr *recording.Trace, told []recording.Arrival) {
	t.Helper()
	if (tr.Outcome == recording.OK) != (tr.FailedAt == "" && tr.Error == "") {
		t.Errorf("request %d: %s at %q with error %q", tr.Index, tr.Outcome, tr.FailedAt, tr.Error)
	}
	if strings.ContainsAny(tr.Error, "\n\r\t") || len(tr.Error) > 2*maxError {
		t.Errorf("request %d: the error is not one line: %q", tr.Index, tr.Error)
	}
	all := map[recording.Arrival]bool{}
	for _, a := range told {
		all[recording.Arrival{At: a.At, StampErrorNs: a.StampErrorNs, Read: a.Read, TextBytes: a.TextBytes, Channel: a.Channel}] = true
	}
	for i, when := range at(tr) {
		a := recording.Arrival{At: when, StampErrorNs: tr.StampErrorNs[i], Read: tr.Read[i], TextBytes: tr.TextBytes[i], Channel: tr.Channel[i]}
		if !all[a] {
			t.Errorf("request %d: arrival %d, %+v, was not recorded when it came", tr.Index, i, a)
		}
	}
}

// once is the schedule of a single request.
var once = schedule.Options{Kind: schedule.All, Requests: 1}
