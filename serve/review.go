package serve

import (
	"fmt"
	"slices"
	"strings"

	"fermata/internal/conf"
)

// A review gathers what is wrong with a script.
type review []conf.Problem

func (r *review) add(path, format string, args ...any) {
	*r = append(*r, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// notNegative finds fault with numbers and durations below 0.
func notNegative[T ~int | ~int64](r *review, path string, v T) {
	if v < 0 {
		r.add(path, "must not be negative, but is %v", v)
	}
}

func (s *scriptText) problems() []conf.Problem {
	var r review
	if len(s.Models) == 0 {
		r.add("models", "must have at least one model, such as {steady: {ttft: 200ms, gap: 20ms}}")
	}
	for name, m := range s.Models {
		m.review(&r, "models."+name)
	}
	return r
}

func (m *model) review(r *review, path string) {
	notNegative(r, path+".ttft", m.TTFT)
	notNegative(r, path+".gap", m.Gap)
	notNegative(r, path+".per_chunk", m.PerChunk)
	notNegative(r, path+".prompt_tokens", m.PromptTokens)
	notNegative(r, path+".overhead", m.Overhead)
	for i, f := range m.Freeze {
		at := fmt.Sprintf("%s.freeze[%d]", path, i)
		notNegative(r, at+".for", f.For)
		if first := m.perChunk(); f.At < first {
			r.add(at+".at", "must be %d or more: tokens before that come at ttft, which no gap precedes", first)
		}
	}
	if len(m.Steps) > 0 && (m.TTFT != 0 || m.Gap != 0 || m.Tokens.fixed || len(m.Freeze) > 0 || m.PerChunk != 0) {
		r.add(path+".steps", "are the whole answer: leave out ttft, gap, tokens, per_chunk and freeze")
	}
	reviewSteps(r, path, m.Steps)
	if m.Fail != nil {
		m.Fail.review(r, path+".fail")
	}
}

func (f *fail) review(r *review, path string) {
	notNegative(r, path+".every", f.Every)
	notNegative(r, path+".at", f.At)
	if f.After != nil {
		notNegative(r, path+".after", *f.After)
	}
	if f.Kind != "" && !slices.Contains(failKinds, f.Kind) {
		r.add(path+".kind", "must be one of %s, not %q", strings.Join(failKinds, ", "), f.Kind)
	}
	if len(f.Steps) > 0 && f.Kind != "" {
		r.add(path+".kind", "does not go together with steps: they are the failing answer")
	}
	reviewStatus(r, path, f.Status)
	if k := f.kind(); f.Status != 0 && k != failStatus && k != failHTML {
		r.add(path+".status", "goes together with the kinds status and html only, not %s", k)
	}
	reviewSteps(r, path, f.Steps)
}

func reviewStatus(r *review, path string, status int) {
	if status != 0 && (status < 200 || status > 599) {
		r.add(path+".status", "must be from 200 to 599, not %d", status)
	}
}

func reviewSteps(r *review, path string, steps []step) {
	last := int64(0)
	for i, s := range steps {
		at := fmt.Sprintf("%s.steps[%d]", path, i)
		if s.At != nil {
			notNegative(r, at+".at", *s.At)
			if int64(*s.At) < last {
				r.add(at+".at", "must not be before the step above")
			}
			last = max(last, int64(*s.At))
		}
		if s.Tokens != nil {
			notNegative(r, at+".tokens", *s.Tokens)
		}
		reviewStatus(r, at, s.Status)
		kinds := 0
		for _, has := range []bool{
			s.isChunk(), s.Comment != "", s.Data != "", s.Raw != "", s.Error != "", s.Done, s.Status != 0, s.Close != Open,
		} {
			if has {
				kinds++
			}
		}
		switch {
		case kinds == 0:
			r.add(at, "must send something: role, text, reasoning, finish, usage, comment, data, raw, error, done, status or close")
		case kinds > 1:
			r.add(at, "must send one thing: a chunk (role, text, reasoning, finish, usage), or one of comment, data, raw, error, done, status, close")
		case (s.Close != Open || s.Status != 0) && i < len(steps)-1:
			r.add(at, "ends the answer, so it must be the last step")
		case s.Status != 0 && i > 0:
			r.add(at+".status", "must be the only step: a status comes before a stream")
		case s.Status == 0 && (s.Body != "" || s.Type != ""):
			r.add(at, "has body or type, which need status")
		}
	}
}

func (s *step) isChunk() bool {
	plainTokens := s.Tokens != nil && s.Data == "" && s.Raw == ""
	return s.Role || s.Text != "" || s.Reasoning != "" || s.Finish != "" || s.Usage != nil || plainTokens
}
