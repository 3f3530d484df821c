package serve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A length is how many tokens an answer has. The zero value is as many as the
// request allows.
type length struct {
	fixed bool
	n     int
}

// UnmarshalText reads a number or max.
func (l *length) UnmarshalText(b []byte) error {
	if string(b) == "max" {
		*l = length{}
		return nil
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 {
		return fmt.Errorf("must be a number of tokens or max, not %q", b)
	}
	*l = length{true, n}
	return nil
}

// A reported is the usage that a server reports. The zero value is the truth,
// to those who ask.
type reported struct {
	Prompt     *int `yaml:"prompt"`
	Completion *int `yaml:"completion"`
	Always     bool `yaml:"always"` // unasked too

	off   bool
	extra int // completion tokens beyond those that were sent
}

// UnmarshalText reads true, false, always, a number of completion tokens, or
// one with a sign, which is added to the tokens that were sent.
func (r *reported) UnmarshalText(b []byte) error {
	text := string(b)
	switch text {
	case "true":
		*r = reported{}
		return nil
	case "false":
		*r = reported{off: true}
		return nil
	case "always":
		*r = reported{Always: true}
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("must be true, false, always, a number of tokens such as 12 or +1, or {prompt, completion, always}, not %q", text)
	}
	*r = reported{Completion: &n}
	if strings.HasPrefix(text, "+") || n < 0 {
		*r = reported{extra: n}
	}
	return nil
}

// usage is what is reported when sent tokens were sent after prompt tokens; nil
// for nothing.
func (r *reported) usage(prompt, sent int) *Usage {
	if r.off {
		return nil
	}
	u := &Usage{Prompt: prompt, Completion: max(0, sent+r.extra), Forced: r.Always}
	if r.Prompt != nil {
		u.Prompt = *r.Prompt
	}
	if r.Completion != nil {
		u.Completion = *r.Completion
	}
	return u
}

// UnmarshalText reads how a stream ends.
func (c *Closing) UnmarshalText(b []byte) error {
	names := []string{"", "eof", "cut", "reset", "silent", "mute"} // in the order of the constants
	i := slices.Index(names, string(b))
	if i < 1 {
		return fmt.Errorf("must be one of %s, not %q", strings.Join(names[1:], ", "), b)
	}
	*c = Closing(i)
	return nil
}
