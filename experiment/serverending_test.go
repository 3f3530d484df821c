package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/capacity"
	"fermata/cost"
	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/recording"
)

// A desk is a real server of so many places, each busy for a time with one request.
// It may turn requests away, and die.
type desk struct {
	*httptest.Server
	places chan struct{}
	takes  time.Duration
	turns  func() bool // says that a request is turned away (429); nil for never

	mu    sync.Mutex
	asked int
	dies  int // after so many requests; 0 for never
	mute  int // it answers nothing after so many; 0 for never
}

func newDesk(t testing.TB, places int, takes time.Duration) *desk {
	d := &desk{places: make(chan struct{}, places), takes: takes}
	d.Server = httptest.NewServer(http.HandlerFunc(d.answer))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	d.mu.Lock()
	d.asked++
	dead, mute := d.dies > 0 && d.asked > d.dies, d.mute > 0 && d.asked > d.mute
	d.mu.Unlock()
	if dead {
		panic(http.ErrAbortHandler) // hangs up, from now on
	}
	if mute {
		<-r.Context().Done()
		return
	}
	if !slices.Contains([]string{"preflight", "calibration"}, r.Header.Get(purposeHeader)) && d.turns != nil && d.turns() {
		http.Error(w, `{"error": {"message": "slow down"}}`, http.StatusTooManyRequests)
		return
	}
	d.places <- struct{}{}
	time.Sleep(d.takes)
	<-d.places
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}]}`, "\n\n",
		`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, "\n\n",
		`data: {"id":"x","choices":[],"usage":{"prompt_tokens":16,"completion_tokens":1,"total_tokens":17}}`, "\n\ndata: [DONE]\n\n")
}

// rough is the smallest search that there is.
var rough = CapacityOptions{Search: capacity.Options{Precision: .25}}

func deskSettings(d *desk, slo string) map[string]string {
	return map[string]string{
		"target.url": d.URL, "target.model": "m", "workload.input": "16", "workload.output": "1", "schedule.rate": "1", "seed": "4",
		"slo": "[" + slo + "]",
	}
}

// checkKept holds the folder of a search to what was found: the recording is whole,
// its measured phase is what the answer rests on, and both documents are there.
func checkKept(t testing.TB, dir string, r *capacity.Result) (rows []recording.Trace) {
	t.Helper()
	rows, _ = rowsOf(t, dir)
	measured := 0
	for i, tr := range rows {
		if tr.Index != int64(i) || tr.Outcome == recording.Incomplete {
			t.Fatalf("row %d is request %d, %s", i, tr.Index, tr.Outcome)
		}
		if tr.Phase == recording.Measured {
			measured++
		}
	}
	held := 0
	if r.Held != nil {
		held = r.Held.Requests
	}
	result := exists(filepath.Join(dir, "result.json"))
	if measured < held || (measured > 0) != result {
		t.Errorf("%d rows are measured, %d requests were held; result.json %v", measured, held, result)
	}
	for _, name := range []string{capacityFile, searchFile, "run.yaml"} {
		if !exists(filepath.Join(dir, name)) {
			t.Errorf("there is no %s", name)
		}
	}
	return rows
}

func warnsOfSearch(r *capacity.Result, code string) bool {
	for _, w := range r.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// A first token takes longer than is promised even of an empty server.
func TestServerThatFailsAtAnyRate(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 16, 5*time.Millisecond), filepath.Join(t.TempDir(), "run")
		r, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=3ms @p90")), Options{Out: dir}, rough)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.AlwaysMiss || r.Capacity != nil || !strings.Contains(r.Reason, "not met even at") {
			t.Errorf("%s: %s, %+v", r.Ending, r.Reason, r.Capacity)
		}
		checkKept(t, dir, r)
	})
}

// Nobody waits as long as is promised, even when more is asked than can be served.
func TestServerThatNeverFails(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 20*time.Millisecond), filepath.Join(t.TempDir(), "run")
		r, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=100s @p90")), Options{Out: dir}, rough)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.NeverMissed || !warnsOfSearch(r, "short") || !strings.Contains(r.Reason, "no request missed") {
			t.Errorf("%s: %s, %+v", r.Ending, r.Reason, r.Warnings)
		}
		if c := r.Capacity; c == nil || c.RPS > 250 || *c.Attainment < 1 {
			t.Errorf("%+v of a server that takes 200/s at most", c)
		}
		rows := checkKept(t, dir, r)
		if n := len(rows) + burstsOf(r); int64(n) != r.Requests {
			t.Errorf("%d rows and %d of bursts, %d told", len(rows), burstsOf(r), r.Requests)
		}
	})
}

