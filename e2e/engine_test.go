// Package e2e runs the built binary against a real engine: llama.cpp's server
// with a real model of 135M parameters. It asserts relations, never speeds.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the project's folder, seen from this one.
const root = ".."

// needEngine skips, aloud, where no real engine was asked for.
func needEngine(t *testing.T) {
	t.Helper()
	if os.Getenv("FERMATA_E2E") == "" {
		t.Skip("not run: this test needs a real engine; `make e2e-real` installs one and runs it")
	}
}

// An engine is llama.cpp's server, owned by a test.
type engine struct {
	url string
	log string // path of what it said
}

// startEngine starts an engine with one thread and four slots, and stops it when
// the test ends in whatever way.
func startEngine(t *testing.T) *engine {
	t.Helper()
	return startEngineAt(t, nil)
}

// startEngineAt is startEngine on some of the machine's cores; nil is all of them.
func startEngineAt(t *testing.T, cores []int) *engine {
	t.Helper()
	for try := 1; ; try++ {
		e, err := tryEngine(t, cores)
		if err == nil {
			return e
		}
		if try == 3 { // another process may have taken the free port before the engine did
			t.Fatal(err)
		}
		t.Log(err)
	}
}

func tryEngine(t *testing.T, cores []int) (*engine, error) {
	t.Helper()
	port := freePort(t)
	e := &engine{url: fmt.Sprintf("http://127.0.0.1:%d", port), log: filepath.Join(t.TempDir(), "engine.log")}
	log, err := os.Create(e.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command("./e2e/engine.sh", "run", strconv.Itoa(port), "--slots", "4")
	c.Dir, c.Stdout, c.Stderr = root, log, log
	dieWithUs(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	keepTo(c.Process.Pid, cores) // which what it becomes and its threads inherit
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop := func() error { return stopEngine(c, ended) }
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if status, _, err := e.get("/health"); err == nil && status == http.StatusOK {
			break
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the engine died before it was ready (%v); it said:\n%s", err, tail(e.log))
		default:
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("the engine is not ready after 60 s; it said:\n%s", tail(e.log)), stop())
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stopping the engine: %v; it said:\n%s", err, tail(e.log))
		}
		if _, _, err := e.get("/health"); err == nil {
			t.Error("something still answers where the engine was")
		}
	})
	return e, nil
}

// stopEngine asks the engine to end and kills it if it does not.
func stopEngine(c *exec.Cmd, ended <-chan error) error {
	_ = c.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		_ = c.Process.Kill()
		<-ended
		return errors.New("it did not end within 10 s of SIGTERM and was killed")
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func tail(path string) string {
	b, _ := os.ReadFile(path)
	return string(b[max(0, len(b)-2000):])
}

func (e *engine) get(path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// Counters are the engine's own totals since it started.
type counters struct {
	prompt    float64 // tokens of prompts, computed or taken from the cache
	predicted float64 // tokens of answers
	decoding  float64 // seconds from first tokens to last, of all answers together
}

func (c counters) minus(o counters) counters {
	return counters{c.prompt - o.prompt, c.predicted - o.predicted, c.decoding - o.decoding}
}

func (e *engine) counters(t *testing.T) counters {
	t.Helper()
	e.awaitIdle(t, 10*time.Second) // totals are booked when a slot is released
	status, body, err := e.get("/metrics")
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET /metrics: status %d, %v", status, err)
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !strings.HasPrefix(name, "#") {
			found[strings.TrimPrefix(name, "llamacpp:")], _ = strconv.ParseFloat(value, 64)
		}
	}
	get := func(name string) float64 {
		v, ok := found[name]
		if !ok {
			t.Fatalf("the engine's /metrics has no %s", name)
		}
		return v
	}
	return counters{
		prompt:    get("prompt_tokens_total") + get("prompt_tokens_cached_total"),
		predicted: get("tokens_predicted_total"),
		decoding:  get("tokens_predicted_seconds_total"),
	}
}

// A slot is one of the engine's places for a request.
type slot struct {
	Busy   bool `json:"is_processing"`
	Params struct {
		MaxTokens int `json:"max_tokens"`
	} `json:"params"`
	Next []struct {
		Decoded int `json:"n_decoded"`
	} `json:"next_token"`
}

func (e *engine) slots(t *testing.T) []slot {
	t.Helper()
	status, body, err := e.get("/slots")
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET /slots: status %d, %v", status, err)
	}
	var all []slot
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("GET /slots: %v in %s", err, bytes.TrimSpace(body))
	}
	return all
}

// awaitIdle waits until no slot is busy and says how long that took.
func (e *engine) awaitIdle(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		busy := 0
		for _, s := range e.slots(t) {
			if s.Busy {
				busy++
			}
		}
		switch took := time.Since(began); {
		case busy == 0:
			return took
		case took > limit:
			t.Fatalf("%d slots are still busy after %s", busy, limit)
		}
	}
}

// Where the registry can't be reached, the installation says so and fails: a
// missing engine is no pass.
func TestInstallWithoutRegistry(t *testing.T) {
	needEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "./e2e/engine.sh", "install")
	c.Dir = root
	engines := t.TempDir()
	c.Env = append(os.Environ(), "ENGINES="+engines, "PIP_CONFIG_FILE=/dev/null", "PIP_EXTRA_INDEX_URL=", "PIP_FIND_LINKS=",
		"PIP_INDEX_URL=http://127.0.0.1:1/simple", "PIP_RETRIES=0", "PIP_NO_CACHE_DIR=1")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, wanted exit code 1", err)
	}
	for _, want := range []string{"nothing was tested", "package registry", "run this again"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(engines, "llama", "ok")); err == nil {
		t.Error("it counts as installed all the same")
	}
}
