package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
)

// A heard is a sink that keeps everything.
type heard struct {
	sent      int64
	connected recording.Maybe[int64]
	status    int
	head      Stamp
	data      []string
	at        []Stamp
	fail      error // returned by Data
}

func (h *heard) Sent(at int64, c recording.Maybe[int64]) error {
	h.sent, h.connected = at, c
	return nil
}

func (h *heard) Head(status int, _ http.Header, at Stamp) error {
	h.status, h.head = status, at
	return nil
}

func (h *heard) Data(b []byte, at Stamp) error {
	h.data, h.at = append(h.data, string(b)), append(h.at, at)
	return h.fail
}

func (h *heard) text() string { return strings.Join(h.data, "") }

func post(url, body string) *Request {
	return &Request{Method: http.MethodPost, URL: url, Header: http.Header{"X-Test": {"1"}}, Body: []byte(body)}
}

// What came in one read of the socket shares its number and its stamp.
func TestReadsAreNumbered(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			buf := make([]byte, 1024)
			_, _ = c.Read(buf)
			write := func(s string) { _, _ = io.WriteString(c, s); time.Sleep(50 * time.Millisecond) }
			write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			write("2\r\nab\r\n2\r\ncd\r\n")
			write("2\r\nef\r\n")
			write("0\r\n\r\n")
		}()
		h := NewHTTP(NewClock())
		defer h.Close()
		var got heard
		if r := h.Exchange(t.Context(), post("http://"+ln.Addr().String(), ""), &got); r.Err != nil {
			t.Fatal(r.Err)
		}
		if got.text() != "abcdef" {
			t.Fatalf("got %q", got.text())
		}
		var reads []int32
		for i, d := range got.data {
			for range d {
				reads = append(reads, got.at[i].Read)
			}
		}
		if want := []int32{2, 2, 2, 2, 3, 3}; fmt.Sprint(reads) != fmt.Sprint(want) {
			t.Errorf("bytes came in reads %v, want %v", reads, want)
		}
		if got.head.Read != 1 {
			t.Errorf("the head came in read %d, want 1", got.head.Read)
		}
	})
}

func TestFailuresNameTheirStep(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/cut":
			w.(http.Flusher).Flush()
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "4\r\nhalf")
				c.Close()
			}
		}
	}))
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()

	cut := errors.New("cut by the test")
	for _, c := range []struct {
		name, url string
		step      recording.Step
		is        func(error) bool
	}{
		{"refused", nobody, recording.AtConnect, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"tls to a plain port", strings.Replace(plain.URL, "http:", "https:", 1), recording.AtTLS, func(err error) bool {
			var r tls.RecordHeaderError
			return errors.As(err, &r) || strings.Contains(err.Error(), "HTTP response to HTTPS client")
		}},
		{"silent", plain.URL + "/silent", recording.AtHeaders, func(err error) bool { return errors.Is(err, cut) }},
		{"cut", plain.URL + "/cut", recording.AtMidStream, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			calm.Try(t, func(t testing.TB) {
				ctx, stop := context.WithCancelCause(t.Context())
				if c.name == "silent" {
					time.AfterFunc(100*time.Millisecond, func() { stop(cut) })
				}
				defer stop(nil)
				h := NewHTTP(NewClock())
				defer h.Close()
				r := h.Exchange(ctx, post(c.url, "{}"), &heard{})
				if r.Step != c.step || r.Err == nil || !c.is(r.Err) {
					t.Errorf("failed at %q with %v, want %q", r.Step, r.Err, c.step)
				}
			})
		})
	}
}

// A sink can stop an exchange, and its error comes back.
func TestSinkStopsExchange(t *testing.T) {
	s := &teller{gap: time.Millisecond, n: 100}
	srv := httptest.NewServer(s)
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	enough := errors.New("enough")
	got := &heard{fail: enough}
	if r := h.Exchange(t.Context(), post(srv.URL, ""), got); !errors.Is(r.Err, enough) || len(got.data) != 1 {
		t.Errorf("error %v after %d reads", r.Err, len(got.data))
	}
}

// A server may answer before it has read the request.
func TestEarlyAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too long")
	}))
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	var got heard
	r := h.Exchange(t.Context(), post(srv.URL, strings.Repeat("x", 8<<20)), &got)
	if r.Err == nil && (got.status != 413 || got.text() != "too long") {
		t.Errorf("status %d, %q", got.status, got.text())
	}
	if r.Err != nil && got.status == 0 && r.Step != recording.AtSend && r.Step != recording.AtHeaders {
		t.Errorf("failed at %q: %v", r.Step, r.Err)
	}
	if !r.Sent.OK || r.Sent.V > r.End {
		t.Errorf("sent %v, end %d", r.Sent, r.End)
	}
}

func TestFetch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Test"))
	}))
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	page, err := Fetch(t.Context(), h, srv.URL+"/version", http.Header{"X-Test": {"yes"}})
	if err != nil || page.Status != 200 || string(page.Body) != "GET /version yes" {
		t.Errorf("got %+v, %v", page, err)
	}
}

// Tokens that come with a response's head in one read are stamped as well as any.
func TestFirstTokenWithHead(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		if !stampsOf(false).receive {
			t.Skip("this system's kernel does not stamp")
		}
		s := &teller{gap: 20 * time.Millisecond, n: 2}
		srv := httptest.NewServer(s)
		defer srv.Close()
		h := NewHTTP(NewClock())
		defer h.Close()
		for range 5 { // a busy machine may part the head from the body, or read late
			var got heard
			if r := h.Exchange(t.Context(), post(srv.URL, ""), &got); r.Err != nil {
				t.Fatal(r.Err)
			}
			if got.head.Read == got.at[0].Read && got.at[0].ErrorNs < int64(time.Millisecond) {
				return
			}
		}
		t.Error("no first event in the read of its head had an exact stamp in five requests")
	})
}