// A server hangs up on everybody from some request on.
func TestServerThatDies(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 10*time.Millisecond), filepath.Join(t.TempDir(), "run")
		d.dies = 600
		r, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=500ms @p90")), Options{Out: dir}, rough)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.Died || !strings.Contains(r.Reason, "it died") || r.Failed < 100 {
			t.Errorf("%s: %s, %d failed", r.Ending, r.Reason, r.Failed)
		}
		checkKept(t, dir, r)
	})
}

// A server keeps its connections and says nothing any more from some request on: each
// has missed long before it has failed, and is counted as failed once it has.
func TestServerThatFallsSilent(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 10*time.Millisecond), filepath.Join(t.TempDir(), "run")
		d.mute = 600
		settings := deskSettings(d, "ttft<=200ms @p90")
		settings["load.timeout"] = "1s"
		r, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: dir}, rough)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.Died || !strings.Contains(r.Reason, "it died") {
			t.Errorf("%s: %s", r.Ending, r.Reason)
		}
		failures := 0
		for _, tr := range checkKept(t, dir, r) {
			if tr.Outcome != recording.OK {
				failures++
			}
		}
		if failures < 100 || r.Failed != int64(failures) {
			t.Errorf("%d failed, %d rows did", r.Failed, failures)
		}
	})
}

// One that answers nothing but the preflight.
func TestServerThatNeverAnswers(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 10*time.Millisecond), filepath.Join(t.TempDir(), "run")
		d.dies = 3
		r, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=500ms @p90")), Options{Out: dir}, CapacityOptions{Search: capacity.Options{Precision: .25, Start: 50}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.Unanswered || r.Capacity != nil {
			t.Errorf("%s: %s, %+v", r.Ending, r.Reason, r.Capacity)
		}
		checkKept(t, dir, r)
	})
}

// A server that lets 100 requests a second in, 20 of them at once, and turns the
// others away: with a tenth that may miss, it takes a ninth more at most.
func TestServerThatLimitsItsRate(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		const rate, most = 100.0, 20.0
		d, dir := newDesk(t, 400, 5*time.Millisecond), filepath.Join(t.TempDir(), "run")
		var mu sync.Mutex
		left, last := most, time.Now()
		d.turns = func() bool {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			left, last = min(most, left+rate*now.Sub(last).Seconds()), now
			if left < 1 {
				return true
			}
			left--
			return false
		}
		c := rough
		c.Search.Start = 20
		r, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=5s @p90")), Options{Out: dir}, c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.Found || !warnsOfSearch(r, "turned_away") || r.Turned == 0 {
			t.Errorf("%s: %s, %d turned away, %+v", r.Ending, r.Reason, r.Turned, r.Warnings)
		}
		if k := r.Capacity; k == nil || k.RPS < 70 || k.RPS > 150 {
			t.Errorf("%+v, not near 111/s", k)
		}
		checkKept(t, dir, r)
	})
}

// burstsOf is how many the bursts of a search asked for: each is twice the one before,
// and a machine that stands still wants another.
func burstsOf(r *capacity.Result) int { return 2*r.Probe.Asked - r.Budget.Probe }

