package load

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Placeholders stand in the value of a header for what differs from request to
// request. In double braces one stands for itself in single ones: {{index}} goes
// out as {index}. Anything that is no word in braces stays as it is: it may be JSON.
var Placeholders = []string{"{index}", "{session}", "{seed}"}

var (
	wordInBraces = regexp.MustCompile(`\{[A-Za-z_]+\}`)
	filled       = regexp.MustCompile(`\{\{[A-Za-z_]+\}\}|\{[A-Za-z_]+\}`) // perhaps
	escapedWord  = regexp.MustCompile(`\{(\{[A-Za-z_]+\})\}`)
)

// AroundPlaceholders are the parts of a header's value that stay the same from
// request to request; nil where that is all of it.
func AroundPlaceholders(value string) []string {
	if !filled.MatchString(value) {
		return nil
	}
	return filled.Split(value, -1)
}

// StrangePlaceholder is the first word in braces, in the value of a header, that is
// none of Placeholders, such as {idnex}; empty where there is none.
func StrangePlaceholder(value string) string {
	for _, word := range wordInBraces.FindAllString(escapedWord.ReplaceAllString(value, ""), -1) {
		if !slices.Contains(Placeholders, word) {
			return word
		}
	}
	return ""
}

// FillHeader gives the placeholders of a header their values, in the order of
// Placeholders. Where it has none, it is the header itself.
func FillHeader(h http.Header, values ...string) http.Header {
	if !hasPlaceholder(h) {
		return h
	}
	value := func(word string) string {
		if m := escapedWord.FindStringSubmatch(word); m != nil {
			return m[1]
		}
		if i := slices.Index(Placeholders, word); i >= 0 {
			return values[i]
		}
		return word
	}
	h = h.Clone()
	for _, lines := range h {
		for i := range lines {
			lines[i] = filled.ReplaceAllStringFunc(lines[i], value)
		}
	}
	return h
}

func hasPlaceholder(h http.Header) bool {
	for _, lines := range h {
		for _, line := range lines {
			if strings.Contains(line, "{") && filled.MatchString(line) {
				return true
			}
		}
	}
	return false
}
