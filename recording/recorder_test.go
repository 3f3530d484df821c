package recording

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
)

// fullTrace has every field set, and to other than its zero value.
func fullTrace() Trace {
	return Trace{
		Index: 7, Try: 1, Session: "s-3", Turn: 2, Turns: Some[int32](5), Phase: Measured, Agent: "a1", Target: "blue",
		Due: 1_000, Sent: Some[int64](1_500), Connected: Some[int64](1_200), FirstByte: Some[int64](9_000), End: Some[int64](40_000),
		Outcome: StreamCut, FailedAt: AtMidStream, HTTPStatus: 200, Error: "unexpected EOF", FinishReason: "length", ResponseID: "cmpl-1",
		Prompt:    Count{Used: Some[int32](10), Intended: Some[int32](11), Reported: Some[int32](10), Counted: Some[int32](12), Source: SourceReported},
		Output:    Count{Used: Some[int32](6), Intended: Some[int32](64), Reported: Some[int32](6), Counted: Some[int32](5), Source: SourceReported},
		Cached:    Some[int32](4),
		Reasoning: Some[int32](2),
		Arrivals: Arrivals{
			DeltaNs:      []int64{9_000, 0, 20_000, 10_000},
			Tokens:       []int32{1, 3, 0, 2},
			Read:         []int32{1, 1, 2, 3},
			StampErrorNs: []int64{50, 50, 60_000, 70},
			Channel:      []int8{ChannelReasoning, ChannelAnswer, ChannelToolCall, ChannelRefusal},
			TextBytes:    []int32{3, 12, 1, 0},
		},
		ArrivalSource: ArrivalIDs, ServerReceived: Some[int64](1_600), ServerQueue: Some[int64](0), ServerPrefill: Some[int64](7_000),
		Slow: Some(true), Check: "fail", CheckDetail: "no JSON", Notes: []string{NoteGzip, NoteNoDone},
	}
}

// bareTrace has nothing but its place: everything else is absent.
func bareTrace() Trace {
	return Trace{Index: 8, Due: 1_000, Outcome: NotSent}
}

// zeroTrace has values that are there and zero, which absent ones must not
// become nor be taken for.
func zeroTrace() Trace {
	t := Trace{
		Index: 9, Due: 1_000, Phase: Warmup, Outcome: Empty, FailedAt: AtFirstToken,
		Sent: Some[int64](0), Connected: Some[int64](0), FirstByte: Some[int64](0), End: Some[int64](0),
		Cached: Some[int32](0), Reasoning: Some[int32](0),
		ServerReceived: Some[int64](-5), ServerQueue: Some[int64](0), ServerPrefill: Some[int64](0), Slow: Some(false),
	}
	t.Prompt = Count{Used: Some[int32](0), Intended: Some[int32](0), Reported: Some[int32](0), Counted: Some[int32](0), Source: SourceReported}
	t.Output = t.Prompt
	return t
}

func fullMeta() Meta {
	return Meta{
		Schema: SchemaName, RunYAML: "target: {url: \"http://h\"}\nseed: 1\n", Tool: "fermata 0.1", ZeroWallNs: Some[int64](1_700_000_000_123_456_789),
		TimeScale: 10, Labels: map[string]string{"model": "m", "server": "vLLM \"x\""}, WindowStart: Some[int64](0), WindowEnd: Some[int64](5e9),
		WindowWhy: "1000 requests", Interrupted: "interrupt",
	}
}

var equateEmpty = cmpopts.EquateEmpty()

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustCreate(t testing.TB, dir string) *Recorder {
	t.Helper()
	r, err := Create(dir, fullMeta())
	must(t, err)
	t.Cleanup(func() { r.Abandon() })
	return r
}

// readAll reads a finished recording.
func readAll(t testing.TB, path string) (Meta, []Trace) {
	t.Helper()
	r, err := Open(path)
	must(t, err)
	defer r.Close()
	var traces []Trace
	for tr := range r.Traces(AllColumns) {
		traces = append(traces, tr.Clone())
	}
	must(t, r.Err())
	if r.Rows() != int64(len(traces)) {
		t.Errorf("Rows() = %d, and there are %d traces", r.Rows(), len(traces))
	}
	return r.Meta(), traces
}

