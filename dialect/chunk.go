package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"fermata/recording"
)

type (
	maybe32 = recording.Maybe[int32]
	maybe64 = recording.Maybe[int64]
)

// A chunk is what one event of an OpenAI-compatible stream says, for choice 0.
// Two readers make it: scan for the usual shape, parse for any.
type chunk struct {
	id     []byte
	choice bool // choice 0 is there
	others bool // another choice is there
	role   bool // with a role, as in the event before the first text

	channel int8
	text    []byte
	finish  string // as sent
	ids     int32  // token ids in the event, or Unknown
	probs   int32  // log-probability entries, or Unknown

	usage    usage
	timing   timing
	progress bool   // llama.cpp's prompt_progress: not a token
	err      string // message of an error in the event
}

func newChunk() chunk { return chunk{ids: Unknown, probs: Unknown} }

// A usage is one usage object; servers that send several count up.
type usage struct {
	prompt, completion, total, cached, reasoning maybe32
}

func (u *usage) told() bool { return u.prompt.OK || u.completion.OK }

// output is the number of output tokens. A total above the sum says that the
// completion tokens leave the reasoning out.
func (u *usage) output() (n maybe32, withoutReasoning bool) {
	if u.prompt.OK && u.completion.OK && u.total.OK && u.total.V-u.prompt.V > u.completion.V {
		return recording.Some(u.total.V - u.prompt.V), true
	}
	return u.completion, false
}

// A timing is what the server says about itself: llama.cpp's timings, vLLM's
// metrics, or our own server's fermata object.
type timing struct {
	receivedWall, queue, prefill maybe64 // ns
	predicted, prompt, cached    maybe32 // llama.cpp's counts
}

// An object is a JSON object whose members are read one by one, so that an odd
// one spoils no other. Names are taken by case, and of equal ones the last.
type object map[string]json.RawMessage

// readObject is the object in raw, or nil where it is something else.
func readObject(raw json.RawMessage) object {
	var o object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func (o object) has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

func (o object) array(key string) []json.RawMessage {
	var a []json.RawMessage
	if raw := o[key]; len(raw) == 0 || json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}

// text is the string of a member, or the joined text parts of an array.
func (o object) text(key string) string {
	var s string
	if raw := o[key]; len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	for _, part := range o.array(key) {
		if p := readObject(part); p != nil {
			s += p.text("text")
		}
	}
	return s
}

// number is a number that is not negative.
func (o object) number(key string) (float64, bool) {
	f, err := strconv.ParseFloat(string(o[key]), 64)
	return f, err == nil && f >= 0 && f < math.MaxInt64
}

func (o object) int64(key string) maybe64 {
	raw, ok := o[key]
	if !ok {
		return maybe64{}
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		return recording.Some(n)
	}
	if f, ok := o.number(key); ok && f < 1<<53 {
		return recording.Some(int64(f))
	}
	return maybe64{}
}

func (o object) int32(key string) maybe32 {
	if n := o.int64(key); n.OK && n.V <= math.MaxInt32 {
		return recording.Some(int32(n.V))
	}
	return maybe32{}
}

// millis is a time in milliseconds, in ns.
func (o object) millis(key string) maybe64 {
	if f, ok := o.number(key); ok && f < math.MaxInt64/1e6 {
		return recording.Some(int64(math.Round(f * 1e6)))
	}
	return maybe64{}
}

// parse reads any chunk. An error says why it is none.
func parse(data []byte) (chunk, error) {
	c := newChunk()
	top := readObject(data)
	if top == nil {
		if json.Valid(data) {
			return c, errors.New("an event's data is no JSON object: " + shorten(string(data), 40))
		}
		return c, fmt.Errorf("an event's data is not JSON: %q", shorten(string(data), 40))
	}
	c.id = []byte(top.text("id"))
	for _, raw := range top.array("choices") {
		choice := readObject(raw)
		switch {
		case choice == nil:
		case choice.int32("index").Or(0) != 0:
			c.others = true
		case !c.choice:
			c.readChoice(choice)
		}
	}
	groq := readObject(top["x_groq"])
	c.usage = readUsage(readObject(top["usage"]))
	if !c.usage.told() {
		c.usage = readUsage(readObject(groq["usage"]))
	}
	c.timing = readTiming(top)
	c.progress = top.has("prompt_progress")
	c.err = errorIn(top)
	return c, nil
}

// readChoice reads choice 0 of a chat chunk (delta), a whole answer (message) or
// a completions chunk (text).
func (c *chunk) readChoice(choice object) {
	c.choice = true
	delta := readObject(choice["delta"])
	if delta == nil {
		delta = readObject(choice["message"])
	}
	c.role = delta.text("role") != ""
	c.finish = choice.text("finish_reason")
	text := delta.text("content")
	if text == "" {
		text = choice.text("text")
	}
	reasoning := delta.text("reasoning_content")
	if reasoning == "" {
		reasoning = delta.text("reasoning")
	}
	c.channel, c.text = pick([]byte(text), []byte(reasoning), []byte(delta.text("refusal")), toolText(delta))
	if choice.has("token_ids") {
		c.ids = int32(len(choice.array("token_ids")))
	}
	if probs := readObject(choice["logprobs"]); probs.has("content") {
		c.probs = int32(len(probs.array("content")))
	} else if probs.has("tokens") {
		c.probs = int32(len(probs.array("tokens")))
	}
}

// pick is the text of an event and its channel. Where an event has text on
// several, which is rare, the reader's answer comes first.
func pick(answer, reasoning, refusal, tool []byte) (int8, []byte) {
	switch {
	case len(answer) > 0:
		return recording.ChannelAnswer, answer
	case len(refusal) > 0:
		return recording.ChannelRefusal, refusal
	case len(tool) > 0:
		return recording.ChannelToolCall, tool
	case len(reasoning) > 0:
		return recording.ChannelReasoning, reasoning
	}
	return recording.ChannelAnswer, nil
}

// toolText is the text of a delta's tool calls: names and arguments.
func toolText(delta object) []byte {
	var text string
	for _, raw := range delta.array("tool_calls") {
		f := readObject(readObject(raw)["function"])
		text += f.text("name") + f.text("arguments")
	}
	f := readObject(delta["function_call"])
	return []byte(text + f.text("name") + f.text("arguments"))
}

func readUsage(o object) usage {
	u := usage{
		prompt:     o.int32("prompt_tokens"),
		completion: o.int32("completion_tokens"),
		total:      o.int32("total_tokens"),
		cached:     readObject(o["prompt_tokens_details"]).int32("cached_tokens"),
		reasoning:  readObject(o["completion_tokens_details"]).int32("reasoning_tokens"),
	}
	if !u.reasoning.OK {
		u.reasoning = o.int32("reasoning_tokens") // SGLang
	}
	return u
}

func readTiming(top object) timing {
	var t timing
	if o := readObject(top["timings"]); o != nil {
		t.predicted, t.cached, t.prompt = o.int32("predicted_n"), o.int32("cache_n"), o.int32("prompt_n")
		t.prefill = o.millis("prompt_ms")
	}
	if o := readObject(top["metrics"]); o != nil {
		t.queue = o.millis("queue_time_ms")
		t.prefill = o.millis("time_to_first_token_ms") // from scheduling, without the queue
	}
	if o := readObject(top["fermata"]); o != nil {
		t.receivedWall, t.queue, t.prefill = o.int64("received_ns"), o.int64("queue_ns"), o.int64("prefill_ns")
	}
	return t
}
