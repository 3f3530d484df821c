package load

import (
	"net/http"
	"strings"
)

// Placeholders stand in the value of a header for what differs from request to
// request. Anything else in braces stays as it is: it may be JSON.
var Placeholders = []string{"{index}", "{session}", "{seed}"}

// FillHeader gives the placeholders of a header their values, in the order of
// Placeholders. Where it has none, it is the header itself.
func FillHeader(h http.Header, values ...string) http.Header {
	if !hasPlaceholder(h) {
		return h
	}
	var pairs []string
	for i, p := range Placeholders {
		pairs = append(pairs, p, values[i])
	}
	fill := strings.NewReplacer(pairs...)
	h = h.Clone()
	for _, lines := range h {
		for i := range lines {
			lines[i] = fill.Replace(lines[i])
		}
	}
	return h
}

func hasPlaceholder(h http.Header) bool {
	for _, lines := range h {
		for _, line := range lines {
			for _, p := range Placeholders {
				if strings.Contains(line, p) {
					return true
				}
			}
		}
	}
	return false
}