// play records the life of a request: its arrivals as they stand in its lists.
func play(t testing.TB, r *Recorder, tr *Trace) {
	t.Helper()
	must(t, r.Begin(tr))
	if tr.Sent.OK {
		must(t, r.Sent(tr.Index, tr.Try, tr.Sent.V, tr.Connected))
	}
	if tr.FirstByte.OK {
		must(t, r.FirstByte(tr.Index, tr.Try, tr.FirstByte.V))
	}
	at := tr.Due
	for i := range tr.Len() {
		at += tr.DeltaNs[i]
		must(t, r.Arrive(tr.Index, tr.Try, Arrival{
			At: at, StampErrorNs: tr.StampErrorNs[i], Tokens: tr.Tokens[i], Read: tr.Read[i],
			TextBytes: tr.TextBytes[i], Channel: tr.Channel[i], Text: tr.TextBytes[i] > 0,
		}))
	}
	must(t, r.End(tr))
}

func TestRoundTrip(t *testing.T) {
	for _, write := range []bool{false, true} {
		dir := t.TempDir()
		r, err := create(dir, Meta{Tool: "older"}, journalOptions{size: segmentSize, write: write, clocks: func() (int64, int64) { return 1, 2 }})
		must(t, err)
		want := []Trace{fullTrace(), bareTrace(), zeroTrace()}
		for _, i := range []int{2, 0, 1} {
			play(t, r, &want[i])
		}
		samples := []Sample{{TimeNs: 1e9, Due: 1, Sent: 2, Finished: 3, Failed: 4, InFlight: 5, Waiting: 6, Tokens: 7, LatenessMaxNs: -8, CPU: 0.25, CoresFree: -1, GCPauseNs: 9}, {TimeNs: 2e9}, fullSample(), {TimeNs: 4e9, ReadLagBuckets: []int32{7}, ReadLagCounts: []int64{1}}}
		for _, s := range samples {
			must(t, r.Sample(s))
		}
		must(t, r.Text(8, 0, "prompt", "answer \xff", ""))
		must(t, r.Text(7, 1, "p", "a", "r"))
		must(t, r.SetMeta(fullMeta()))
		must(t, r.Close())

		meta, got := readAll(t, dir)
		if d := cmp.Diff(fullMeta(), meta); d != "" {
			t.Errorf("write %v: meta (-want +got):\n%s", write, d)
		}
		if d := cmp.Diff(want, got, equateEmpty); d != "" {
			t.Errorf("write %v: traces (-want +got):\n%s", write, d)
		}
		rec, err := Open(dir)
		must(t, err)
		gotSamples, err := rec.Samples()
		must(t, errors.Join(err, rec.Close()))
		if d := cmp.Diff(samples, gotSamples, equateEmpty); d != "" {
			t.Errorf("write %v: samples (-want +got):\n%s", write, d)
		}
		texts, err := parquet.ReadFile[textRow](filepath.Join(dir, TextFile))
		must(t, err)
		wantTexts := []textRow{{Index: 7, Try: 1, Prompt: "p", Answer: "a", Reasoning: "r"}, {Index: 8, Prompt: "prompt", Answer: "answer \uFFFD"}}
		if d := cmp.Diff(wantTexts, texts); d != "" {
			t.Errorf("write %v: texts (-want +got):\n%s", write, d)
		}
		for index, want := range map[int64]string{7: "a", 8: "answer \uFFFD", 9: ""} {
			if text, ok, err := rec.Answer(index); text != want || ok != (want != "") || err != nil {
				t.Errorf("the answer of request %d is %q (%v, %v), want %q", index, text, ok, err, want)
			}
		}
		if names := folder(t, dir); !slices.Equal(names, []string{RequestsFile, SeriesFile, TextFile}) {
			t.Errorf("the folder holds %v", names)
		}
	}
}

