package workload

// talks describes the conversations among the first n requests, whose lengths are
// given; those that are not whole there are left out.
func (w *Workload) talks(n int, length func(i int) pair) *Talks {
	if !w.Conversing() {
		return nil
	}
	var t Talks
	var first, last float64
	for i := int64(0); ; i++ {
		from, turns, ok := w.Conversation(i)
		if !ok || from+int64(turns) > int64(n) {
			break
		}
		if turns == 1 {
			t.Alone++
			continue
		}
		t.Conversations++
		t.Turns += int64(turns)
		t.MostTurns = max(t.MostTurns, int64(turns))
		said := w.prefixTokens(i)
		for k := range turns {
			p := length(int(from) + k)
			said += float64(p.input)
			if k == 0 {
				first += said
			}
			if k == turns-1 {
				last += said
			}
			said += float64(p.output)
		}
	}
	if t.Conversations > 0 {
		t.FirstPrompt, t.LastPrompt = first/float64(t.Conversations), last/float64(t.Conversations)
	}
	return &t
}

// prefixTokens is how long the text is that conversation i begins with.
func (w *Workload) prefixTokens(i int64) float64 {
	if p := w.options.Prefix; p != nil {
		if _, ok := w.synthetic.group(p, i); ok {
			return float64(p.Tokens)
		}
	}
	return 0
}

// sharedPrefix counts what a prefix cache without limit would know of the texts
// that made-up prompts begin with: of all tokens that turns add to their
// conversations, those of a text that came before.
func (s *Summary) sharedPrefix(w *Workload, n int, length func(i int) pair) {
	p := w.options.Prefix
	if p == nil {
		return
	}
	s.Prefix, s.Shared = p, &Prefixes{}
	seen := map[int64]bool{}
	tokens := 0.0
	for i := range n {
		tokens += float64(length(i).input)
	}
	for i := int64(0); ; i++ {
		from, _, _ := w.Conversation(i)
		if from >= int64(n) {
			break
		}
		group, ok := w.synthetic.group(p, i)
		if !ok {
			continue
		}
		s.Shared.Blocks++
		tokens += float64(p.Tokens)
		if seen[group] {
			s.Shared.Seen++
		}
		seen[group] = true
	}
	s.Shared.TokenShare = float64(s.Shared.Seen) * float64(p.Tokens) / tokens
}
