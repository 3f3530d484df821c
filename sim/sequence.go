package sim

// A sequence is a request inside the engine.
type sequence struct {
	Request
	stream uint64 // of the tokens that only its session, or itself, has
	shared uint64 // of those that its prefix has

	target    int // tokens to prefill: the prompt, or after a recompute also what was generated
	computed  int // tokens whose keys and values exist
	generated int // tokens emitted
	drafts    int // verified in this iteration
	alpha     float64

	blocks int      // held, the named ones included
	named  []*block // of the prefix cache: the leading ones that are known by their content

	home      *instance // whose memory holds it, or which it was routed to
	waiting   bool
	place     int  // in the queue's heap
	cancelled bool // by its client; leaves when nothing computes it
	ended     bool // its record is complete

	lands   int64 // on the decode side: when its keys and values are there
	blocked int   // blocks that are held for it there

	record  Record
	silence silence
}

// begin makes s that of a new request. Memory is kept.
func (s *sequence) begin(r Request) {
	tokens, gaps, culprits, named := s.record.Tokens[:0], s.record.apart[:0], s.record.culprits[:0], s.named[:0]
	*s = sequence{Request: r, target: r.Prompt, named: named}
	s.stream = hash(uint64(r.Index) ^ 0x5eed)
	if r.Session != "" {
		s.stream = hashText(r.Session)
	}
	if r.Prefix != "" {
		s.shared = hashText(r.Prefix)
	}
	s.record = Record{Request: r, FirstScheduled: absent, PrefillEnd: absent, Tokens: tokens, apart: gaps, culprits: culprits}
}

// decoding says whether its prefill is complete.
func (s *sequence) decoding() bool { return s.computed >= s.target }

// hash is the finaliser of SplitMix64: a bijection that mixes all bits.
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashText is FNV-1a, mixed.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return hash(h)
}