func folder(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAbsentIsNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	must(t, WriteParquet(path, Meta{}, Slice{bareTrace()}.Traces(AllColumns)))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	p, err := parquet.OpenFile(f, info.Size())
	must(t, err)
	rows := make([]parquet.Row, 1)
	reader := p.RowGroups()[0].Rows()
	defer reader.Close()
	if n, _ := reader.ReadRows(rows); n != 1 {
		t.Fatalf("%d rows", n)
	}
	there := map[string]bool{"index": true, "turn": true, "due_ns": true, "outcome": true, "try": true}
	var order []string
	for _, v := range rows[0] {
		path := p.Schema().Columns()[v.Column()]
		order = append(order, path[0])
		if v.IsNull() == there[path[0]] {
			t.Errorf("%s is %v in a request that was not sent", path[0], v)
		}
	}
	want := strings.Fields(`index session turn turns phase agent target due_ns sent_ns connected_ns first_byte_ns end_ns outcome failed_at
		http_status error finish_reason response_id try prompt_tokens output_tokens cached_tokens reasoning_tokens
		prompt_tokens_intended prompt_tokens_reported prompt_tokens_counted output_tokens_intended output_tokens_reported
		output_tokens_counted prompt_tokens_source output_tokens_source delta_ns tokens read stamp_error_ns channel text_bytes
		server_received_ns server_queue_ns server_prefill_ns slow check check_detail arrival_tokens_source notes`)
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("columns (-want +got):\n%s", d)
	}
	for key, value := range map[string]string{keySchema: SchemaName, keyScale: "1", keyRows: "1", keyArrivals: "0"} {
		if got, _ := p.Lookup(key); got != value {
			t.Errorf("%s is %q, want %q", key, got, value)
		}
	}
	for _, key := range []string{keyZero, keyWindow, keyLabels, keyInterrupted, keyRun, keyTool} {
		if got, ok := p.Lookup(key); ok {
			t.Errorf("%s is %q, want none", key, got)
		}
	}
}

func TestIncomplete(t *testing.T) {
	dir := t.TempDir()
	r := mustCreate(t, dir)
	begin := func(index int64) {
		must(t, r.Begin(&Trace{Index: index, Due: 100 * index, Phase: Measured, Prompt: Count{Intended: Some[int32](9)}, Output: Count{Intended: Some[int32](4)}}))
	}
	begin(0)
	begin(1)
	must(t, r.Sent(1, 0, 105, Some[int64](103)))
	begin(2)
	must(t, r.Sent(2, 0, 205, Maybe[int64]{}))
	must(t, r.FirstByte(2, 0, 230))
	must(t, r.Arrive(2, 0, Arrival{At: 231, Tokens: -1})) // no text, never known to be a token
	begin(3)
	must(t, r.Sent(3, 0, 305, Maybe[int64]{}))
	must(t, r.FirstByte(3, 0, 330))
	must(t, r.Arrive(3, 0, Arrival{At: 331, Tokens: -1, Read: 1}))
	must(t, r.Arrive(3, 0, Arrival{At: 340, Tokens: -1, Read: 2, Text: true, TextBytes: 5, StampErrorNs: 2}))
	must(t, r.Arrive(3, 0, Arrival{At: 350, Tokens: 3, Read: 3, StampErrorNs: 1, Channel: 100}))
	must(t, r.Close())
	want := []struct {
		at      Step
		counted int32
		deltas  []int64
		tokens  []int32
		read    []int32
	}{{AtSend, 0, nil, nil, nil}, {AtHeaders, 0, nil, nil, nil}, {AtFirstToken, 0, nil, nil, nil}, {AtMidStream, 4, []int64{40, 10}, []int32{1, 3}, []int32{2, 3}}}
	_, got := readAll(t, dir)
	if len(got) != len(want) {
		t.Fatalf("%d traces, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Outcome != Incomplete || g.FailedAt != w.at || g.End.OK || g.Phase != Measured {
			t.Errorf("request %d: outcome %s at %s, end %v, phase %s", i, g.Outcome, g.FailedAt, g.End, g.Phase)
		}
		if g.Output.Counted != Some(w.counted) || g.Output.Used != Some(w.counted) || g.Output.Source != SourceCounted || g.Output.Intended != Some[int32](4) {
			t.Errorf("request %d: output %+v, want %d counted", i, g.Output, w.counted)
		}
		if !slices.Equal(g.DeltaNs, w.deltas) || !slices.Equal(g.Tokens, w.tokens) || !slices.Equal(g.Read, w.read) {
			t.Errorf("request %d: %v, %v, %v", i, g.DeltaNs, g.Tokens, g.Read)
		}
	}
	if got[1].Sent != Some[int64](105) || got[1].Connected != Some[int64](103) || got[2].FirstByte != Some[int64](230) {
		t.Errorf("times: %+v", got)
	}
	if got[3].ArrivalSource != ArrivalAssumed || got[3].Channel[1] != 100 {
		t.Errorf("source %q, channels %v", got[3].ArrivalSource, got[3].Channel)
	}
}

