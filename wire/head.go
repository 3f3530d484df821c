package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
)

// mostHead bounds a response's head.
const mostHead = 1 << 20

// A head is what a response's head says of how its body is to be read.
type head struct {
	status  int16
	chunked bool
	keep    bool  // the connection may be used again after the body
	left    int64 // of the body, to come; -1: until its chunks or the connection end
}

// interim says that another head follows.
func (h *head) interim() bool {
	return h.status >= 100 && h.status < 200 && h.status != http.StatusSwitchingProtocols
}

// headEnd is the length of a head that is whole, with its blank line; else 0.
func headEnd(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return 0
		}
		at += i + 1
		switch rest := b[at:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return at + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return at + 2
		}
	}
}

var errHead = errors.New("malformed HTTP response")

// parseHead reads a whole head (RFC 9112, sections 4 and 6.3). It allocates
// nothing for one that is right.
func parseHead(b []byte) (head, error) {
	h := head{left: -1}
	line, rest := cutLine(b)
	minor, err := h.statusLine(line)
	if err != nil {
		return h, err
	}
	h.keep = minor > 0
	lengths := 0
	for line, rest = cutLine(rest); len(line) > 0; line, rest = cutLine(rest) {
		if line[0] == ' ' || line[0] == '\t' {
			continue // the line before goes on: never one of those that matter here
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 {
			return h, fmt.Errorf("%w: a header line %q", errHead, short(line))
		}
		value = bytes.TrimSpace(value)
		switch {
		case equalFold(name, "transfer-encoding") && minor > 0:
			if h.chunked || !equalFold(value, "chunked") {
				return h, fmt.Errorf("%w: transfer encoding %q", errHead, short(value))
			}
			h.chunked = true
		case equalFold(name, "content-length"):
			n, ok := number(value)
			if !ok || lengths > 0 && n != h.left {
				return h, fmt.Errorf("%w: bad Content-Length %q", errHead, short(value))
			}
			h.left = n
			lengths++
		case equalFold(name, "connection"):
			h.keep = keeps(value, h.keep)
		}
	}
	switch {
	case h.status/100 == 1 || h.status == http.StatusNoContent || h.status == http.StatusNotModified:
		h.left, h.chunked = 0, false
	case h.chunked:
		h.left = -1
	case h.left < 0:
		h.keep = false
	}
	return h, nil
}

func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// statusLine reads "HTTP/1.1 200 OK".
func (h *head) statusLine(line []byte) (minor int, err error) {
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[7] < '0' || line[7] > '9' || line[8] != ' ' {
		return 0, fmt.Errorf("%w: %q", errHead, short(line))
	}
	code, _, _ := bytes.Cut(bytes.TrimLeft(line[9:], " "), []byte(" "))
	n, ok := number(code)
	if len(code) != 3 || !ok {
		return 0, fmt.Errorf("%w: a status %q", errHead, short(code))
	}
	h.status = int16(n)
	return int(line[7] - '0'), nil
}

// keeps is what a Connection line says of using the connection again.
func keeps(value []byte, keep bool) bool {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte(","))
		switch token = bytes.TrimSpace(token); {
		case equalFold(token, "close"):
			return false
		case equalFold(token, "keep-alive"):
			keep = true
		}
	}
	return keep
}

// equalFold compares with lower-case ASCII.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// short is the beginning of what an error quotes.
func short(b []byte) []byte { return b[:min(len(b), 60)] }

// readFields adds the fields of a whole head to h, as net/http would give them.
func readFields(h http.Header, b []byte) error {
	_, fields := cutLine(b)
	last := ""
	for line, rest := cutLine(fields); len(line) > 0; line, rest = cutLine(rest) {
		if line[0] == ' ' || line[0] == '\t' {
			if last == "" {
				return fmt.Errorf("%w: a header line %q", errHead, short(line))
			}
			lines := h[last]
			lines[len(lines)-1] += " " + string(bytes.TrimSpace(line))
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		for _, c := range name {
			if c <= ' ' || c >= 0x7f {
				return fmt.Errorf("%w: a header name %q", errHead, short(name))
			}
		}
		last = textproto.CanonicalMIMEHeaderKey(string(name))
		h[last] = append(h[last], string(bytes.TrimSpace(value)))
	}
	if _, chunked := h["Transfer-Encoding"]; chunked { // it was undone, and overrules a length
		delete(h, "Transfer-Encoding")
		delete(h, "Content-Length")
	}
	for _, line := range h["Connection"] {
		if !keeps([]byte(line), true) {
			delete(h, "Connection") // it was obeyed
			break
		}
	}
	return nil
}

// appendHead writes a request's head.
func appendHead(b []byte, req *Request, uri, host string) ([]byte, error) {
	b = append(append(append(b, req.Method...), ' '), uri...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), host...)
	if req.Header.Get("User-Agent") == "" {
		b = append(b, "\r\nUser-Agent: fermata"...)
	}
	if len(req.Body) > 0 || req.Method == http.MethodPost {
		b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(req.Body)), 10)
	}
	for name, lines := range req.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue // ours to say
		}
		if !isToken(name) {
			return nil, fmt.Errorf("the header name %q cannot be sent", name)
		}
		for _, line := range lines {
			if !isFieldValue(line) {
				return nil, fmt.Errorf("the value of header %s has characters that cannot be sent", name)
			}
			b = append(append(append(append(b, "\r\n"...), name...), ": "...), line...)
		}
	}
	return append(b, "\r\n\r\n"...), nil
}

func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
