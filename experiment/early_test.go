package experiment

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/internal/conf"
	"fermata/spec"
)

func early(t *testing.T, url string, settings ...conf.Setting) *spec.Run {
	t.Helper()
	s, err := spec.Read("", nil, append([]conf.Setting{
		{Path: "target.url", Value: url}, {Path: "target.model", Value: "m"}, {Path: "schedule.rate", Value: "1"}, {Path: "schedule.requests", Value: "2"},
	}, settings...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A folder that cannot be written is told before the server is asked anything, and
// trying leaves nothing behind.
func TestFolderIsTriedFirst(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), early(t, server.URL), Options{Out: filepath.Join(file, "run")})
	if err == nil || !strings.Contains(err.Error(), "is a file; give another with --out") {
		t.Error(err)
	}
	dir := t.TempDir()
	if _, err := folder(filepath.Join(dir, "a", "b"), ""); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// A stop while prompts are being calibrated is no finding about the server.
func TestStopInCalibration(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		switch r.Header.Get("X-Fermata-Purpose") {
		case "preflight":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`, "\n\ndata: [DONE]\n\n")
		case "calibration":
			close(stop)
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	var said []string
	_, err := Run(t.Context(), early(t, server.URL), Options{Out: filepath.Join(t.TempDir(), "run"), Stop: stop, Say: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}})
	if !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	for _, line := range said {
		if strings.Contains(line, "calibration") || strings.Contains(line, "prompts of") {
			t.Error(line)
		}
	}
}
