package wire

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"testing"
)

// undo decodes chunks that come in pieces of the given sizes, again and again.
func undo(raw []byte, sizes []byte) (data []byte, c chunked, rest int, err error) {
	for at, i := 0, 0; at < len(raw) && !c.over() && err == nil; i++ {
		n := len(raw) - at
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		piece := bytes.Clone(raw[at : at+n])
		var d, r []byte
		d, r, err = c.decode(piece)
		data = append(data, d...)
		at += n
		rest = len(raw) - at + len(r)
	}
	return data, c, rest, err
}

// However bytes are cut into reads, the same comes out of them. What the standard
// library reads without an error is read alike.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"5\r\nhello\r\n0\r\n\r\n", "5;x=y\r\nhello\r\n3 \r\nabc\r\n00\r\nA: b\r\n\r\nmore", "\r\n", "g\r\n", "5\r\nhelloo", "5\nhello",
		"FFFFFFFFFFFFFFFF\r\n", "FFFFFFFFFFFFFFFFF\r\n", "1\r\na\r\n1\r\nb\r\n", "0\r\n\n", "5\r",
	} {
		f.Add([]byte(s), []byte{0})
		f.Add([]byte(s), []byte{2, 0, 7})
	}
	f.Fuzz(func(t *testing.T, raw, sizes []byte) {
		whole, c, rest, err := undo(raw, nil)
		parts, c2, rest2, err2 := undo(raw, sizes)
		over, over2 := c.over(), c2.over()
		if !bytes.Equal(whole, parts) || over != over2 || over && rest != rest2 || (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %q, over %v, %d left, %v; in pieces: %q, over %v, %d left, %v", whole, over, rest, err, parts, over2, rest2, err2)
		}
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(raw)))
		trailers := c.step == inTrailer || c.step == trailerLF // which it leaves to others
		if wantErr == nil && (err != nil && !trailers || !bytes.Equal(whole, want)) {
			t.Fatalf("%q, %v; the standard library reads %q", whole, err, want)
		}
		if over && (wantErr != nil || !bytes.Equal(whole, want)) {
			t.Fatalf("%q ended well; the standard library says %v", raw, wantErr)
		}
	})
}

// A head is found at the same place however it comes, and never panics; what is
// said of its body's length is never negative but for the sign that nobody knows.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.0 200 OK\n\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 No Content\r\nConnection: close, x\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200\r\nA\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		end := headEnd(raw)
		for i := range raw {
			if got := headEnd(raw[:i]); got != 0 && got != end || i >= end && end > 0 && got != end {
				t.Fatalf("the head of %q ends at %d, of its first %d bytes at %d", raw, end, i, got)
			}
		}
		if end == 0 {
			return
		}
		before := bytes.Clone(raw)
		h, err := parseHead(raw[:end])
		if !bytes.Equal(before, raw) {
			t.Fatal("reading a head changed it")
		}
		if err != nil {
			return
		}
		if h.status < 0 || h.status > 999 || h.left < -1 || h.chunked && h.left != -1 || h.left < 0 && !h.chunked && h.keep {
			t.Fatalf("%q: %+v", raw, h)
		}
		fields := http.Header{}
		err = readFields(fields, raw[:end])
		if err == nil && h.chunked && len(fields["Content-Length"])+len(fields["Transfer-Encoding"]) > 0 {
			t.Fatalf("%q: the framing that was undone is still there: %v", raw, fields)
		}
		again := slices.Clone(raw[:end])
		if h2, err := parseHead(again); err != nil || h2 != h {
			t.Fatalf("%+v, then %+v, %v", h, h2, err)
		}
	})
}
