package wire

import (
	"sync"
	"sync/atomic"
)

const (
	blockBytes   = 256 << 10 // a block, small enough to stay in a core's cache as it goes round
	blockEntries = 1 << 10
	blocksKept   = 4        // free ones; more are only needed where a thousand streams begin or end together
	readLeast    = 16 << 10 // room that a read is given at least, so that it leaves nothing behind
	readMost     = 64 << 10
)

// A kind says what an entry of the log tells.
type kind uint8

const (
	wasDue  kind = iota
	wasSent      // stamp.At is when
	wasRead      // a head, data, or both
	wasEnd       // the call's result is final
)

// An entry is one thing that happened to one request. It holds no pointers: the
// bytes of a read lie in its block, the head first.
type entry struct {
	stamp Stamp
	slot  uint32 // of the request, in the loop's table
	kind  kind
	apart bool   // the head came in pieces and lies with the call
	fresh bool   // the connection was made for it, at stamp.EarlierNs
	at    uint32 // where in the block a head begins …
	head  uint32 // … and how long it is
	from  uint32 // where the body's bytes begin …
	data  uint32 // … and how many they are
}

// A block is a piece of a loop's log. The loop fills it, the decoder reads what is
// published, and then it goes back to be filled again: nothing is allocated while
// blocks come back as fast as they are filled.
type block struct {
	entries [blockEntries]entry
	bytes   [blockBytes]byte
	used    int           // of bytes
	n       int           // of entries, published or not
	told    atomic.Uint32 // of entries, published
	next    atomic.Pointer[block]
}

// A spool is the log of one loop: one writer, one reader, never in each other's
// way. Its order is the order in which things happened.
type spool struct {
	tail *block // the writer's
	head *block // the reader's
	seen int    // entries of head that were read

	mu   sync.Mutex
	free *block
	idle int // free ones
}

func newSpool() *spool {
	b := &block{}
	return &spool{tail: b, head: b}
}

// room makes sure that the tail has space for an entry and its bytes.
func (s *spool) room(bytes int) *block {
	b := s.tail
	if b.n < blockEntries && len(b.bytes)-b.used >= bytes {
		return b
	}
	s.mu.Lock()
	next := s.free
	if next != nil {
		s.free, s.idle = next.next.Load(), s.idle-1
		next.next.Store(nil)
	}
	s.mu.Unlock()
	if next == nil {
		next = &block{}
	}
	s.publish()
	b.next.Store(next)
	s.tail = next
	return next
}

// add is a new entry at the end. It is the reader's once published.
func (s *spool) add(k kind, slot uint32) *entry {
	b := s.room(0)
	e := &b.entries[b.n]
	b.n++
	*e = entry{kind: k, slot: slot}
	return e
}

// publish lets the reader see everything so far.
func (s *spool) publish() { s.tail.told.Store(uint32(s.tail.n)) }

// each hands over what was published since the last time.
func (s *spool) each(f func(*entry, *block)) {
	for {
		b := s.head
		next := b.next.Load() // before told: a block that has a next is complete
		for n := int(b.told.Load()); s.seen < n; s.seen++ {
			f(&b.entries[s.seen], b)
		}
		if next == nil {
			return
		}
		s.head, s.seen = next, 0
		b.used, b.n = 0, 0
		b.told.Store(0)
		s.mu.Lock()
		if s.idle < blocksKept {
			b.next.Store(s.free) // the last one used is the one still in the cache
			s.free, s.idle = b, s.idle+1
		}
		s.mu.Unlock()
	}
}
