package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// errorIn is the message of an error in a chunk or a body, in any of the shapes
// that servers use; empty without one.
func errorIn(top object) string {
	if m := message(top["error"]); m != "" {
		return m
	}
	if m := message(readObject(top["x_groq"])["error"]); m != "" {
		return m
	}
	if top.text("object") == "error" {
		if m := message(top["message"]); m != "" {
			return m
		}
		return "an error without a message"
	}
	if top.has("choices") {
		return ""
	}
	if m := message(top["detail"]); m != "" { // FastAPI
		return m
	}
	return shorten(top.text("message"), 300) // Cohere, Bedrock
}

// errorInList is the message of an error that stands in a list.
func errorInList(body []byte) string {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil || len(list) == 0 {
		return ""
	}
	return errorIn(readObject(list[0]))
}

// message is the text of an error value: a string, an object that has one, or
// a list of either. Null, false and "" are no error.
func message(raw json.RawMessage) string {
	switch string(raw) {
	case "", "null", "false", `""`, "[]":
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return shorten(s, 300)
	}
	if o := readObject(raw); o != nil {
		for _, key := range []string{"message", "msg", "detail", "error", "type", "code"} {
			if m := message(o[key]); m != "" {
				return m
			}
		}
		return "an error without a message"
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return message(list[0])
	}
	return shorten(string(raw), 300)
}

// bodyMessage says in one line what stands in a body that should have been
// JSON or a stream.
func bodyMessage(body []byte) string {
	lower := bytes.ToLower(body) // same length as body for the ASCII that is looked for
	if !bytes.HasPrefix(lower, []byte("<!doctype html")) && !bytes.Contains(lower, []byte("<html")) {
		return shorten(string(body), 200)
	}
	if _, rest, ok := bytes.Cut(lower, []byte("<title>")); ok {
		if title, _, ok := bytes.Cut(rest, []byte("</title>")); ok {
			start := len(lower) - len(rest)
			if len(lower) == len(body) {
				title = body[start : start+len(title)]
			}
			if t := shorten(html.UnescapeString(string(title)), 100); t != "" {
				return fmt.Sprintf("an HTML page titled %q", t)
			}
		}
	}
	return "an HTML page"
}

// shorten is s in one line of at most n bytes and an ellipsis, in valid UTF-8.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