func TestSortedAndConcurrent(t *testing.T) {
	dir := t.TempDir()
	r := mustCreate(t, dir)
	const streams, each, arrivals = 16, 20, 30
	var wg sync.WaitGroup
	for s := range streams {
		wg.Go(func() {
			for i := range each {
				tr := Trace{Index: int64(i*streams + s), Try: int32(s % 2), Due: int64((i * 7919 % 13) * 1000), Outcome: OK}
				for k := range arrivals {
					tr.DeltaNs = append(tr.DeltaNs, int64(s*1000+k))
					tr.Tokens = append(tr.Tokens, 1)
					tr.Read = append(tr.Read, int32(k/2))
					tr.StampErrorNs = append(tr.StampErrorNs, int64(i))
					tr.Channel = append(tr.Channel, 0)
					tr.TextBytes = append(tr.TextBytes, int32(1+k%3))
				}
				play(t, r, &tr)
			}
		})
	}
	wg.Wait()
	must(t, r.Close())
	_, got := readAll(t, dir)
	if len(got) != streams*each {
		t.Fatalf("%d traces, want %d", len(got), streams*each)
	}
	for i, g := range got {
		if i > 0 && (order{got[i-1].Due, got[i-1].Index, got[i-1].Try}).compare(order{g.Due, g.Index, g.Try}) >= 0 {
			t.Errorf("row %d is out of order", i)
		}
		s := g.Index % streams
		for k, d := range g.DeltaNs {
			if d != s*1000+int64(k) || g.Read[k] != int32(k/2) || g.Len() != arrivals {
				t.Fatalf("request %d, arrival %d: gap %d, read %d", g.Index, k, d, g.Read[k])
			}
		}
	}
}

