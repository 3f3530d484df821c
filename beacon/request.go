package beacon

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

const mostBody = 64 << 20

// A request is one request as it came.
type request struct {
	method, path, query string
	body                []byte
	chat, usage         bool
	tokens              int // max_tokens; 0 where it does not say
}

// parseRequest takes a request from the beginning of b. n is its length; 0 if it has
// not come whole.
func parseRequest(b []byte) (a request, n int, err error) {
	head, rest, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		if len(b) > 64<<10 {
			return a, 0, fmt.Errorf("beacon: a request's head is longer than 64 KiB")
		}
		return a, 0, nil
	}
	line, fields, _ := strings.Cut(string(head), "\r\n")
	words := strings.Fields(line)
	if len(words) != 3 {
		return a, 0, fmt.Errorf("beacon: %q is no request line", line)
	}
	length := 0
	for field := range strings.SplitSeq(fields, "\r\n") {
		name, value, _ := strings.Cut(field, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil || length < 0 || length > mostBody {
				return a, 0, fmt.Errorf("beacon: Content-Length is %q", value)
			}
		case "transfer-encoding":
			return a, 0, fmt.Errorf("beacon: a request's body has a Content-Length, not Transfer-Encoding: %s", value)
		}
	}
	if len(rest) < length {
		return a, 0, nil
	}
	a.method = words[0]
	a.path, a.query, _ = strings.Cut(words[1], "?")
	if first, rest, ok := strings.Cut(strings.TrimPrefix(a.path, "/"), "/"); ok && a.query == "" && strings.Contains(first, "=") {
		a.path, a.query = "/"+rest, first // for clients that take a base URL alone: /gap=10ms&events=5/v1/completions
	}
	a.body = rest[:length]
	a.chat = strings.HasSuffix(a.path, "/chat/completions")
	a.usage = bytes.Contains(a.body, []byte(`include_usage":true`)) || bytes.Contains(a.body, []byte(`include_usage": true`))
	for _, name := range []string{`"max_tokens":`, `"max_completion_tokens":`} {
		if _, after, ok := bytes.Cut(a.body, []byte(name)); ok {
			after = bytes.TrimLeft(after, " ")
			end := bytes.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
			a.tokens, _ = strconv.Atoi(string(after[:max(0, end)]))
		}
	}
	return a, len(head) + 4 + length, nil
}

func (a *request) sum() uint64 {
	h := fnv.New64a()
	h.Write(a.body)
	return h.Sum64()
}

// page answers what is no completion.
func (a *request) page() []byte {
	status, body := "200 OK", `{}`
	switch {
	case a.method == "POST":
		status, body = "404 Not Found", `{"error":{"message":"a beacon answers /v1/chat/completions and /v1/completions"}}`
	case strings.HasSuffix(a.path, "/models"):
		body = `{"object":"list","data":[{"id":"beacon","object":"model","created":0,"owned_by":"fermata"}]}`
	}
	return response(status, body)
}

func response(status, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// streams says that the request is answered with a stream.
func (a *request) streams() bool {
	return a.method == "POST" && strings.HasSuffix(a.path, "/completions")
}
