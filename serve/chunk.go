package serve

import (
	"encoding/json"
	"strconv"
)

// An encoder writes the chunks of one answer. All chunks of an answer share
// their beginning, which is made once: a server under load must not be late
// because of its JSON.
type encoder struct {
	q    *Request
	head []byte // `data: {"id":…,"model":…`
	buf  []byte // of the current write
}

func newEncoder(q *Request) *encoder {
	object := "chat.completion.chunk"
	if q.API == Completions {
		object = "text_completion"
	}
	e := &encoder{q: q, buf: make([]byte, 0, 512)}
	e.head = append([]byte("data: "), head(q, object)...)
	return e
}

// head is the beginning of every JSON object of an answer, open for more.
func head(q *Request, object string) []byte {
	b := append([]byte(`{"id":`), quote(q.ID)...)
	b = append(append(b, `,"object":`...), quote(object)...)
	b = strconv.AppendInt(append(b, `,"created":`...), q.Received.Unix(), 10)
	return append(append(b, `,"model":`...), quote(q.Model)...)
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string can always be marshalled
	return b
}

// add appends what e puts on the wire to the current write.
func (c *encoder) add(e *Event) {
	switch {
	case e.Raw != "":
		c.buf = append(c.buf, e.Raw...)
	case e.Data != "":
		c.data([]byte(e.Data))
	case e.Error != nil:
		b, _ := json.Marshal(map[string]*Fault{"error": e.Error}) // strings only
		c.data(b)
	case e.Comment != "":
		c.buf = append(append(append(c.buf, ": "...), e.Comment...), "\n\n"...)
	case e.Done:
		c.buf = append(c.buf, "data: [DONE]\n\n"...)
	default:
		c.chunk(e)
	}
}

func (c *encoder) data(b []byte) {
	c.buf = append(append(append(c.buf, "data: "...), b...), "\n\n"...)
}

// chunk appends a chunk of the protocol, or nothing where only a usage that
// nobody asked for would stand in it.
func (c *encoder) chunk(e *Event) {
	usage := e.Usage
	if usage != nil && !c.q.IncludeUsage && !c.q.EachUsage && !usage.Forced {
		usage = nil
	}
	hasChoice := e.Role || e.Text != "" || e.Reasoning != "" || e.Finish != "" || e.Tokens > 0
	if !hasChoice && usage == nil {
		return
	}
	c.buf = append(append(c.buf, c.head...), `,"choices":[`...)
	if hasChoice {
		c.choice(e)
	}
	c.buf = append(c.buf, ']')
	switch {
	case usage != nil:
		c.buf = append(append(c.buf, `,"usage":`...), usageJSON(usage)...)
		c.buf = append(c.buf, timingJSON(usage)...)
	case c.q.IncludeUsage:
		c.buf = append(c.buf, `,"usage":null`...)
	}
	c.buf = append(c.buf, "}\n\n"...)
}

func (c *encoder) choice(e *Event) {
	if c.q.API == Completions {
		c.buf = append(append(c.buf, `{"index":0,"text":`...), quote(e.Text)...)
	} else {
		c.buf = append(c.buf, `{"index":0,"delta":{`...)
		if e.Role {
			c.buf = append(c.buf, `"role":"assistant",`...)
		}
		if e.Reasoning != "" {
			c.buf = append(append(append(c.buf, `"reasoning_content":`...), quote(e.Reasoning)...), ',')
		}
		if e.Text != "" || e.Role || (e.Tokens > 0 && e.Reasoning == "") {
			c.buf = append(append(append(c.buf, `"content":`...), quote(e.Text)...), ',')
		}
		if c.buf[len(c.buf)-1] == ',' {
			c.buf = c.buf[:len(c.buf)-1]
		}
		c.buf = append(c.buf, '}')
	}
	c.buf = append(c.buf, `,"finish_reason":`...)
	if e.Finish == "" {
		c.buf = append(c.buf, "null}"...)
		return
	}
	c.buf = append(append(c.buf, quote(e.Finish)...), '}')
}

func usageJSON(u *Usage) []byte {
	b := strconv.AppendInt([]byte(`{"prompt_tokens":`), int64(u.Prompt), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(u.Completion), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(u.Prompt+u.Completion), 10)
	if u.Cached != nil {
		b = append(strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(*u.Cached), 10), '}')
	}
	return append(b, '}')
}

// timingJSON is the key fermata that stands beside a usage; nothing without one.
func timingJSON(u *Usage) []byte {
	t := u.Timing
	if t == nil {
		return nil
	}
	b := strconv.AppendInt([]byte(`,"fermata":{"received_ns":`), t.ReceivedNs, 10)
	b = strconv.AppendInt(append(b, `,"queue_ns":`...), t.QueueNs, 10)
	return append(strconv.AppendInt(append(b, `,"prefill_ns":`...), t.PrefillNs, 10), '}')
}

// whole is the one JSON body of an answer that is not streamed.
func whole(q *Request, text, reasoning, finish string, usage *Usage) []byte {
	var b []byte
	if q.API == Completions {
		b = append(head(q, "text_completion"), `,"choices":[{"index":0,"text":`...)
		b = append(b, quote(text)...)
	} else {
		b = append(head(q, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		b = append(b, quote(text)...)
		if reasoning != "" {
			b = append(append(b, `,"reasoning_content":`...), quote(reasoning)...)
		}
		b = append(b, '}')
	}
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null}]"...)
	} else {
		b = append(append(b, quote(finish)...), "}]"...)
	}
	if usage != nil {
		b = append(append(b, `,"usage":`...), usageJSON(usage)...)
		b = append(b, timingJSON(usage)...)
	}
	return append(b, "}\n"...)
}
