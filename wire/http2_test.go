package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
)

// Streams that share a connection are bounded each by itself. A kernel that is held
// up keeps bytes on their way for longer than delivery, all streams' at once; so
// one of five tries must be within it. TestSharedTurn is about the rule itself.
func TestManyStreamsOnOneConnection(t *testing.T) {
	calm.TryWithin(t, time.Duration(delivery), func(t testing.TB) {
		for try := range 5 {
			late := manyStreams(t)
			if late == 0 {
				return
			}
			t.Logf("try %d: the bounds of %d events begin too late", try, late)
		}
		t.Error("bounds began too late in each of five tries")
	})
}

// manyStreams says how many bounds begin after their event was there.
func manyStreams(t testing.TB) (late int) {
	const streams, events = 20, 30
	type sending struct{ began, over time.Time }
	var mu sync.Mutex
	sent := map[string][]sending{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := range events {
			time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond)
			began := time.Now()
			fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
			mu.Lock()
			sent[r.URL.Path] = append(sent[r.URL.Path], sending{began, time.Now()})
			mu.Unlock()
		}
	}))
	srv.EnableHTTP2 = true
	var srvWrote written
	srv.Listener = notedListener{srv.Listener, &srvWrote}
	srv.StartTLS()
	defer srv.Close()
	open, err := Open(Options{HTTP2: true, CAFile: authority(t, srv)})
	if err != nil {
		t.Fatal(err)
	}
	clock := NewClock()
	h := open(clock)
	defer h.Close()
	heards := make([]heard, streams)
	var group sync.WaitGroup
	for i := range heards {
		group.Go(func() {
			if r := h.Exchange(t.Context(), post(srv.URL+fmt.Sprintf("/%d", i), "{}"), &heards[i]); r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i := range heards {
		event := 0
		for k, at := range heards[i].at {
			event += strings.Count(heards[i].data[k], "\n")
			of := sent[fmt.Sprintf("/%d", i)][event-1]
			if began := clock.At(of.began); at.At < began {
				t.Errorf("stream %d: event %d is stamped %d ns before it was sent", i, event, began-at.At)
			}
			flushed, _ := srvWrote.flushed(of.over, true)
			if over := clock.At(flushed); at.At-at.ErrorNs > over+delivery {
				late++
			}
		}
		if event != events {
			t.Errorf("stream %d: %d events", i, event)
		}
	}
	return late
}

// Who asks for HTTP/2 gets that or an error, never something else.
func TestHTTP2IsNotReplaced(t *testing.T) {
	for _, kind := range []string{"plain", "tls", "tls without agreement"} {
		srv := httptest.NewUnstartedServer(&teller{n: 1})
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		switch kind {
		case "plain":
			srv.Start()
		case "tls":
			srv.StartTLS()
		default:
			srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: srv.TLS.Certificates}, nil // which knows no protocols
			}}
			srv.StartTLS()
		}
		open, err := Open(Options{HTTP2: true, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		for range 5 { // a server that hangs up at once may be gone before its answer is read
			h := open(NewClock())
			r = h.Exchange(t.Context(), post(srv.URL, "{}"), &heard{})
			h.Close()
			if !errors.Is(r.Err, syscall.EPIPE) && !errors.Is(r.Err, syscall.ECONNRESET) {
				break
			}
		}
		srv.Close()
		if r.Err == nil || !strings.Contains(r.Err.Error(), "http2: ") && !strings.Contains(r.Err.Error(), "no application protocol") {
			t.Errorf("%s: failed at %q with %v", kind, r.Step, r.Err)
		}
	}
}
