package recording

import "iter"

// Columns names the lists of a trace that a reader wants; the others may be
// left empty. Scalars always come.
type Columns uint8

const (
	Times      Columns = 1 << iota // DeltaNs and Tokens
	Reads                          // Read
	Errors                         // StampErrorNs
	Channels                       // Channel
	Bytes                          // TextBytes
	AllColumns = Times | Reads | Errors | Channels | Bytes
)

// A Source gives the traces of a recording, in order of due time and index, as
// often as it is asked. A trace's lists are valid until the next one; Clone keeps
// them. After a loop, Err says whether it saw all traces.
type Source interface {
	Traces(want Columns) iter.Seq[Trace]
	Err() error
}

// A Slice is a recording in memory.
type Slice []Trace

// Traces implements Source.
func (s Slice) Traces(Columns) iter.Seq[Trace] {
	return func(yield func(Trace) bool) {
		for _, t := range s {
			if !yield(t) {
				return
			}
		}
	}
}

// Err implements Source.
func (Slice) Err() error { return nil }