// Who interrupts a search keeps what there is; the same again goes on from there, and
// in the end as many requests were asked as told.
func TestServerSearchGoesOn(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 10*time.Millisecond), filepath.Join(t.TempDir(), "run")
		settings := deskSettings(d, "ttft<=40ms @p90")
		stop := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c, blocks := rough, 0
		c.Progress = func(_ string, s *capacity.State, _ capacity.Budget) {
			if blocks = len(s.Steps); blocks == 3 && ctx.Err() == nil {
				close(stop)
				cancel()
			}
		}
		r, _, err := searchServer(t, ctx, readSettings(t, settings), Options{Out: dir, Stop: stop}, c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.Interrupted || blocks != 3 || r.Capacity == nil || !warnsOfSearch(r, "no_interval") {
			t.Errorf("%s after %d blocks: %+v", r.Ending, blocks, r.Capacity)
		}
		rows := int64(len(checkKept(t, dir, r)))
		if seed, ok := SearchSeed(dir); !ok || seed != 4 {
			t.Errorf("its seed is %d, %v", seed, ok)
		}
		if _, err := OpenServer(t.Context(), readSettings(t, settings), Options{Out: filepath.Join(dir, "before-1")}); err != nil {
			t.Errorf("a folder that is not there yet: %v", err)
		}
		r, _, err = searchServer(t, t.Context(), readSettings(t, settings), Options{Out: dir}, rough)
		if err != nil {
			t.Fatal(err)
		}
		// Nine blocks, and nine more wherever no block of nine met the objective, as on a
		// machine that has no time for it.
		if n := len(r.Search); r.Ending != capacity.Found || r.Capacity == nil || r.Capacity.Low == nil || r.Held.Requests != r.Budget.Fixed || n == 0 || n%9 != 0 {
			t.Errorf("%s: %+v, held %+v, %d blocks", r.Ending, r.Capacity, r.Held, len(r.Search))
		}
		later := checkKept(t, dir, r)
		before, meta := rowsOf(t, filepath.Join(dir, "before-1"))
		if int64(len(before)) != rows || meta.Interrupted == "" {
			t.Errorf("%d rows of the first sitting, %d before", len(before), rows)
		}
		// Those that the stop overtook on their way to the transport, 50 ms ahead, are no rows.
		if n := int64(len(before) + len(later) + burstsOf(r)); n > r.Requests || n < r.Requests-60 {
			t.Errorf("%d rows and the bursts, %d told", n, r.Requests)
		}
		rejudged(t, dir, later, r)
		// Another search is none of this folder's, and would overwrite what it found.
		kept, _ := os.ReadFile(filepath.Join(dir, capacityFile))
		other := rough
		other.Search.Precision = .2
		var misuse *Misuse
		if _, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: dir}, other); !errors.As(err, &misuse) || !strings.Contains(err.Error(), "holds another search") {
			t.Errorf("%v", err)
		}
		if now, _ := os.ReadFile(filepath.Join(dir, capacityFile)); len(kept) == 0 || string(now) != string(kept) {
			t.Error("what was found is overwritten")
		}
		// A third time there is nothing to do.
		asked := d.asked
		again, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: dir}, rough)
		if err != nil || again.Capacity.RPS < r.Capacity.RPS || again.Capacity.RPS > r.Capacity.RPS || d.asked != asked {
			t.Errorf("%v %+v, %d requests more", err, again, d.asked-asked)
		}
	})
}

// rejudged holds what a search's recording says of other objectives to its rows.
func rejudged(t testing.TB, dir string, rows []recording.Trace, r *capacity.Result) {
	t.Helper()
	var waits []int64
	for _, tr := range rows {
		if tr.Phase == recording.Measured {
			waits = append(waits, tr.DeltaNs[0])
		}
	}
	slices.Sort(waits)
	bound := waits[len(waits)*85/100] // which 15 in 100 miss, about
	misses := 0
	for _, w := range waits {
		if w > bound {
			misses++
		}
	}
	for slo, side := range map[string]string{fmt.Sprintf("ttft<=%dns @p90", bound): "", "ttft<=1us @p90": "too far below", "ttft<=1h @99.9%": "too far above"} {
		all, err := RejudgeCapacity(dir, []conf.Setting{{Path: "slo", Value: slo, Append: true}})
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %v", slo, err)
			continue
		}
		again := all[0]
		switch {
		case side != "" && (again.Ending != capacity.NotBracketed || again.Capacity != nil || !strings.Contains(again.Reason, side)):
			t.Errorf("%s: %s, %s", slo, again.Ending, again.Reason)
		case side == "" && again.Held.Misses != misses:
			t.Errorf("%s: %d of %d missed, %d by the rows", slo, again.Held.Misses, again.Held.Requests, misses)
		case side == "" && again.Capacity != nil && again.Capacity.RPS >= r.Held.Rate:
			t.Errorf("%s: %.4g/s, above the %.4g/s at which it was missed", slo, again.Capacity.RPS, r.Held.Rate)
		}
	}
}

