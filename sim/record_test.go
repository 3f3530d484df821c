package sim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"fermata/recording"
	"fermata/sim"
)

// write plays requests and writes a run into a folder, as the command does.
func write(dir string, o sim.Options, requests iter.Seq[sim.Request]) error {
	e, err := sim.New(o)
	if err != nil {
		return err
	}
	truth, err := sim.CreateTruth(dir)
	if err != nil {
		return err
	}
	e.Observe(sim.Observer{Iteration: truth.Iteration})
	var failed error
	traces := func(yield func(recording.Trace) bool) {
		for r, err := range e.Records(requests) {
			if failed = err; err != nil {
				return
			}
			truth.Record(r)
			if !yield(r.Trace("")) {
				return
			}
		}
	}
	err = recording.WriteParquet(filepath.Join(dir, recording.RequestsFile), recording.Meta{Tool: "test"}, traces)
	if err = errors.Join(err, failed); err != nil {
		return errors.Join(err, truth.Drop())
	}
	return truth.Close()
}

// record writes a run into a folder of its own.
func record(t testing.TB, o sim.Options, requests []sim.Request) string {
	t.Helper()
	dir := t.TempDir()
	if err := write(dir, o, slices.Values(requests)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hashes(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	sums := map[string][32]byte{}
	for _, name := range []string{recording.RequestsFile, sim.GapsFile, sim.IterationsFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums[name] = sha256.Sum256(data)
	}
	return sums
}

// The same options and requests give the same bytes, however many processors
// there are.
func TestSameBytes(t *testing.T) {
	o := yi(stallFree(1536))
	o.Noise, o.Seed = .1, 7
	o.Speculation = &sim.Speculation{Gamma: 3, Alpha: .6, Beta: 5}
	requests := pinned(t, "yi34b_0p7qps_16k")[:300]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := hashes(t, record(t, o, requests))
	runtime.GOMAXPROCS(4)
	if four := hashes(t, record(t, o, requests)); !mapsEqual(one, four) {
		t.Errorf("the bytes depend on GOMAXPROCS: %x, %x", one, four)
	}
	o.Seed = 8
	if other := hashes(t, record(t, o, requests)); other[recording.RequestsFile] == one[recording.RequestsFile] {
		t.Error("another seed gave the same bytes")
	}
}

func mapsEqual(a, b map[string][32]byte) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

// What is read back from the files is what the engine told its observer.
func TestRecordHoldsTheTruth(t *testing.T) {
	requests := pinned(t, "yi34b_0p7qps_16k")[:200]
	o := yi(prefillFirst(16384))
	records := play(t, o, requests)
	slices.SortFunc(records, func(a, b *sim.Record) int { return int(a.Request.Index - b.Request.Index) })
	dir := record(t, o, requests)
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	n := 0
	for tr := range rec.Traces(recording.AllColumns) {
		want := records[n].Trace("")
		want.Notes = nil
		if got, want := fields(t, tr.Clone()), fields(t, want); !bytes.Equal(got, want) {
			t.Fatalf("request %d:\n%s\nwant\n%s", n, got, want)
		}
		r := records[n]
		if wait := r.FirstScheduled - r.Request.Arrival; tr.ServerQueue.V != wait || tr.ServerPrefill.V != r.PrefillEnd-r.FirstScheduled {
			t.Errorf("request %d: queue %d and prefill %d", n, tr.ServerQueue.V, tr.ServerPrefill.V)
		}
		n++
	}
	if err := rec.Err(); err != nil || n != len(records) {
		t.Fatalf("%d traces of %d: %v", n, len(records), err)
	}
	if rec.Meta().ZeroWallNs.OK {
		t.Error("a simulated recording has a wall clock")
	}

	var gaps []sim.Gap
	for _, r := range records {
		gaps = slices.AppendSeq(gaps, r.Gaps())
	}
	at := 0
	for row, err := range recording.ReadTable[sim.GapRow](filepath.Join(dir, sim.GapsFile)) {
		if err != nil {
			t.Fatal(err)
		}
		g := gaps[at]
		if row.Index != g.Index || int(row.Token) != g.Token || row.Gap != g.Ns || row.Prefill != g.PrefillNs || !slices.Equal(row.Culprits, g.Culprits) {
			t.Fatalf("gap %d: %+v, want %+v", at, row, g)
		}
		if sum := row.Own + row.Prefill + row.Preempted + row.Recompute + row.Transfer + row.Mixed + row.Waiting; sum != row.Gap {
			t.Fatalf("gap %d: parts of %d ns, gap of %d", at, sum, row.Gap)
		}
		at++
	}
	if at != len(gaps) {
		t.Errorf("%d gaps, want %d", at, len(gaps))
	}
	end := int64(0)
	for row, err := range recording.ReadTable[sim.IterationRow](filepath.Join(dir, sim.IterationsFile)) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Start < end || row.End < row.Start || row.BlocksFree == nil || row.Own > row.End-row.Start {
			t.Fatalf("%+v", row)
		}
		end = row.End
	}
	if last := records[len(records)-1]; end < last.End {
		t.Errorf("iterations end at %d, the last request at %d", end, last.End)
	}
}

func fields(t *testing.T, tr recording.Trace) []byte {
	t.Helper()
	b, err := json.MarshalIndent(tr, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The truth of a run that cannot be played leaves no files that look whole.
func TestRecordOfWhatCannotBeServed(t *testing.T) {
	dir := t.TempDir()
	err := write(dir, yi(stallFree(512)), slices.Values([]sim.Request{{Prompt: 100, Output: 10}, {Index: 1, Arrival: 5, Prompt: 1 << 20, Output: 10}}))
	var unfit *sim.UnfitError
	if !errors.As(err, &unfit) || unfit.Index != 1 {
		t.Errorf("%v, want that request 1 does not fit", err)
	}
	for _, name := range []string{sim.GapsFile, sim.IterationsFile} {
		for _, name := range []string{name, name + ".tmp"} {
			if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", name, err)
			}
		}
	}
}

// Records come in order of arrival, each after all before it, and in a closed
// loop too.
func TestRecordsInOrder(t *testing.T) {
	e, err := sim.New(sim.Options{Cost: sim.CostOptions{Flat: &sim.Flat{TTFT: 5 * time.Millisecond, ITL: time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	next := int64(8)
	e.Observe(sim.Observer{Ended: func(r *sim.Record) {
		if next < 1000 {
			if err := e.Submit(sim.Request{Index: next, Arrival: r.End, Prompt: 3, Output: int(next*7919%97) + 1}); err != nil {
				t.Error(err)
			}
			next++
		}
	}})
	var users []sim.Request
	for i := range int64(8) {
		users = append(users, sim.Request{Index: i, Prompt: 3, Output: int(i) + 1})
	}
	n, last := 0, int64(-1)
	for r, err := range e.Records(slices.Values(users)) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Request.Arrival < last || len(r.Tokens) != r.Request.Output {
			t.Fatalf("request %d arrived at %d after one at %d, with %d of %d tokens", r.Request.Index, r.Request.Arrival, last, len(r.Tokens), r.Request.Output)
		}
		last = r.Request.Arrival
		n++
	}
	if n != 1000 {
		t.Errorf("%d records, want 1000", n)
	}
}

// Writing a run with the truth about every gap.
func BenchmarkRecord(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		if err := write(b.TempDir(), flat(5*time.Millisecond, time.Millisecond, 256), stream(n, 120)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*128*b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
}
