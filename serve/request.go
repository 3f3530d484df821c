package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// largestBody is the most bytes that a request may have.
const largestBody = 64 << 20

// readRequest understands the body of a request; Received and ID are left to
// the caller.
func readRequest(api string, header http.Header, body []byte) (*Request, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, badRequest("", "The body is not a JSON object: "+err.Error())
	}
	q := &Request{API: api, Header: header, Purpose: header.Get("x-fermata-purpose"), Fields: slices.Sorted(maps.Keys(fields))}
	var options struct {
		IncludeUsage bool `json:"include_usage"`
		EachUsage    bool `json:"continuous_usage_stats"`
	}
	var newMax int
	for _, f := range []struct {
		name string
		into any
	}{{"model", &q.Model}, {"stream", &q.Stream}, {"max_tokens", &q.MaxTokens}, {"max_completion_tokens", &newMax}, {"stream_options", &options}} {
		if raw, ok := fields[f.name]; ok {
			if err := json.Unmarshal(raw, f.into); err != nil {
				return nil, badRequest(f.name, fmt.Sprintf("Invalid value of %s: %v", f.name, err))
			}
		}
	}
	for name, into := range map[string]any{"ignore_eos": &q.IgnoreEOS, "min_tokens": &q.MinTokens, "priority": &q.Priority} {
		if raw, ok := fields[name]; ok {
			_ = json.Unmarshal(raw, into) // not every server knows them: what is no number is left out
		}
	}
	if newMax != 0 {
		q.MaxTokens = newMax
	}
	if q.MaxTokens < 0 {
		return nil, badRequest("max_tokens", "max_tokens must not be negative.")
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if string(fields[name]) == "0" {
			return nil, badRequest(name, name+" must be at least 1, got 0.")
		}
	}
	if q.MaxTokens > 0 && q.MinTokens > q.MaxTokens {
		return nil, badRequest("min_tokens", fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.", q.MaxTokens, q.MinTokens))
	}
	q.IncludeUsage, q.EachUsage = options.IncludeUsage, options.EachUsage
	name := "messages"
	if api == Completions {
		name = "prompt"
	}
	raw, ok := fields[name]
	if !ok {
		return nil, badRequest(name, "Missing required parameter: "+name)
	}
	var c counter
	var err error
	if api == Completions {
		err = c.prompt(raw)
	} else {
		err = c.messages(raw)
	}
	q.PromptTokens, q.Blocks = c.n, c.blocks
	if err != nil {
		return nil, badRequest(name, fmt.Sprintf("Invalid value of %s: %v", name, err))
	}
	return q, nil
}

func badRequest(param, message string) *Refusal {
	return &Refusal{http.StatusBadRequest, Fault{Message: message, Type: "invalid_request_error", Param: param}}
}

// promptBlock is how many words a block of a prompt has.
const promptBlock = 16

// A counter counts the words of a prompt and hashes its beginning up to each
// block of them (FNV-1a).
type counter struct {
	n      int
	hash   uint64
	blocks []int64
}

func (c *counter) word(s string) {
	if c.n == 0 {
		c.hash = 14695981039346656037
	}
	for i := range len(s) {
		c.hash = (c.hash ^ uint64(s[i])) * 1099511628211
	}
	c.hash = (c.hash ^ ' ') * 1099511628211
	if c.n++; c.n%promptBlock == 0 {
		c.blocks = append(c.blocks, int64(c.hash>>1))
	}
}

func (c *counter) text(s string) {
	for w := range strings.FieldsSeq(s) {
		c.word(w)
	}
}

// prompt counts a prompt: a text, token ids, or a list of either.
func (c *counter) prompt(raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if _, one := v.(float64); one {
		return fmt.Errorf("a number: token ids come in a list")
	}
	var count func(v any) error
	count = func(v any) error {
		switch v := v.(type) {
		case string:
			c.text(v)
		case float64:
			c.word(fmt.Sprint(v))
		case []any:
			for _, e := range v {
				if err := count(e); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("neither text nor token ids")
		}
		return nil
	}
	return count(v)
}

// messages counts the words of all messages, whose content is a text or a list
// of parts.
func (c *counter) messages(raw json.RawMessage) error {
	var messages []struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		return err
	}
	for _, m := range messages {
		var text string
		if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
			c.text(text)
			continue
		}
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(m.Content, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			c.text(p.Text)
		}
	}
	return nil
}