func TestMisuse(t *testing.T) {
	dir := t.TempDir()
	r := mustCreate(t, dir)
	must(t, r.Begin(&Trace{Index: 1}))
	uneven := Trace{Index: 1, Arrivals: Arrivals{DeltaNs: []int64{1}}}
	for name, err := range map[string]error{
		"negative index":      r.Begin(&Trace{Index: -1}),
		"begun twice":         r.Begin(&Trace{Index: 1}),
		"other try":           r.Arrive(1, 1, Arrival{}),
		"sent, not begun":     r.Sent(2, 0, 1, Maybe[int64]{}),
		"first byte of none":  r.FirstByte(2, 0, 1),
		"end of none":         r.End(&Trace{Index: 2}),
		"lists of two length": r.End(&uneven),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	must(t, r.End(&Trace{Index: 1, Outcome: OK}))
	if err := r.Arrive(1, 0, Arrival{}); err == nil {
		t.Error("an arrival after the end: no error")
	}
	must(t, r.Close())
	for name, err := range map[string]error{"Close": r.Close(), "Begin": r.Begin(&Trace{}), "Arrive": r.Arrive(0, 0, Arrival{}), "Sample": r.Sample(Sample{})} {
		if err == nil {
			t.Errorf("%s after Close: no error", name)
		}
	}
	if _, err := Create(dir, Meta{}); err == nil || !strings.Contains(err.Error(), "already holds a recording") {
		t.Errorf("a second recording in the same folder: %v", err)
	}
}

func TestArriveAllocatesNothing(t *testing.T) {
	r := mustCreate(t, t.TempDir())
	must(t, r.Begin(&Trace{Index: 300}))
	a := Arrival{At: 1, StampErrorNs: 50_000, Tokens: -1, TextBytes: 4, Text: true}
	n := testing.AllocsPerRun(20_000, func() {
		a.At += 10_000_000
		a.Read++
		if err := r.Arrive(300, 0, a); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations an arrival", n)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	r := mustCreate(t, dir)
	must(t, r.Begin(&Trace{Index: 1}))
	if _, err := Create(dir, Meta{}); !errors.Is(err, ErrHeld) {
		t.Errorf("Create beside a living writer: %v", err)
	}
	var unfinished *ErrUnfinished
	if _, err := Recover(dir); !errors.As(err, &unfinished) || !unfinished.Writing {
		t.Errorf("Recover beside a living writer: %v", err)
	}
	if _, err := Open(dir); !errors.As(err, &unfinished) || !unfinished.Writing {
		t.Errorf("Open beside a living writer: %v", err)
	}
	must(t, r.Abandon())
	if _, err := Open(dir); !errors.As(err, &unfinished) || unfinished.Writing || !strings.Contains(err.Error(), "fermata recover "+dir) {
		t.Errorf("Open of an abandoned journal: %v", err)
	}
	report, err := Recover(dir)
	must(t, err)
	if report.Finished || report.Requests != 1 || report.Incomplete != 1 || report.Torn != 0 || len(report.Damages) != 0 {
		t.Errorf("report %+v", report)
	}
	if meta, _ := readAll(t, dir); meta.Interrupted != "interrupt" {
		t.Errorf("interrupted is %q", meta.Interrupted)
	}
	if report, err = Recover(dir); err != nil || !report.Finished || report.Requests != 1 {
		t.Errorf("Recover of a finished recording: %+v, %v", report, err)
	}
}

// A text that is longer than a segment gets a segment of its own.
func TestHugeText(t *testing.T) {
	for _, write := range []bool{false, true} {
		dir := t.TempDir()
		r, err := create(dir, Meta{}, journalOptions{size: 4096, write: write, clocks: func() (int64, int64) { return 1, 2 }})
		must(t, err)
		tr := fullTrace()
		long := strings.Repeat("a long prompt ", 3000)
		must(t, r.Begin(&tr))
		for i := range int64(3) {
			must(t, r.Text(7+i, 0, long, "x", ""))
			must(t, r.Arrive(tr.Index, tr.Try, Arrival{At: i, Tokens: 1}))
		}
		must(t, r.End(&tr))
		must(t, r.Close())
		rows, err := parquet.ReadFile[textRow](filepath.Join(dir, TextFile))
		must(t, err)
		if len(rows) != 3 || rows[2].Prompt != long {
			t.Errorf("write %v: %d texts", write, len(rows))
		}
		if _, got := readAll(t, dir); cmp.Diff([]Trace{tr}, got) != "" {
			t.Errorf("write %v: %s", write, cmp.Diff([]Trace{tr}, got))
		}
	}
}

// A server that reports no tokens beside those that came is quoted, not believed.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		reported, counted Maybe[int32]
		used              Maybe[int32]
		source            string
	}{
		{Some(int32(5)), Some(int32(4)), Some(int32(5)), SourceReported},
		{Some(int32(0)), Some(int32(4)), Some(int32(4)), SourceCounted},
		{Some(int32(0)), Some(int32(0)), Some(int32(0)), SourceReported},
		{Some(int32(0)), Maybe[int32]{}, Some(int32(0)), SourceReported},
		{Maybe[int32]{}, Some(int32(4)), Some(int32(4)), SourceCounted},
		{Maybe[int32]{}, Maybe[int32]{}, Maybe[int32]{}, ""},
	} {
		n := Count{Reported: c.reported, Counted: c.counted}
		n.Settle(false)
		if n.Used != c.used || n.Source != c.source {
			t.Errorf("reported %v, counted %v: %v by %q", c.reported, c.counted, n.Used, n.Source)
		}
	}
}

// fullSample has a value of its own in every field.
func fullSample() Sample {
	s := Sample{ReadLagBuckets: []int32{0, 5, 1887}, ReadLagCounts: []int64{1, 2, 1 << 40}, CanaryBuckets: []int32{3}, CanaryCounts: []int64{4}}
	for i, v := range sampleInts(&s) {
		*v = int64(100 + i)
	}
	ints, floats := sampleMore(&s)
	for i, v := range ints {
		n := int64(-200 - i)
		*v = &n
	}
	for i, v := range floats {
		f := 0.25 + float64(i)
		*v = &f
	}
	s.CPU, s.CoresFree, s.Server = 1.5, 0.5, new(string)
	*s.Server = "vllm"
	return s
}

// Every field of a sample is in the journal: none is forgotten.
func TestSampleHasNoOtherFields(t *testing.T) {
	v := reflect.ValueOf(fullSample())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("field %s has no value after it went through the lists of fields", v.Type().Field(i).Name)
		}
	}
}

// A run that records little has little mapped.
func TestFirstSegmentsAreSmall(t *testing.T) {
	j := &journal{options: journalOptions{size: segmentSize}}
	var sizes []int
	for number := range 18 {
		sizes = append(sizes, j.size(number)>>20)
	}
	if want := []int{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4}; !slices.Equal(sizes, want) {
		t.Errorf("segments of %v MiB, want %v", sizes, want)
	}
}
