package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Server. The zero value serves without a truth log.
type Options struct {
	Truth   io.Writer        // gets a JSON line for each completion when it ends, in one Write each
	TLS     *tls.Certificate // to be served over TLS with; nil for plain connections
	APIKey  string           // asked of every request below /v1/; empty lets all in
	Version string           // what /version tells; default "fermata"
	Grace   time.Duration    // how long Serve lets answers go on after its context has ended; default 2s
}

// A Server answers for an Engine over HTTP. New makes it.
type Server struct {
	engine  Engine
	options Options
	truth   truthLog
	name    string        // begins the ids of this server's answers
	stop    chan struct{} // closed when silent answers should end
	once    sync.Once

	requests, inFlight, tokens atomic.Int64

	mu      sync.Mutex
	closed  bool           // no further request is answered
	running sync.WaitGroup // answers under way
}

// New is a server for e.
func New(e Engine, o Options) *Server {
	if o.Version == "" {
		o.Version = "fermata"
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	b := make([]byte, 4)
	rand.Read(b) // never fails
	return &Server{engine: e, options: o, truth: truthLog{w: o.Truth}, name: hex.EncodeToString(b), stop: make(chan struct{})}
}

// Handler serves requests without Serve, in a server of the caller's. Request
// times are then read later, when the handler runs.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, Chat) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, Completions) })
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": s.options.Version})
	})
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/v1/chat/completions", wrongMethod)
	mux.HandleFunc("/v1/completions", wrongMethod)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &Refusal{http.StatusNotFound, Fault{Message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path), Type: "invalid_request_error"}})
	})
	scaled, ok := s.engine.(Scaled)
	if !ok || scaled.TimeScale() == 1 {
		return mux
	}
	scale := strconv.FormatFloat(scaled.TimeScale(), 'g', -1, 64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Fermata-Time-Scale", scale)
		mux.ServeHTTP(w, r)
	})
}

// Serve answers on ln until ctx ends, then lets answers go on for Options.Grace
// and cuts the rest. When it returns, ln is closed and the truth log complete;
// the error is why it had to stop, or the first of the truth log.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: time.Minute,
		ConnContext:       withConn,
	}
	ended := s.run()
	served := make(chan error, 1)
	var from net.Listener = listener{ln}
	if s.options.TLS != nil {
		from = tls.NewListener(from, &tls.Config{Certificates: []tls.Certificate{*s.options.TLS}, NextProtos: []string{"http/1.1"}})
	}
	go func() { served <- h.Serve(from) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		s.once.Do(func() { close(s.stop) })
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Grace)
		h.Shutdown(grace) // what it leaves is closed below
		cancel()
		err = <-served
	}
	h.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	ran := ended()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	}
	return errors.Join(ran, s.truth.failure())
}

// run runs an engine that works by itself; ended ends it and gives its error.
func (s *Server) run() (ended func() error) {
	r, ok := s.engine.(Runner)
	if !ok {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// complete answers one request for a completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, api string) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // its connection is closed already
	}
	defer s.running.Done()
	id := s.requests.Add(1)
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	at := received(r)
	t := &Truth{API: api, ReceivedNs: at.UnixNano(), Purpose: r.Header.Get("x-fermata-purpose")}
	defer s.truth.write(t)
	w.Header().Set("x-fermata-received-ns", fmt.Sprint(t.ReceivedNs))
	if err != nil {
		var large *http.MaxBytesError
		if !errors.As(err, &large) {
			t.End = EndClientGone
			return
		}
		s.refuse(w, t, &Refusal{http.StatusRequestEntityTooLarge, Fault{Message: "The request is too large.", Type: "invalid_request_error"}})
		return
	}
	if err := s.admit(r); err != nil {
		s.refuse(w, t, err)
		return
	}
	q, err := readRequest(api, r.Header, body)
	if err != nil {
		s.refuse(w, t, err)
		return
	}
	q.Received = at
	t.Model, t.PromptTokens = q.Model, q.PromptTokens
	if !slices.Contains(s.engine.Models(), q.Model) {
		s.refuse(w, t, &Refusal{http.StatusNotFound, Fault{
			Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", q.Model),
			Type:    "invalid_request_error", Param: "model", Code: "model_not_found",
		}})
		return
	}
	prefix := "chatcmpl-"
	if api == Completions {
		prefix = "cmpl-"
	}
	q.ID = fmt.Sprintf("%s%s-%d", prefix, s.name, id)
	t.ID = q.ID
	s.answer(w, r, q, t)
}

// admit asks whether a request may come in at all.
func (s *Server) admit(r *http.Request) error {
	if err := checkKey(r, s.options.APIKey); err != nil {
		return err
	}
	if g, ok := s.engine.(Gate); ok {
		return g.Admit(r)
	}
	return nil
}

// checkKey asks for a key; an empty one lets all in.
func checkKey(r *http.Request, want string) error {
	key := bearer(r)
	if want == "" || subtle.ConstantTimeCompare([]byte(key), []byte(want)) == 1 {
		return nil
	}
	message := "Incorrect API key provided."
	if key == "" {
		message = "You didn't provide an API key. Send it in the header Authorization: Bearer KEY."
	}
	return &Refusal{http.StatusUnauthorized, Fault{Message: message, Type: "invalid_request_error", Code: "invalid_api_key"}}
}

// enter counts an answer in, unless the server has stopped.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// answer plays what the engine says.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q *Request, t *Truth) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if c := connOf(r.Context()); c != nil {
		q.cut = func() { q.wasCut.Store(true); c.Close() }
	}
	defer func() { t.Simulated, t.PromptTokens = q.Simulated, q.PromptTokens }()
	events, err := s.engine.Answer(ctx, q)
	if err != nil {
		s.refuse(w, t, err)
		return
	}
	alarm, err := newAlarm()
	if err != nil {
		s.refuse(w, t, err)
		return
	}
	defer alarm.close()
	p := &player{server: s, w: w, http: http.NewResponseController(w), ctx: ctx, q: q, t: t, alarm: alarm, enc: newEncoder(q), gather: !q.Stream}
	p.play(events)
}

// refuse answers with err and says so in the log.
func (s *Server) refuse(w http.ResponseWriter, t *Truth, err error) {
	t.End, t.Status = EndHTTPError, refuse(w, err)
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if err := s.admit(r); err != nil {
		refuse(w, err)
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, name := range s.engine.Models() {
		list = append(list, model{ID: name, Object: "model", OwnedBy: "fermata"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// metrics writes what a scraper reads, in Prometheus's text format.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"fermata_serve_requests_total", "counter", "Completions asked for.", s.requests.Load()},
		{"fermata_serve_requests_in_flight", "gauge", "Completions under way.", s.inFlight.Load()},
		{"fermata_serve_tokens_total", "counter", "Tokens sent.", s.tokens.Load()},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
	if m, ok := s.engine.(Measured); ok {
		m.Metrics(w)
	}
}

func wrongMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	refuse(w, &Refusal{http.StatusMethodNotAllowed, Fault{Message: fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path), Type: "invalid_request_error", Code: "method_not_supported"}})
}

// refuse answers with err and gives the status that it used.
func refuse(w http.ResponseWriter, err error) int {
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{http.StatusInternalServerError, Fault{Message: err.Error(), Type: "server_error"}}
	}
	writeJSON(w, r.Status, map[string]any{"error": r.Fault})
	return r.Status
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error is the client's having left
}

// bearer is the key that r carries, if any.
func bearer(r *http.Request) string {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(key)
}
