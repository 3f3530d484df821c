package recording

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
)

var errPayload = errors.New("a frame does not have the fields of its kind")

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }
func appendInt(b []byte, v int64) []byte   { return binary.AppendVarint(b, v) }

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// A cursor reads the fields of a payload. After a field that is not there it
// gives zeros and bad is true. Bytes after the known fields are left alone:
// later versions add fields at the end.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) fail() {
	c.bad, c.b = true, nil
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) uint() uint64 {
	if b := c.b; len(b) > 0 && b[0] < 0x80 {
		c.b = b[1:]
		return uint64(b[0])
	}
	return c.long()
}

// long is uint of a number that takes several bytes; apart, so that uint is inlined.
func (c *cursor) long() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) int() int64 {
	u := c.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (c *cursor) bytes() []byte {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) string() string { return string(c.bytes()) }

func (c *cursor) float() float64 {
	if len(c.b) < 8 {
		c.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(c.b))
	c.b = c.b[8:]
	return v
}

// count reads the number of items that follow, each of at least one byte, so
// that a damaged number cannot ask for more memory than the payload is long.
func (c *cursor) count() int {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *cursor) err() error {
	if c.bad {
		return errPayload
	}
	return nil
}

// A key names a request: the place in the schedule and the try.
type key struct {
	index int64
	try   int32
}

func appendKey(b []byte, k key) []byte {
	return appendUint(appendUint(b, uint64(k.index)), uint64(uint32(k.try)))
}

func (c *cursor) key() key { return key{int64(c.uint()), int32(c.uint())} }

// maybes visits the optional numbers of a trace in the order of their bits in
// the mask that precedes them.
func maybes(t *Trace, wide func(*Maybe[int64]), narrow func(*Maybe[int32])) {
	wide(&t.Sent)
	wide(&t.Connected)
	wide(&t.FirstByte)
	wide(&t.End)
	wide(&t.ServerReceived)
	wide(&t.ServerQueue)
	wide(&t.ServerPrefill)
	for _, c := range []*Count{&t.Prompt, &t.Output} {
		narrow(&c.Used)
		narrow(&c.Intended)
		narrow(&c.Reported)
		narrow(&c.Counted)
	}
	narrow(&t.Cached)
	narrow(&t.Reasoning)
	narrow(&t.Turns)
}

// texts are the strings of a trace in the order of the journal.
func texts(t *Trace) [14]*string {
	return [...]*string{
		&t.Session, (*string)(&t.Phase), &t.Agent, &t.Target, (*string)(&t.Outcome),
		(*string)(&t.FailedAt), &t.Error, &t.FinishReason, &t.ResponseID, &t.Prompt.Source,
		&t.Output.Source, &t.ArrivalSource, &t.Check, &t.CheckDetail,
	}
}

// slowCode is 0 where it is not known whether a request was slow, 1 for no and
// 2 for yes.
func slowCode(s Maybe[bool]) byte {
	switch {
	case !s.OK:
		return 0
	case !s.V:
		return 1
	}
	return 2
}

// appendScalars writes everything of a trace but its lists.
func appendScalars(b []byte, t *Trace) []byte {
	b = appendKey(b, key{t.Index, t.Try})
	b = appendInt(b, t.Due)
	b = appendInt(b, int64(t.Turn))
	b = appendInt(b, int64(t.HTTPStatus))
	var mask, bit uint64 = 0, 1
	maybes(t, func(m *Maybe[int64]) { mask, bit = setBit(mask, bit, m.OK) },
		func(m *Maybe[int32]) { mask, bit = setBit(mask, bit, m.OK) })
	b = appendUint(b, mask)
	maybes(t, func(m *Maybe[int64]) {
		if m.OK {
			b = appendInt(b, m.V)
		}
	}, func(m *Maybe[int32]) {
		if m.OK {
			b = appendInt(b, int64(m.V))
		}
	})
	for _, s := range texts(t) {
		b = appendString(b, *s)
	}
	b = appendUint(b, uint64(len(t.Notes)))
	for _, s := range t.Notes {
		b = appendString(b, s)
	}
	return append(b, slowCode(t.Slow))
}

func setBit(mask, bit uint64, on bool) (uint64, uint64) {
	if on {
		mask |= bit
	}
	return mask, bit << 1
}

// scalars reads what appendScalars wrote into t, whose lists stay as they are.
func (c *cursor) scalars(t *Trace) {
	lists := t.Arrivals
	k := c.key()
	*t = Trace{Index: k.index, Try: k.try, Due: c.int(), Turn: int32(c.int()), HTTPStatus: int32(c.int()), Arrivals: lists}
	mask := c.uint()
	maybes(t, func(m *Maybe[int64]) {
		if mask&1 != 0 {
			*m = Some(c.int())
		}
		mask >>= 1
	}, func(m *Maybe[int32]) {
		if mask&1 != 0 {
			*m = Some(int32(c.int()))
		}
		mask >>= 1
	})
	for _, s := range texts(t) {
		*s = c.string()
	}
	for range c.count() {
		t.Notes = append(t.Notes, c.string())
	}
	if slow := c.byte(); slow != 0 {
		t.Slow = Some(slow == 2)
	}
}

// appendLists writes the six lists of a trace, column by column.
func appendLists(b []byte, a *Arrivals) []byte {
	b = appendUint(b, uint64(a.Len()))
	for _, v := range a.DeltaNs {
		b = appendInt(b, v)
	}
	b = appendRuns(b, a.Tokens)
	read := int32(0)
	for _, v := range a.Read {
		b = appendInt(b, int64(v)-int64(read))
		read = v
	}
	for _, v := range a.StampErrorNs {
		b = appendInt(b, v)
	}
	b = appendRuns(b, a.Channel)
	for _, v := range a.TextBytes {
		b = appendInt(b, int64(v))
	}
	return b
}

// lists replaces the lists in a by those that appendLists wrote.
func (c *cursor) lists(a *Arrivals) {
	a.Reset()
	n := c.count()
	for range n {
		a.DeltaNs = append(a.DeltaNs, c.int())
	}
	a.Tokens = readRuns(c, a.Tokens, n)
	read := int64(0)
	for range n {
		read += c.int()
		a.Read = append(a.Read, int32(read))
	}
	for range n {
		a.StampErrorNs = append(a.StampErrorNs, c.int())
	}
	a.Channel = readRuns(c, a.Channel, n)
	for range n {
		a.TextBytes = append(a.TextBytes, int32(c.int()))
	}
}

// appendRuns writes equal neighbours once, with how often they come.
func appendRuns[T int8 | int32](b []byte, list []T) []byte {
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j] == list[i] {
			j++
		}
		b = appendUint(appendInt(b, int64(list[i])), uint64(j-i))
		i = j
	}
	return b
}

