package serve

import (
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"time"
)

const (
	tokensUnasked = 128 // of an answer with tokens: max to a request without max_tokens
	tokenText     = "tok "
)

func (m *model) perChunk() int { return max(1, m.PerChunk) }

// promptTokens is what m reports for q's prompt.
func (m *model) promptTokens(q *Request) int {
	if m.PromptTokens > 0 {
		return m.PromptTokens
	}
	return q.PromptTokens + m.Overhead
}

// length is the number of tokens of the answer to q and why it ends there.
func (m *model) length(q *Request) (n int, finish string) {
	switch {
	case m.Tokens.fixed:
		n = m.Tokens.n
	case q.MaxTokens > 0:
		n = q.MaxTokens
	default:
		n = tokensUnasked
	}
	finish = "stop"
	if q.MaxTokens > 0 && n >= q.MaxTokens {
		n, finish = q.MaxTokens, "length"
	}
	if m.Finish != "" {
		finish = m.Finish
	}
	return n, finish
}

// gap is the time before an event that brings the tokens from first to last.
func (m *model) gap(first, last int) time.Duration {
	gap, frozen := m.Gap, false
	for _, f := range m.Freeze {
		if f.At >= first && f.At <= last && (!frozen || f.For > gap) {
			gap, frozen = f.For, true
		}
	}
	return gap
}

// An ending is what a stream does instead of ending well.
type ending struct {
	broken bool    // after, of the tokens, it ends with last
	after  int     // tokens that come before
	last   []Event // at the time of the token that would have come next

	noFinish, noDone bool
}

// stream is the answer of a model without steps.
func (m *model) stream(q *Request, end ending) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		n, finish := m.length(q)
		prompt := m.promptTokens(q)
		sent, at := 0, m.TTFT
		role := q.API == Chat && (m.Role == nil || *m.Role)
		if role && m.Role != nil {
			if !yield(Event{Role: true, Usage: m.soFar(q, prompt, 0)}) {
				return
			}
			role = false
		}
		for sent < n && !(end.broken && sent >= end.after) {
			k := min(m.perChunk(), n-sent)
			if sent > 0 {
				at += m.gap(sent, sent+k-1)
			}
			if end.broken {
				k = min(k, end.after-sent)
			}
			if role && !yield(Event{At: at, Role: true, Usage: m.soFar(q, prompt, 0)}) {
				return
			}
			role = false
			sent += k
			e := Event{At: at, Text: m.text(k), Tokens: k, Usage: m.soFar(q, prompt, sent)}
			if q.API == Completions && sent == n && !end.broken && !end.noFinish {
				e.Finish = finish
			}
			if !yield(e) {
				return
			}
		}
		if end.broken {
			if sent > 0 && sent < n {
				at += m.gap(sent, sent+min(m.perChunk(), n-sent)-1)
			}
			for _, e := range end.last {
				e.At = at
				if !yield(e) {
					return
				}
			}
			return
		}
		m.finish(q, end, at, sent, finish, yield)
	}
}

// finish yields what follows the tokens of a stream.
func (m *model) finish(q *Request, end ending, at time.Duration, sent int, finish string, yield func(Event) bool) {
	prompt := m.promptTokens(q)
	// Of Completions the last token has brought the reason, if there was one.
	if !end.noFinish && (q.API == Chat || sent == 0) &&
		!yield(Event{At: at, Finish: finish, Usage: m.soFar(q, prompt, sent)}) {
		return
	}
	if u := m.Usage.usage(prompt, sent); u != nil && !yield(Event{At: at, Usage: u}) {
		return
	}
	if !end.noDone && m.done() {
		yield(Event{At: at, Done: true})
	}
}

func (m *model) done() bool { return m.Done == nil || *m.Done }

// soFar is the usage in the middle of a stream, for those who ask for it.
func (m *model) soFar(q *Request, prompt, sent int) *Usage {
	if !q.EachUsage || m.Usage.off {
		return nil
	}
	return &Usage{Prompt: prompt, Completion: sent}
}

