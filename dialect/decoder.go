package dialect

import (
	"bytes"
	"slices"

	"fermata/recording"
)

// A decoder reads the events of one answer in the form of chat or completions:
// their chunks differ only in where the text stands.
type decoder struct {
	a   Answer
	buf []byte // text of the last event

	started bool    // there was a token event
	worded  bool    // there was text
	usages  bool    // an event told its usage
	several bool    // there are several choices
	brought int32   // cumulative usage up to the last token event
	highest maybe32 // greatest output count that was reported
}

// Answer implements Decoder.
func (d *decoder) Answer() *Answer { return &d.a }

// Event implements Decoder.
func (d *decoder) Event(name string, data []byte) (Token, bool) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return Token{}, false
	case name == "error":
		d.fail(eventError(data))
		return Token{}, false
	case string(data) == "[DONE]":
		d.a.Done = true
		return Token{}, false
	}
	c, ok := scan(data, d.buf[:0])
	if ok {
		d.buf = c.text
	} else {
		var err error
		if c, err = parse(data); err != nil {
			if d.a.Bad == "" {
				d.a.Bad = err.Error()
			}
			return Token{}, false
		}
	}
	return d.take(&c)
}

// eventError is the message of an event named error, whatever its data are.
func eventError(data []byte) string {
	top := readObject(data)
	if m := errorIn(top); m != "" {
		return m
	}
	if m := message(data); top != nil && m != "" {
		return m
	}
	if m := shorten(string(data), 300); m != "" {
		return m
	}
	return "an error without a message"
}

// take books what a chunk says.
func (d *decoder) take(c *chunk) (Token, bool) {
	if d.a.ID == "" {
		d.a.ID = string(c.id)
	}
	if c.others && !d.several {
		d.several = true
		d.note(recording.NoteManyChoices)
		d.a.ChoicesTokens, d.a.OutputTokens, d.a.ReasoningTokens = d.a.OutputTokens, maybe32{}, maybe32{}
	}
	if c.err != "" {
		d.fail(c.err)
	}
	tok, ok := d.token(c)
	d.reportUsage(&c.usage)
	d.reportTiming(&c.timing)
	d.finish(c.finish)
	return tok, ok
}

// token is the token event that a chunk is, if it is one.
func (d *decoder) token(c *chunk) (Token, bool) {
	if !c.choice || c.progress || d.a.Done { // what follows the end marker is no part of the answer
		return Token{}, false
	}
	silent := len(c.text) == 0
	tok := Token{Channel: c.channel, Text: c.text, Count: d.count(c, silent)}
	if silent {
		// Without a count, an event that is there for something else is no token.
		other := c.role || c.finish != "" || c.usage.told() || d.a.FinishReason != ""
		if tok.Count == 0 || tok.Count == Unknown && other {
			return Token{}, false
		}
	} else {
		d.worded = true
		d.a.ReasoningSeen = d.a.ReasoningSeen || c.channel == recording.ChannelReasoning
		if d.a.OutputTokens.OK && d.a.OutputTokens.V == 0 {
			d.a.OutputTokens = maybe32{} // a usage before the first token is not the answer's
		}
	}
	d.started = true
	return tok, true
}

// cumulative is how many tokens the answer has had so far, where a chunk says so.
func (c *chunk) cumulative() maybe32 {
	if n, _ := c.usage.output(); n.OK {
		return n
	}
	return c.timing.predicted
}

// count is the tokens of a chunk, as the server says, or Unknown. The first
// event that tells decides on the source for the answer.
func (d *decoder) count(c *chunk, silent bool) int32 {
	sum := c.cumulative()
	if d.several || silent && c.role {
		sum = maybe32{} // of other choices too; or left for the first event with text
	}
	if d.a.CountSource == "" {
		switch {
		case d.running(c, sum, silent):
			d.a.CountSource = recording.ArrivalUsage
		case c.ids > 0:
			d.a.CountSource = recording.ArrivalIDs
		case c.probs > 0:
			d.a.CountSource = recording.ArrivalLogprobs
		case c.ids == 0 && silent:
			return 0
		}
	}
	switch d.a.CountSource {
	case recording.ArrivalUsage:
		if !sum.OK {
			return Unknown
		}
		n := max(sum.V-d.brought, 0)
		d.brought += n
		return n
	case recording.ArrivalIDs:
		return c.ids
	case recording.ArrivalLogprobs:
		return c.probs
	}
	return Unknown
}

// running reports whether usage counts up event by event: then it stands in the
// first token event already. A first usage in an event that only finishes is the
// total of an answer, not the tokens of an event.
func (d *decoder) running(c *chunk, sum maybe32, silent bool) bool {
	return !d.started && sum.OK && sum.V > 0 && (!silent || c.finish == "" || d.usages)
}

func (d *decoder) reportUsage(u *usage) {
	if !u.told() {
		return
	}
	if !d.usages {
		d.usages, d.highest = true, maybe32{} // what llama.cpp's timings said is another count
	}
	if u.prompt.OK {
		d.a.PromptTokens = u.prompt
	}
	if u.cached.OK {
		d.a.CachedTokens = u.cached
	}
	out, without := u.output()
	if !out.OK || out.V == 0 && d.worded && d.a.OutputTokens.OK { // 0 beside text takes back nothing
		return
	}
	if without {
		d.note(NoteUsageWithoutReasoning)
	}
	d.reportOutput(out)
	if u.reasoning.OK && !d.several {
		d.a.ReasoningTokens = u.reasoning
		if u.reasoning.V > out.V {
			d.a.ReasoningTokens = out
			d.note(NoteReasoningClamped)
		}
	}
}

// reportOutput takes a further cumulative count of output tokens: the last holds.
func (d *decoder) reportOutput(n maybe32) {
	if d.several {
		d.a.ChoicesTokens = n
		return
	}
	if d.highest.OK && n.V < d.highest.V {
		d.note(recording.NoteUsageFell)
	}
	d.highest = recording.Some(max(n.V, d.highest.V))
	d.a.OutputTokens = n
}

func (d *decoder) reportTiming(t *timing) {
	set := func(to *maybe64, v maybe64) {
		if v.OK {
			*to = v
		}
	}
	set(&d.a.ReceivedWallNs, t.receivedWall)
	set(&d.a.QueueNs, t.queue)
	set(&d.a.PrefillNs, t.prefill)
	if !t.predicted.OK {
		return
	}
	d.a.PredictedN = t.predicted
	if d.usages || d.several {
		return
	}
	// Without usage, llama.cpp's timings say the same.
	d.reportOutput(t.predicted)
	if t.prompt.OK {
		d.a.PromptTokens = recording.Some(t.prompt.V + t.cached.V)
		d.a.CachedTokens = t.cached
	}
}

func (d *decoder) finish(raw string) {
	if raw == "" {
		return
	}
	came := normalFinish(raw)
	if came == "error" || came == "abort" {
		d.fail("the server ended the answer with the finish reason " + raw)
	}
	reason, extra := nextFinish(d.a.FinishReason, came)
	d.a.FinishReason = reason
	if extra {
		d.note(recording.NoteExtraFinish)
	}
}

// fail books an error inside the stream: the first is kept.
func (d *decoder) fail(message string) {
	if d.a.FinishReason != "" {
		d.note(recording.NoteErrorAfter)
	}
	if d.a.Error == "" {
		d.a.Error = message
	}
}

func (d *decoder) note(code string) {
	if !slices.Contains(d.a.Notes, code) {
		d.a.Notes = append(d.a.Notes, code)
	}
}
