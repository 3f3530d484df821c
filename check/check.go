// Package check says whether an answer is right: whether it conforms to a JSON
// schema, matches a regular expression, is an exact text, or satisfies a command.
package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"fermata/internal/conf"
	"fermata/internal/schema"
)

// The kinds of checks, as they are written.
const (
	Schema  = "schema"
	Regex   = "regex"
	Text    = "text"
	Command = "command"
)

// Options are one check, of one kind. The zero value checks nothing.
type Options struct {
	Schema  string `yaml:"schema"`  // file of a JSON schema to which the answer, as JSON, must conform
	Regex   string `yaml:"regex"`   // RE2 expression that must match somewhere in the answer
	Text    string `yaml:"text"`    // the answer, to the byte
	Command string `yaml:"command"` // of a shell, given the answer on its standard input; exit status 0 passes
}

// fields are where each kind stands.
func (o *Options) fields() map[string]*string {
	return map[string]*string{Schema: &o.Schema, Regex: &o.Regex, Text: &o.Text, Command: &o.Command}
}

// UnmarshalText reads KIND:VALUE, such as regex:^yes.
func (o *Options) UnmarshalText(b []byte) error {
	kind, value, ok := strings.Cut(string(b), ":")
	field := o.fields()[strings.TrimSpace(kind)]
	if !ok || field == nil {
		return fmt.Errorf("must be schema:FILE, regex:EXPRESSION, text:TEXT or command:COMMAND, not %q", b)
	}
	if value == "" {
		return fmt.Errorf("has nothing after %q", kind+":")
	}
	*o = Options{}
	*field = value
	return nil
}

// Kind is which of the kinds it is; empty for none.
func (o Options) Kind() string {
	for _, kind := range []string{Schema, Regex, Text, Command} {
		if *o.fields()[kind] != "" {
			return kind
		}
	}
	return ""
}

// Check finds what is wrong with the options, as far as a look at the disk can
// tell. No command is run.
func (o Options) Check() []conf.Problem {
	given := 0
	for _, value := range o.fields() {
		if *value != "" {
			given++
		}
	}
	if given > 1 {
		return []conf.Problem{{Text: "has several of schema, regex, text and command; give one (a command can do all of it)"}}
	}
	var err error
	switch kind := o.Kind(); kind {
	case Schema:
		_, err = readSchema(o.Schema)
	case Regex:
		_, err = compile(o.Regex)
	}
	if err != nil {
		return []conf.Problem{{Path: o.Kind(), Text: err.Error()}}
	}
	return nil
}

// A Checker judges answers. Open makes one.
type Checker struct {
	kind  string
	judge func(ctx context.Context, answer string) (detail string)
}

// Open makes the check ready, or is nil where o asks for none. A command is run
// once, with an empty answer, to see that it can be.
func Open(ctx context.Context, o Options) (*Checker, error) {
	if found := o.Check(); len(found) > 0 {
		return nil, errors.New("the check " + strings.TrimPrefix(found[0].Path+" ", " ") + found[0].Text)
	}
	c := &Checker{kind: o.Kind()}
	switch c.kind {
	case "":
		return nil, nil
	case Schema:
		s, err := readSchema(o.Schema)
		if err != nil {
			return nil, err
		}
		c.judge = func(_ context.Context, answer string) string { return s.Broken([]byte(answer)) }
	case Regex:
		re, err := compile(o.Regex)
		if err != nil {
			return nil, err
		}
		c.judge = func(_ context.Context, answer string) string {
			if re.MatchString(answer) {
				return ""
			}
			return fmt.Sprintf("no match of %s in %s", o.Regex, size(answer))
		}
	case Text:
		c.judge = func(_ context.Context, answer string) string { return differs(answer, o.Text) }
	case Command:
		if err := try(ctx, o.Command); err != nil {
			return nil, err
		}
		c.judge = func(ctx context.Context, answer string) string { return run(ctx, o.Command, answer) }
	}
	return c, nil
}

// Answer says whether an answer passes, and if not why, in words that hold none
// of the answer's own (only a command may repeat some). A cancelled ctx ends a
// command; what is said then means nothing.
func (c *Checker) Answer(ctx context.Context, answer string) (pass bool, detail string) {
	detail = c.judge(ctx, answer)
	return detail == "", detail
}

func readSchema(file string) (*schema.Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	s, err := schema.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func compile(expression string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("is no regular expression of Go's (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

// differs says where an answer leaves the wanted text; empty where it does not.
func differs(answer, want string) string {
	if answer == want {
		return ""
	}
	got, wanted, at := []rune(answer), []rune(want), 0
	for at < min(len(got), len(wanted)) && got[at] == wanted[at] {
		at++
	}
	switch {
	case at == len(got):
		return fmt.Sprintf("ends after %d of %d characters of the text", at, len(wanted))
	case at == len(wanted):
		return fmt.Sprintf("goes on after the text, for %s", size(string(got[at:])))
	}
	return fmt.Sprintf("differs from the text in character %d", at+1)
}

func size(s string) string {
	if n := utf8.RuneCountInString(s); n != 1 {
		return fmt.Sprintf("%d characters", n)
	}
	return "1 character"
}
