package sim

import (
	"iter"

	"fermata/recording"
)

// absent stands inside the package for a time that has not come.
const absent = -1

// An Iteration is what one instance did at one time. It is valid during the call
// that brings it.
type Iteration struct {
	Replica    int
	Number     int64 // on the replica, from 0
	Start, End int64 // ns
	OwnNs      int64 // what it would have taken without its chunks; 0 where nothing decodes
	Decodes    int   // sequences that decoded
	Emitted    int   // tokens
	Chunks     []Chunk
	Running    int // sequences that were admitted, these included
	Waiting    int // sequences that were not
	BlocksFree int // during it
	BlocksAll  int // 0 where memory plays no part
}

// A Token is one token of an answer.
type Token struct {
	At        int64 // ns
	Iteration int64 // that emitted it, on its replica; both sides of a disaggregated system count
	OwnNs     int64 // the decode step itself, of the gap before it; of the first token and of further ones of a step 0
}

// An Ending says how a request ended.
type Ending int

const (
	Finished  Ending = iota
	Refused          // the queue was full
	Cancelled        // its client left
)

// A Record is the truth about one request. It is valid during the call that
// brings it; Clone keeps it.
type Record struct {
	Request        Request
	Ending         Ending
	Replica        int   // that emitted the last token, or had it waiting
	FirstScheduled int64 // ns; kept across evictions; negative where it never was
	PrefillEnd     int64 // ns of the first token; negative where none came
	End            int64 // ns
	Cached         int   // prompt tokens that were not computed when it was first admitted
	Evictions      int
	Recomputed     int // tokens that were computed again
	Tokens         []Token

	apart    []Gap // those that are more than a decode step and its mixed excess
	culprits []int64
}

// Clone is a copy that shares no memory with r, but for Request.Hashes.
func (r *Record) Clone() *Record {
	c := *r
	c.Tokens = append([]Token(nil), r.Tokens...)
	c.apart = append([]Gap(nil), r.apart...)
	c.culprits = append([]int64(nil), r.culprits...)
	return &c
}

// Trace is the record as a recording has it: the client is beside the server, so
// that nothing is late and every stamp is exact. An answer's text is one byte a
// token. Packing is that of Speculation. The trace shares no memory with r.
func (r *Record) Trace(packing string) recording.Trace {
	q := &r.Request
	t := recording.Trace{
		Index: q.Index, Session: q.Session, Turn: q.Turn, Phase: q.Phase, Due: q.Arrival,
		Sent: recording.Some(q.Arrival), End: recording.Some(r.End), ServerReceived: recording.Some(q.Arrival),
	}
	if t.Phase == "" {
		t.Phase = recording.Measured
	}
	if q.Turns > 0 {
		t.Turns = recording.Some(q.Turns)
	}
	t.Prompt.Intended, t.Output.Intended = recording.Some(int32(q.Prompt)), recording.Some(int32(q.Output))
	r.ending(&t)
	if r.FirstScheduled >= 0 {
		t.ServerQueue = recording.Some(r.FirstScheduled - q.Arrival)
		t.Cached = recording.Some(int32(r.Cached))
	}
	if len(r.Tokens) > 0 {
		t.FirstByte = recording.Some(r.Tokens[0].At)
		t.ServerPrefill = recording.Some(r.PrefillEnd - r.FirstScheduled)
		t.ArrivalSource = recording.ArrivalUsage
		r.arrive(&t, packing)
	}
	t.Prompt.Settle(true)
	t.Output.Settle(false)
	return t
}

func (r *Record) ending(t *recording.Trace) {
	switch r.Ending {
	case Finished:
		t.Outcome, t.HTTPStatus, t.FinishReason = recording.OK, 200, "length"
		t.Prompt.Reported, t.Output.Reported = t.Prompt.Intended, recording.Some(int32(len(r.Tokens)))
	case Refused:
		t.Outcome, t.HTTPStatus, t.FailedAt, t.Error = recording.HTTPError, 429, recording.AtHeaders, "the queue is full"
	case Cancelled:
		t.Outcome, t.FailedAt = recording.TruncatedByUs, recording.AtFirstToken
		if len(r.Tokens) > 0 {
			t.HTTPStatus, t.FailedAt = 200, recording.AtMidStream
		}
	}
	t.Output.Counted = recording.Some(int32(len(r.Tokens)))
}

func (r *Record) arrive(t *recording.Trace, packing string) {
	last, read := t.Due, int32(0)
	for i := 0; i < len(r.Tokens); {
		n := 1
		for i+n < len(r.Tokens) && r.Tokens[i+n].Iteration == r.Tokens[i].Iteration && r.Tokens[i+n].At == r.Tokens[i].At {
			n++
		}
		events, tokens := 1, n
		if packing == PackWrite {
			events, tokens = n, 1
		}
		for range events {
			t.DeltaNs = append(t.DeltaNs, r.Tokens[i].At-last)
			t.Tokens = append(t.Tokens, int32(tokens))
			t.Read = append(t.Read, read)
			t.StampErrorNs = append(t.StampErrorNs, 0)
			t.Channel = append(t.Channel, recording.ChannelAnswer)
			t.TextBytes = append(t.TextBytes, int32(tokens))
			last = r.Tokens[i].At
		}
		read++
		i += n
	}
}

// Gaps are the gaps between an answer's tokens with their parts, from that
// before its second token on.
func (r *Record) Gaps() iter.Seq[Gap] {
	return func(yield func(Gap) bool) {
		apart := r.apart
		for i := 1; i < len(r.Tokens); i++ {
			if len(apart) > 0 && apart[0].Token == i {
				g := apart[0]
				g.Culprits = r.culprits[g.from:g.to:g.to]
				if !yield(g) {
					return
				}
				apart = apart[1:]
				continue
			}
			ns := r.Tokens[i].At - r.Tokens[i-1].At
			if !yield(Gap{Index: r.Request.Index, Token: i, Ns: ns, OwnNs: r.Tokens[i].OwnNs, MixedNs: ns - r.Tokens[i].OwnNs}) {
				return
			}
		}
	}
}

// Longest is the longest gap of the answer, the first of equals; false where it
// has fewer than two tokens.
func (r *Record) Longest() (longest Gap, ok bool) {
	for g := range r.Gaps() {
		if !ok || g.Ns > longest.Ns {
			longest, ok = g, true
		}
	}
	return longest, ok
}
