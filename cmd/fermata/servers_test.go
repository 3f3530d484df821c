package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"fermata/serve"
)

// A scripted is a server of our own in this process.
type scripted struct {
	URL   string
	truth *lines
	stop  func() // ends it; the truth log is complete afterwards
}

// lines collects a truth log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serveScript starts a server that plays the script, or simulates where it is a
// simulator's spec. Its truth log goes to truth, or is kept where that is nil.
func serveScript(script string, truth io.Writer) (*scripted, error) {
	var engine serve.Engine
	var err error
	if strings.HasPrefix(script, "cost:") {
		engine, err = serve.NewSim("system.yaml", []byte(script), serve.SimOptions{TimeScale: 1})
	} else {
		engine, err = serve.NewScript("script.yaml", []byte(script))
	}
	if err != nil {
		return nil, err
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &scripted{URL: "http://" + ln.Addr().String(), truth: &lines{}}
	if truth == nil {
		truth = s.truth
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- serve.New(engine, serve.Options{Truth: truth, Grace: 50 * time.Millisecond}).Serve(ctx, ln)
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-served })
	return s, nil
}

func newScripted(t testing.TB, script string) *scripted {
	t.Helper()
	s, err := serveScript(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// tokens are those that it has sent.
func (s *scripted) tokens(t testing.TB) (n int) {
	t.Helper()
	resp, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\nfermata_serve_tokens_total ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("the server tells of no tokens: %s", page)
	}
	return n
}

// server NAME FILE: starts a server that plays FILE, or simulates it; $NAME is its URL,
// $NAME_HOST its host and port, and NAME.truth its log.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: server NAME FILE")
	}
	log, err := os.Create(ts.MkAbs(args[0] + ".truth"))
	ts.Check(err)
	s, err := serveScript(ts.ReadFile(args[1]), log)
	ts.Check(err)
	ts.Defer(func() { s.stop(); log.Close() })
	ts.Setenv(args[0], s.URL)
	ts.Setenv(args[0]+"_HOST", strings.TrimPrefix(s.URL, "http://"))
}

// page NAME STATUS TYPE FILE: starts a server that answers everything with FILE.
// In the file, AUTH stands for the credentials that the request brought.
func startPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: page NAME STATUS TYPE FILE")
	}
	var status int
	if _, err := fmt.Sscan(args[1], &status); err != nil {
		ts.Fatalf("page: %v", err)
	}
	body := ts.ReadFile(args[3])
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		brought := r.Header.Get("Authorization") + " " + r.Header.Get("X-Team-Key") + " " + r.URL.RequestURI()
		w.Header().Set("Content-Type", args[2])
		w.WriteHeader(status)
		io.WriteString(w, strings.ReplaceAll(body, "AUTH", strings.ReplaceAll(brought, `"`, `\"`)))
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
	ts.Setenv(args[0]+"_HOST", s.Listener.Addr().String())
}

// tls NAME: starts a server that speaks TLS with a certificate nobody knows;
// $NAME is its host and port.
func startTLS(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tls NAME")
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.Listener.Addr().String())
}

// nobody NAME: sets $NAME to a host and port where nothing listens.
func reserveNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nobody NAME")
	}
	// A bound socket that does not listen refuses, and keeps others from the port.
	addr, release, err := boundOnly()
	ts.Check(err)
	ts.Defer(release)
	ts.Setenv(args[0], addr)
}
