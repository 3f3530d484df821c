package sim

import (
	"errors"
	"path/filepath"

	"fermata/recording"
)

// The files that hold the truth beside a simulated recording.
const (
	GapsFile       = "truth_gaps.parquet"       // a row a gap between tokens: GapRow
	IterationsFile = "truth_iterations.parquet" // a row an iteration: IterationRow
)

// A GapRow is a row of truth_gaps.parquet, in order of the requests' arrival,
// index and token. The parts add up to gap_ns.
type GapRow struct {
	Index     int64   `parquet:"index,delta"`
	Token     int32   `parquet:"token,delta"` // that ends the gap, from 1
	Gap       int64   `parquet:"gap_ns"`
	Own       int64   `parquet:"own_ns"`
	Prefill   int64   `parquet:"prefill_ns"`
	Preempted int64   `parquet:"preempted_ns"`
	Recompute int64   `parquet:"recompute_ns"`
	Transfer  int64   `parquet:"transfer_ns"`
	Mixed     int64   `parquet:"mixed_ns"`
	Waiting   int64   `parquet:"waiting_ns"`
	Prefills  int32   `parquet:"prefill_iterations"` // in prefill_ns
	Culprits  []int64 `parquet:"culprits,list"`      // whose prompts they were
}

// An IterationRow is a row of truth_iterations.parquet, in order of end.
type IterationRow struct {
	Replica    int32      `parquet:"replica"`
	Start      int64      `parquet:"start_ns"`
	End        int64      `parquet:"end_ns"`
	Own        int64      `parquet:"own_ns"` // without its chunks
	Decodes    int32      `parquet:"decodes"`
	Emitted    int32      `parquet:"emitted"`
	Chunks     []ChunkRow `parquet:"chunks,list"`
	Waiting    int32      `parquet:"waiting"`
	BlocksFree *int64     `parquet:"blocks_free,optional"` // null where memory plays no part
}

// A ChunkRow is a piece of a prompt in an IterationRow.
type ChunkRow struct {
	Index  int64 `parquet:"index"`
	Tokens int32 `parquet:"tokens"`
	Cached int32 `parquet:"cached"` // tokens before it
}

// A Truth writes the truth of a run beside its recording. CreateTruth makes one.
type Truth struct {
	gaps       *recording.Table[GapRow]
	iterations *recording.Table[IterationRow]
	rows       []GapRow // of a request
	iteration  IterationRow
	err        error
}

// CreateTruth begins the two files in a folder.
func CreateTruth(dir string) (*Truth, error) {
	gaps, err := recording.CreateTable[GapRow](filepath.Join(dir, GapsFile))
	if err != nil {
		return nil, err
	}
	iterations, err := recording.CreateTable[IterationRow](filepath.Join(dir, IterationsFile))
	if err != nil {
		return nil, errors.Join(err, gaps.Drop())
	}
	return &Truth{gaps: gaps, iterations: iterations}, nil
}

// Iteration writes an iteration. Close tells of errors.
func (t *Truth) Iteration(it *Iteration) {
	if t.err != nil {
		return
	}
	row := &t.iteration
	*row = IterationRow{
		Replica: int32(it.Replica), Start: it.Start, End: it.End, Own: it.OwnNs, Decodes: int32(it.Decodes),
		Emitted: int32(it.Emitted), Waiting: int32(it.Waiting), Chunks: row.Chunks[:0],
	}
	for _, c := range it.Chunks {
		row.Chunks = append(row.Chunks, ChunkRow{c.Index, int32(c.Tokens), int32(c.Cached)})
	}
	if it.BlocksAll > 0 {
		free := int64(it.BlocksFree)
		row.BlocksFree = &free
	}
	t.err = t.iterations.Write(*row)
}

// Record writes the gaps of a request. Close tells of errors.
func (t *Truth) Record(r *Record) {
	if t.err != nil {
		return
	}
	rows := t.rows[:0]
	for g := range r.Gaps() {
		rows = append(rows, GapRow{
			Index: g.Index, Token: int32(g.Token), Gap: g.Ns, Own: g.OwnNs, Prefill: g.PrefillNs, Preempted: g.PreemptedNs,
			Recompute: g.RecomputeNs, Transfer: g.TransferNs, Mixed: g.MixedNs, Waiting: g.WaitingNs,
			Prefills: int32(g.PrefillIterations), Culprits: g.Culprits,
		})
	}
	t.rows, t.err = rows, t.gaps.Write(rows...)
}

// Close completes the files, or after an error removes them.
func (t *Truth) Close() error {
	if t.err != nil {
		return errors.Join(t.err, t.Drop())
	}
	return errors.Join(t.gaps.Close(), t.iterations.Close())
}

// Drop gives the files up.
func (t *Truth) Drop() error { return errors.Join(t.gaps.Drop(), t.iterations.Drop()) }
