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
	if newMax != 0 {
		q.MaxTokens = newMax
	}
	if q.MaxTokens < 0 {
		return nil, badRequest("max_tokens", "max_tokens must not be negative.")
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
	var err error
	if api == Completions {
		q.PromptTokens, err = promptTokens(raw)
	} else {
		q.PromptTokens, err = messageTokens(raw)
	}
	if err != nil {
		return nil, badRequest(name, fmt.Sprintf("Invalid value of %s: %v", name, err))
	}
	return q, nil
}

func badRequest(param, message string) *Refusal {
	return &Refusal{http.StatusBadRequest, Fault{Message: message, Type: "invalid_request_error", Param: param}}
}

func words(s string) int { return len(strings.Fields(s)) }

// promptTokens counts a prompt: a text, token ids, or a list of either.
func promptTokens(raw json.RawMessage) (int, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, err
	}
	n := 0
	var count func(v any) error
	count = func(v any) error {
		switch v := v.(type) {
		case string:
			n += words(v)
		case float64:
			n++
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
	err := count(v)
	return n, err
}

// messageTokens counts the words of all messages, whose content is a text or a
// list of parts.
func messageTokens(raw json.RawMessage) (int, error) {
	var messages []struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		return 0, err
	}
	n := 0
	for _, m := range messages {
		var text string
		if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
			n += words(text)
			continue
		}
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(m.Content, &parts); err != nil {
			return 0, err
		}
		for _, p := range parts {
			n += words(p.Text)
		}
	}
	return n, nil
}
