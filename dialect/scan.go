package dialect

import (
	"unicode/utf16"
	"unicode/utf8"
)

// scan reads a chunk of the usual shape in one pass and without memory of its
// own: text is appended to buf. It gives up (false) at anything unusual, which
// parse then reads; where it does not give up, both say the same.
func scan(data, buf []byte) (chunk, bool) {
	s := scanner{b: data}
	c := newChunk()
	c.text = buf
	var seen uint32
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return once(&seen, 1) && s.plainString(&c.id)
		case "choices":
			return once(&seen, 2) && s.choices(&c)
		case "usage":
			return once(&seen, 4) && s.usage(&c.usage)
		case "object":
			var kind []byte
			return s.plainString(&kind) && string(kind) != "error"
		case "error", "x_groq", "timings", "metrics", "fermata", "prompt_progress", "detail", "message":
			return s.null()
		}
		return s.skip(0)
	})
	s.space()
	return c, ok && s.i == len(s.b)
}

// once reports whether a key is new; a repeated one is unusual.
func once(seen *uint32, bit uint32) bool {
	old := *seen
	*seen |= bit
	return old&bit == 0
}

type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// byte takes the byte c, after space.
func (s *scanner) byte(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// word takes a literal word.
func (s *scanner) word(w string) bool {
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

func (s *scanner) null() bool {
	s.space()
	return s.word("null")
}

// object takes an object; member takes the value of each key.
func (s *scanner) object(member func(key []byte) bool) bool {
	if !s.byte('{') {
		return false
	}
	if s.byte('}') {
		return true
	}
	for {
		key, escaped, ok := s.str()
		if !ok || escaped || !s.byte(':') || !member(key) {
			return false
		}
		if !s.byte(',') {
			return s.byte('}')
		}
	}
}

// array takes an array and each of its elements.
func (s *scanner) array(element func() bool) bool {
	if !s.byte('[') {
		return false
	}
	if s.byte(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !s.byte(',') {
			return s.byte(']')
		}
	}
}

func (s *scanner) choices(c *chunk) bool {
	if s.null() {
		return true
	}
	return s.array(func() bool { return s.choice(c) })
}

// texts are the texts of a choice as they stand in the JSON.
type texts struct{ answer, text, reasoning, other span }

// A span is the inside of a JSON string.
type span struct {
	b       []byte
	escaped bool
}

func (s *scanner) choice(c *chunk) bool {
	var t texts
	var role, finish span
	index, ids := int32(0), Unknown
	var seen uint32
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return once(&seen, 1) && (s.null() || s.int(&index))
		case "delta":
			return once(&seen, 2) && (s.null() || s.delta(&t, &role))
		case "text":
			return once(&seen, 4) && s.span(&t.text)
		case "finish_reason":
			return once(&seen, 8) && s.span(&finish) && !finish.escaped
		case "token_ids":
			return once(&seen, 16) && (s.null() || s.count(&ids))
		case "message", "logprobs":
			return s.null()
		}
		return s.skip(0)
	})
	switch {
	case !ok:
		return false
	case index != 0:
		c.others = true
		return true
	case c.choice:
		return true
	}
	c.choice, c.role, c.ids = true, len(role.b) > 0, ids
	if len(finish.b) > 0 {
		c.finish = string(finish.b)
	}
	answer := t.answer
	if len(answer.b) == 0 {
		answer = t.text
	}
	reasoning := t.reasoning
	if len(reasoning.b) == 0 {
		reasoning = t.other
	}
	channel, raw := pick(answer.b, reasoning.b, nil, nil)
	c.channel = channel
	c.text = unquote(c.text, raw)
	return true
}

func (s *scanner) delta(t *texts, role *span) bool {
	var seen uint32
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return once(&seen, 1) && s.span(role)
		case "content":
			return once(&seen, 2) && s.span(&t.answer)
		case "reasoning_content":
			return once(&seen, 4) && s.span(&t.reasoning)
		case "reasoning":
			return once(&seen, 8) && s.span(&t.other)
		case "tool_calls":
			return s.null() || s.byte('[') && s.byte(']')
		case "refusal", "function_call":
			return s.null()
		}
		return s.skip(0)
	})
}

