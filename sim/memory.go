package sim

// A memory holds the keys and values of an instance, in blocks.
type memory struct {
	blockSize int
	total     int
	free      int // neither held by a sequence nor, without a cache, anything else; cached blocks that nobody holds are free
	watermark int // that stay free when a request is admitted
	cache     *cache
}

// need is how many more blocks s takes to hold so many tokens.
func (m *memory) need(s *sequence, tokens int) int {
	return max(0, (tokens+m.blockSize-1)/m.blockSize-s.blocks)
}

// admits says whether so many blocks can be taken and the watermark kept.
func (m *memory) admits(blocks int) bool { return m.free-blocks >= m.watermark }

// take gives s the blocks to hold so many tokens. They must be free.
func (m *memory) take(s *sequence, tokens int) {
	n := m.need(s, tokens)
	m.free -= n
	s.blocks += n
	m.cache.makeRoom(m.free)
}

// trim takes back the blocks that s does not need for so many tokens.
func (m *memory) trim(s *sequence, tokens int) {
	if keep := (tokens + m.blockSize - 1) / m.blockSize; keep < s.blocks {
		m.free += s.blocks - keep
		s.blocks = keep
	}
}

// release takes back everything. What has a name stays in the cache until its
// room is needed.
func (m *memory) release(s *sequence) {
	m.free += s.blocks - len(s.named) + m.cache.release(s.named)
	s.blocks, s.named = 0, s.named[:0]
}
