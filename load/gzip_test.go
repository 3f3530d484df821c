package load

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/wire"
)

var quiet = log.New(io.Discard, "", 0)

func probeOf(j Job) Probe {
	clock := wire.NewClock()
	return Probe{
		Dialect: j.Dialect, Transport: wire.NewHTTP(clock), Clock: clock, URL: j.URL, Header: j.Header,
		Timeout: time.Second, Secrets: j.Secrets,
	}
}

// packed is b in gzip, whole.
func packed(t testing.TB, b string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := io.WriteString(z, b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func tokenEvent(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
}

const (
	endEvents = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	gap       = 15 * time.Millisecond
)

// A compressor is a proxy that compresses although it was asked not to, and
// flushes after each event, as proxies that let streams through do.
type compressor struct {
	mu   sync.Mutex
	sent []time.Time
}

func (c *compressor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	flush := func() { z.Flush(); w.(http.Flusher).Flush() }
	flush()
	for i := range 8 {
		time.Sleep(gap)
		c.sent = append(c.sent, time.Now())
		_, _ = io.WriteString(z, tokenEvent(fmt.Sprint("w", i)))
		flush()
	}
	_, _ = io.WriteString(z, endEvents)
	z.Close()
}

// A compressed stream is decoded as it comes: each token has the stamp of the
// read that completed it.
func TestGzipKeepsTheStamps(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		c := &compressor{}
		srv := httptest.NewServer(c)
		defer srv.Close()
		var clock wire.Clock
		j := job(t, srv.URL, newTape(), once)
		j.Started, j.KeepText = func(c wire.Clock) { clock = c }, true
		_, r := offer(t, j)
		tr := r.traces[0]
		if tr.Outcome != recording.OK || !slices.Equal(tr.Notes, []string{recording.NoteGzip}) || tr.Len() != len(c.sent) {
			t.Fatalf("%s %q, notes %q, %d arrivals", tr.Outcome, tr.Error, tr.Notes, tr.Len())
		}
		if got := r.texts[0][1]; got != "w0w1w2w3w4w5w6w7" {
			t.Errorf("the text is %q", got)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, when := range at(&tr) {
			if sent := clock.At(c.sent[i]); sent > when {
				t.Errorf("token %d is stamped %d ns before it was sent", i, sent-when)
			}
			if i > 0 && tr.Read[i] < tr.Read[i-1] {
				t.Errorf("reads %v", tr.Read)
			}
		}
		if first, last := at(&tr)[0], clock.At(c.sent[len(c.sent)-1]); first >= last {
			t.Errorf("the first token came at %d, when the last was sent (%d): the stream was held back", first, last)
		}
	})
}

func TestCompressedAnswers(t *testing.T) {
	stream := tokenEvent("a") + tokenEvent("b") + endEvents
	for _, c := range []struct {
		name, encoding, kind string
		status               int
		body                 []byte
		outcome              recording.Outcome
		error                string
	}{
		{"in one piece", "gzip", "text/event-stream", 200, packed(t, stream), recording.OK, ""},
		{"by its old name", "x-gzip", "text/event-stream", 200, packed(t, stream), recording.OK, ""},
		{"two members", "gzip", "text/event-stream", 200, append(packed(t, tokenEvent("a")+tokenEvent("b")), packed(t, endEvents)...), recording.OK, ""},
		{"as it is, though it says gzip", "gzip", "text/event-stream", 200, []byte(stream), recording.BadStream, "says that it is gzip, and is not"},
		{"another kind", "br", "text/event-stream", 200, []byte("?"), recording.BadStream, `compressed with "br"`},
		{"cut off", "gzip", "text/event-stream", 200, packed(t, stream)[:30], recording.Empty, "without a token"},
		{"an error", "gzip", "application/json", 503, packed(t, `{"error":{"message":"come back later"}}`), recording.HTTPError, "status 503: come back later"},
		{"an error that stays dark", "br", "application/json", 503, []byte("?"), recording.HTTPError, "status 503"},
		{"a JSON body", "gzip", "application/json", 200, packed(t, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`), recording.NotStreamed, "one JSON body"},
		{"a JSON body of another kind", "br", "application/json", 200, []byte("?"), recording.BadStream, `compressed with "br"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Content-Encoding", c.encoding)
				w.WriteHeader(c.status)
				_, _ = w.Write(c.body)
			}))
			defer srv.Close()
			_, r := offer(t, job(t, srv.URL, newTape(), once))
			tr := r.traces[0]
			if tr.Outcome != c.outcome || !strings.Contains(tr.Error, c.error) || !slices.Contains(tr.Notes, recording.NoteGzip) {
				t.Errorf("%s %q, notes %q; want %s %q", tr.Outcome, tr.Error, tr.Notes, c.outcome, c.error)
			}
			if c.outcome == recording.OK && sum(tr.Tokens) != 2 {
				t.Errorf("%d tokens, want 2", sum(tr.Tokens))
			}
		})
	}
}

// However the bytes are split, the same text comes out, and each flush comes out
// with the byte that completes it.
func TestUnpackerFedInPieces(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	var ends []int // of the compressed text after each flush
	want := ""
	for i := range 5 {
		line := strings.Repeat(fmt.Sprint("line ", i, " "), i*400) + "\n"
		want += line
		_, _ = io.WriteString(z, line)
		_ = z.Flush()
		ends = append(ends, buf.Len())
	}
	_ = z.Close()
	for _, size := range []int{1, 2, 3, 7, 100, buf.Len()} {
		u, err := unpackerFor(http.Header{"Content-Encoding": {"GZIP"}})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		emit := func(b []byte) error { got.Write(b); return nil }
		for from := 0; from < buf.Len(); from += size {
			to := min(from+size, buf.Len())
			if err := u.feed(buf.Bytes()[from:to], emit); err != nil {
				t.Fatal(err)
			}
			flushed := 0
			for _, e := range ends {
				if e <= to {
					flushed++
				}
			}
			if lines := strings.Count(got.String(), "\n"); lines < flushed {
				t.Fatalf("pieces of %d: %d lines after %d bytes, which hold %d", size, lines, to, flushed)
			}
		}
		if err := u.close(emit); err != nil || got.String() != want {
			t.Errorf("pieces of %d: %d bytes and %v, want %d", size, got.Len(), err, len(want))
		}
		u.stop()
	}
}
