package sim

// A block of the prefix cache is the keys and values of the tokens up to its
// end, known by them.
type block struct {
	key        uint64
	holders    int
	prev, next *block // among those that nobody holds, the next to go first
}

// A cache keeps the blocks of ended requests, by the hash of the chain of tokens
// up to their end, until their room is needed. Least recently used goes first,
// and of one request the deepest. A nil cache keeps nothing.
type cache struct {
	blocks map[uint64]*block
	idle   int   // that nobody holds
	ring   block // its next is the next to go
	spare  *block
}

func newCache() *cache {
	c := &cache{blocks: map[uint64]*block{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// hold adds a holder to a block and says whether it had none.
func (c *cache) hold(b *block) (idle bool) {
	if b.holders++; b.holders > 1 {
		return false
	}
	b.prev.next, b.next.prev = b.next, b.prev
	c.idle--
	return true
}

// name makes a block that somebody holds known by its key, which no other has.
func (c *cache) name(key uint64) *block {
	b := c.spare
	if b == nil {
		b = &block{}
	} else {
		c.spare = b.next
	}
	*b = block{key: key, holders: 1}
	c.blocks[key] = b
	return b
}

// release takes a holder from each block of a chain and counts those that
// nobody holds any more.
func (c *cache) release(chain []*block) (freed int) {
	for i := len(chain) - 1; i >= 0; i-- {
		b := chain[i]
		if b.holders--; b.holders > 0 {
			continue
		}
		b.prev, b.next = c.ring.prev, &c.ring
		b.prev.next, b.next.prev = b, b
		c.idle++
		freed++
	}
	return freed
}

// makeRoom forgets blocks until no more than free are idle.
func (c *cache) makeRoom(free int) {
	if c == nil {
		return
	}
	for c.idle > free {
		b := c.ring.next
		b.prev.next, b.next.prev = b.next, b.prev
		c.idle--
		delete(c.blocks, b.key)
		b.next, c.spare = c.spare, b
	}
}

// key is that of block i of a sequence.
func (s *sequence) key(i, blockSize int) uint64 {
	end := (i + 1) * blockSize
	if s.HashTokens > 0 && end <= s.Prompt {
		if at := i * blockSize / s.HashTokens; at < len(s.Hashes) {
			return hash(hash(uint64(s.Hashes[at])) + uint64(i*blockSize%s.HashTokens))
		}
	}
	if s.Prefix != "" && end <= s.PrefixTokens {
		return hash(s.shared + uint64(i))
	}
	return hash(s.stream + uint64(i))
}

// cached finds the beginning of s that the cache has: full blocks, at most all
// but the last token of what is to prefill, which is always computed.
func (m *memory) cached(s *sequence) (chain []*block) {
	if m.cache == nil {
		return nil
	}
	chain = s.named[:0]
	for i := range (s.target - 1) / m.blockSize {
		b := m.cache.blocks[s.key(i, m.blockSize)]
		if b == nil {
			break
		}
		chain = append(chain, b)
	}
	s.named = chain[:0]
	return chain
}

// admit gives s, which holds nothing, the chain that cached found, and then
// blocks for so many tokens.
func (m *memory) admit(s *sequence, chain []*block, tokens int) {
	for _, b := range chain {
		if m.cache.hold(b) {
			m.free--
		}
	}
	s.named, s.blocks = chain, len(chain)
	s.computed = len(chain) * m.blockSize
	m.take(s, tokens)
}

// costs is how many free blocks it takes to admit s with the chain that cached
// found, and room for so many tokens.
func (m *memory) costs(chain []*block, tokens int) int {
	n := (tokens + m.blockSize - 1) / m.blockSize
	for _, b := range chain {
		if b.holders > 0 {
			n--
		}
	}
	return n
}

// remember names the blocks of s that are full by now. Where another sequence
// computed the same, that copy is held and the own one given back, as a radix
// tree does.
func (m *memory) remember(s *sequence) {
	if m.cache == nil {
		return
	}
	for i := len(s.named); i < min(s.computed/m.blockSize, s.blocks); i++ {
		key := s.key(i, m.blockSize)
		b := m.cache.blocks[key]
		if b == nil {
			b = m.cache.name(key)
		} else if !m.cache.hold(b) {
			m.free++
		}
		s.named = append(s.named, b)
	}
}