func (s *scanner) usage(u *usage) bool {
	if s.null() {
		return true
	}
	var seen uint32
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return once(&seen, 1) && s.tokens(&u.prompt)
		case "completion_tokens":
			return once(&seen, 2) && s.tokens(&u.completion)
		case "total_tokens":
			return once(&seen, 4) && s.tokens(&u.total)
		case "prompt_tokens_details", "completion_tokens_details", "reasoning_tokens":
			return s.null()
		}
		return s.skip(0)
	})
}

func (s *scanner) tokens(m *maybe32) bool {
	if s.null() {
		return true
	}
	m.OK = true
	return s.int(&m.V)
}

// count takes an array and gives the number of its elements.
func (s *scanner) count(n *int32) bool {
	*n = 0
	return s.array(func() bool { *n++; return s.skip(0) })
}

// int takes a number of at most nine digits.
func (s *scanner) int(n *int32) bool {
	s.space()
	from, v := s.i, int32(0)
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' && s.i-from < 10 {
		v = v*10 + int32(s.b[s.i]-'0')
		s.i++
	}
	if d := s.i - from; d == 0 || d > 9 || d > 1 && s.b[from] == '0' {
		return false
	}
	if s.i < len(s.b) && (s.b[s.i] == '.' || s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		return false
	}
	*n = v
	return true
}

// plainString takes a string without escapes, or null.
func (s *scanner) plainString(to *[]byte) bool {
	var p span
	if !s.span(&p) || p.escaped {
		return false
	}
	*to = p.b
	return true
}

// span takes a string, or null.
func (s *scanner) span(p *span) bool {
	if s.null() {
		return true
	}
	var ok bool
	p.b, p.escaped, ok = s.str()
	return ok
}

// str takes a string and gives its inside, which is valid UTF-8 and has only
// valid escapes.
func (s *scanner) str() (inside []byte, escaped, ok bool) {
	if !s.byte('"') {
		return nil, false, false
	}
	from, i, high := s.i, s.i, false
	for i < len(s.b) {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			inside = s.b[from:i]
			return inside, escaped, !high || utf8.Valid(inside)
		case c == '\\':
			escaped = true
			if s.i = i + 1; !s.escape() {
				return nil, false, false
			}
			i = s.i
		case c < ' ':
			return nil, false, false
		default:
			high = high || c >= utf8.RuneSelf
			i++
		}
	}
	return nil, false, false
}

// escape takes what follows a backslash.
func (s *scanner) escape() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		_, ok := hex4(s.b[s.i:])
		s.i += 4
		return ok
	}
	return false
}

// hex4 is the number in the four hexadecimal digits at the start of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote appends the text that the inside of a string stands for. Half of a
// surrogate pair becomes U+FFFD, as in encoding/json.
func unquote(dst, inside []byte) []byte {
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch c := inside[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(inside[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				r = lowHalf(r, inside[i+1:])
				if r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// lowHalf is the rune that high makes with the escape at the start of rest.
func lowHalf(high rune, rest []byte) rune {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return utf8.RuneError
	}
	low, _ := hex4(rest[2:])
	return utf16.DecodeRune(high, low)
}

// skip takes any value.
func (s *scanner) skip(depth int) bool {
	s.space()
	if s.i >= len(s.b) || depth > 20 {
		return false
	}
	switch s.b[s.i] {
	case '"':
		_, _, ok := s.str()
		return ok
	case '{':
		return s.object(func([]byte) bool { return s.skip(depth + 1) })
	case '[':
		return s.array(func() bool { return s.skip(depth + 1) })
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// number takes a number as JSON writes it.
func (s *scanner) number() bool {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		if s.i++; !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