// Cut at once, the recording is whole all the same.
func TestServerSearchIsCut(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 20*time.Millisecond), filepath.Join(t.TempDir(), "run")
		hard, cut := context.WithCancelCause(t.Context())
		defer cut(nil)
		site, err := OpenServer(hard, readSettings(t, deskSettings(d, "ttft<=1s @p90")), Options{Out: dir, Version: "test", Say: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		c := rough
		c.State, c.Begin = site.State(), site.Begin
		c.Progress = func(_ string, s *capacity.State, _ capacity.Budget) {
			if len(s.Steps) == 1 {
				cut(errors.New("terminated"))
			}
		}
		all, err := Capacity(hard, site, c)
		if err != nil || len(all) != 1 || all[0].Ending != capacity.Interrupted {
			t.Fatalf("%v %+v", err, all)
		}
		if _, meta := rowsOf(t, dir); meta.Interrupted != "terminated" {
			t.Errorf("%+v", meta)
		}
	})
}

// A search stops before it costs more than it may, and says so. What it may cost it is
// told before.
func TestServerSearchCosts(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		d, dir := newDesk(t, 4, 10*time.Millisecond), filepath.Join(t.TempDir(), "run")
		settings := deskSettings(d, "ttft<=500ms @p90")
		settings["prices"] = `{currency: EUR, date: 2026-08-01, source: x, tokens: {input_per_million: "1000", output_per_million: "4000"}}`
		settings["load.max_cost"] = "10" // a request costs 0.02: 150 at once and 350 more
		var said []string
		s := readSettings(t, settings)
		site, err := OpenServer(t.Context(), s, Options{Out: dir, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		c := rough
		c.State, c.Begin = site.State(), site.Begin
		c.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
		all, err := Capacity(t.Context(), site, c)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v %+v", err, all)
		}
		r := all[0]
		if r.Ending != capacity.Stopped || !strings.Contains(r.Reason, "the money was spent: of 10.00 EUR, ") {
			t.Errorf("%s: %s", r.Ending, r.Reason)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, "cost: about 37 EUR, and no more than 10 (--max-cost)") {
			t.Errorf("said %s", text)
		}
		rows, _ := rowsOf(t, dir)
		var sum cost.Amount
		rate, err := rateOf(s, "", "m")
		if err != nil {
			t.Fatal(err)
		}
		for range len(rows) + burstsOf(r) {
			sum = sum.Plus(rate.Of(16, 1))
		}
		if most, _ := cost.ParseAmount("10"); sum.Cmp(most) > 0 || len(rows) < 450-burstsOf(r) {
			t.Errorf("%d rows and %d of bursts cost %s", len(rows), burstsOf(r), sum)
		}
		// A burst alone that could cost more is not begun.
		settings["load.max_cost"] = "1"
		refused := filepath.Join(t.TempDir(), "b")
		if r, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: refused}, rough); r != nil || err == nil || !strings.Contains(err.Error(), "--max-cost") {
			t.Errorf("%+v, %v", r, err)
		}
		if exists(refused) {
			t.Error("it leaves a folder without a recording")
		}
	})
}

// A folder that holds another run is left alone.
func TestServerSearchMistakes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1, time.Millisecond)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "requests.parquet"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenServer(t.Context(), readSettings(t, deskSettings(d, "ttft<=1s")), Options{Out: dir}); err == nil || !strings.Contains(err.Error(), "holds a run already") {
		t.Errorf("%v", err)
	}
	settings := deskSettings(d, "ttft<=1s")
	settings["workload.turns"] = "3"
	if _, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: filepath.Join(t.TempDir(), "a")}, rough); err == nil || !strings.Contains(err.Error(), "conversations") {
		t.Errorf("%v", err)
	}
	// A folder in which a search is under way is that search's.
	dir = t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "journal"), 0o755), os.WriteFile(filepath.Join(dir, searchFile), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	held, err := recording.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var misuse *Misuse
	if _, _, err := searchServer(t, t.Context(), readSettings(t, deskSettings(d, "ttft<=1s")), Options{Out: dir}, rough); !errors.As(err, &misuse) || !strings.Contains(err.Error(), "another process is at work in "+dir) {
		t.Errorf("%v", err)
	}
	// A server that fails at once leaves no folder.
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	settings, dir = deskSettings(d, "ttft<=1s"), filepath.Join(t.TempDir(), "c")
	settings["target.url"] = broken.URL
	if r, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: dir}, rough); r != nil || err == nil || exists(dir) {
		t.Errorf("%+v, %v; a folder is left: %v", r, err, exists(dir))
	}
}
