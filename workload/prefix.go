package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A Prefix is a text that requests begin with: a share of them, each with the
// text of its group, as prompts of one application share their instructions. It
// comes before what Input says.
type Prefix struct {
	Tokens int     `yaml:"tokens"` // of each group's text
	Groups int     `yaml:"groups"` // texts, equally likely; default 1
	Share  float64 `yaml:"share"`  // of conversations, or of requests that stand alone, that begin with one; default 1
}

const groupsMax = 1_000_000

func (p *Prefix) check(o *Options, wrong func(path, format string, args ...any)) {
	if p == nil {
		return
	}
	if o.Dataset != "" {
		wrong("prefix", "is for made-up prompts: those of a data set begin as they do")
	}
	if p.Tokens < 1 || p.Tokens > inputMax {
		wrong("prefix.tokens", "must be between 1 and %d tokens, not %d", inputMax, p.Tokens)
	}
	if p.Groups < 0 || p.Groups > groupsMax {
		wrong("prefix.groups", "must be between 1 and %d texts, not %d", groupsMax, p.Groups)
	}
	if !(p.Share >= 0 && p.Share <= 1) {
		wrong("prefix.share", "must be more than 0 and at most 1, such as 0.8, not %v", p.Share)
	}
}

// filled is p with its defaults written out.
func (p *Prefix) filled() *Prefix {
	if p == nil {
		return nil
	}
	q := *p
	if q.Groups == 0 {
		q.Groups = 1
	}
	if q.Share == 0 {
		q.Share = 1
	}
	return &q
}

// prefix is what a conversation begins with; false for those that share nothing.
// Which one it is depends on the seed and the conversation's number alone.
func (s *synthetic) prefix(p *Prefix, conversation int64) (text string, ok bool) {
	n, ok := s.group(p, conversation)
	if !ok {
		return "", false
	}
	group := *s
	group.seed = s.prefixes
	words := max(1, int(math.Round(float64(p.Tokens)/s.calibration.perWord())))
	return group.text(n, words), true
}

// group is which of the prefixes a conversation begins with.
func (s *synthetic) group(p *Prefix, conversation int64) (n int64, ok bool) {
	r := rand.New(rand.NewPCG(s.prefixes, mix(uint64(conversation))))
	if r.Float64() >= p.Share {
		return 0, false
	}
	return r.Int64N(int64(p.Groups)), true
}

// share puts the prefix before the first turn of q's conversation.
func (w *Workload) share(q *Request) {
	p := w.options.Prefix
	if p == nil || q.Turn > 0 {
		return
	}
	if text, ok := w.synthetic.prefix(p, w.conversation(q)); ok {
		q.Prompt = text + " " + q.Prompt
		q.PromptTokens += int32(p.Tokens)
	}
}

// conversation is the number of a made-up request's conversation.
func (w *Workload) conversation(q *Request) int64 {
	if w.mixture != nil {
		conversation, _, _ := w.mixture.place(q.ID)
		return conversation
	}
	return q.ID / int64(max(1, w.options.Turns))
}

// String says it in words.
func (p *Prefix) String() string {
	texts := "one text"
	if p.Groups > 1 {
		texts = fmt.Sprintf("one of %d texts", p.Groups)
	}
	return fmt.Sprintf("a share of %g begins with %s of %d tokens", p.Share, texts, p.Tokens)
}