// text is that of k tokens.
func (m *model) text(k int) string {
	one := m.Text
	if one == "" {
		one = tokenText
	}
	return strings.Repeat(one, k)
}

func (f *fail) kind() string {
	if f.Kind == "" {
		return failStatus
	}
	return f.Kind
}

// failing is the answer of a request that is to fail.
func (m *model) failing(q *Request) iter.Seq[Event] {
	f := m.Fail
	if len(f.Steps) > 0 {
		return m.play(f.Steps, q)
	}
	end := ending{broken: true}
	if f.After != nil {
		end.after = *f.After
	}
	switch f.kind() {
	case failStatus:
		return only(Event{At: f.At, Instead: errorPage(orStatus(f.Status, http.StatusServiceUnavailable), f.Message)})
	case failHTML:
		page := "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works</h1></body></html>\n"
		return only(Event{At: f.At, Instead: &Page{orStatus(f.Status, http.StatusOK), "text/html; charset=utf-8", []byte(page)}})
	case failSilent:
		return only(Event{Close: Silent})
	case failMute:
		return only(Event{Close: Mute})
	case failStall:
		end.last = []Event{{Close: Silent}}
	case failCut:
		end.last = []Event{{Close: Cut}}
	case failReset:
		end.last = []Event{{Close: Reset}}
	case failError:
		end.last = []Event{{Error: fault(http.StatusInternalServerError, f.Message)}}
		if m.done() {
			end.last = append(end.last, Event{Done: true})
		}
	case failNoFinish, failNoDone:
		well := *m
		if f.After != nil {
			well.Tokens = length{true, end.after}
		}
		return well.stream(q, ending{noFinish: f.kind() == failNoFinish, noDone: f.kind() == failNoDone})
	case failJSON:
		return func(yield func(Event) bool) {
			if !yield(Event{Whole: true}) {
				return
			}
			m.stream(q, ending{})(yield)
		}
	}
	return m.stream(q, end)
}

func only(e Event) iter.Seq[Event] {
	return func(yield func(Event) bool) { yield(e) }
}

func orStatus(status, other int) int {
	if status == 0 {
		return other
	}
	return status
}

// fault is an error object as fits a status.
func fault(status int, message string) *Fault {
	f := &Fault{Message: message, Type: "invalid_request_error"}
	switch {
	case status == http.StatusTooManyRequests:
		f.Type, f.Code = "rate_limit_error", "rate_limit_exceeded"
	case status == http.StatusUnauthorized:
		f.Code = "invalid_api_key"
	case status >= 500:
		f.Type = "server_error"
	}
	if message == "" {
		f.Message = "The script says: " + http.StatusText(status)
	}
	return f
}

func errorPage(status int, message string) *Page {
	b, _ := json.Marshal(map[string]*Fault{"error": fault(status, message)}) // strings only
	return &Page{status, "application/json", b}
}

// play is an answer of steps, with nothing added.
func (m *model) play(steps []step, q *Request) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		at, sent := time.Duration(0), 0
		for i, s := range steps {
			if s.At != nil {
				at = *s.At
			}
			e := Event{
				At: at, Role: s.Role, Text: s.Text, Reasoning: s.Reasoning, Finish: s.Finish,
				Comment: s.Comment, Data: s.Data, Raw: s.Raw, Done: s.Done, Close: s.Close,
			}
			e.More = i+1 < len(steps) && steps[i+1].At == nil
			switch {
			case s.Tokens != nil:
				e.Tokens = *s.Tokens
			case s.Text != "" || s.Reasoning != "":
				e.Tokens = 1
			}
			sent += e.Tokens
			if s.Usage != nil {
				e.Usage = s.Usage.usage(m.promptTokens(q), sent)
			}
			if s.Error != "" {
				e.Error = fault(http.StatusInternalServerError, s.Error)
			}
			if s.Status != 0 {
				e.Instead = errorPage(s.Status, "")
				if s.Body != "" {
					e.Instead = &Page{s.Status, "application/json", []byte(s.Body)}
				}
				if s.Type != "" {
					e.Instead.ContentType = s.Type
				}
			}
			if !yield(e) {
				return
			}
		}
	}
}