func readRuns[T int8 | int32](c *cursor, list []T, n int) []T {
	for len(list) < n && !c.bad {
		v, times := T(c.int()), c.uint()
		if times == 0 || times > uint64(n-len(list)) {
			c.fail()
			break
		}
		for range times {
			list = append(list, v)
		}
	}
	return list
}

// appendTrace writes a whole trace; it is the form in which traces are sorted
// and compared.
func appendTrace(b []byte, t *Trace) []byte {
	return appendLists(appendScalars(b, t), &t.Arrivals)
}

func (c *cursor) trace(t *Trace) error {
	c.scalars(t)
	c.lists(&t.Arrivals)
	return c.err()
}

func appendMaybe(b []byte, m Maybe[int64]) []byte {
	if !m.OK {
		return append(b, 0)
	}
	return appendInt(append(b, 1), m.V)
}

func (c *cursor) maybe() Maybe[int64] {
	if c.byte() == 0 {
		return Maybe[int64]{}
	}
	return Some(c.int())
}

func appendMeta(b []byte, m *Meta) []byte {
	for _, s := range []string{m.Schema, m.RunYAML, m.Tool} {
		b = appendString(b, s)
	}
	b = appendMaybe(b, m.ZeroWallNs)
	b = appendFloat(b, m.TimeScale)
	b = appendUint(b, uint64(len(m.Labels)))
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		b = appendString(appendString(b, name), m.Labels[name])
	}
	b = appendMaybe(appendMaybe(b, m.WindowStart), m.WindowEnd)
	b = appendString(appendString(b, m.WindowWhy), m.Interrupted)
	if m.DataSet != "" {
		b = appendString(b, m.DataSet)
	}
	return b
}

func (c *cursor) meta() (Meta, error) {
	m := Meta{Schema: c.string(), RunYAML: c.string(), Tool: c.string(), ZeroWallNs: c.maybe(), TimeScale: c.float()}
	if n := c.count(); n > 0 {
		m.Labels = make(map[string]string, n)
		for range n {
			name := c.string()
			m.Labels[name] = c.string()
		}
	}
	m.WindowStart, m.WindowEnd, m.WindowWhy, m.Interrupted = c.maybe(), c.maybe(), c.string(), c.string()
	if len(c.b) > 0 { // older journals end here
		m.DataSet = c.string()
	}
	return m, c.err()
}
