package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/internal/conf"
	"fermata/spec"
)

func early(t testing.TB, url string, settings ...conf.Setting) *spec.Run {
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

// A server that counts as many tokens whatever it is asked is found out by prompts that
// are no longer than those of the run would be.
func TestCountThatStandsStill(t *testing.T) {
	t.Parallel()
	const wanted = 20_000
	var longest atomic.Int64 // prompt, words
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if words := int64(bytes.Count(body, []byte(" "))); words > longest.Load() {
			longest.Store(words)
		}
		if r.Method != http.MethodPost || err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`, "\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	var said []string
	s := early(t, server.URL, conf.Setting{Path: "workload.input", Value: strconv.Itoa(wanted)}, conf.Setting{Path: "schedule.rate", Value: "100"})
	_, err := Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "run"), Say: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}})
	if err != nil || !strings.Contains(strings.Join(said, "\n"), "does not follow their length") || longest.Load() > 4*wanted {
		t.Errorf("%v, a prompt of %d words; said %q", err, longest.Load(), said)
	}
}

// A published trace is taken as a schedule just as it was published: arrivals and
// lengths, in order of time.
func TestPublishedTraceAsSchedule(t *testing.T) {
	t.Parallel()
	type row struct {
		due           int64
		input, output int32
	}
	for name, c := range map[string]struct {
		text string
		want []row
	}{
		"azure.csv": {
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			[]row{{0, 374, 44}, {4_314_579_000, 396, 109}},
		},
		"burst.csv": {
			"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n50,GPT-4,10,0,10,API log\n",
			[]row{{5e9, 472, 18}, {45e9, 1087, 230}},
		},
		"mooncake.jsonl": {
			`{"timestamp": 3000, "input_length": 500, "output_length": 7, "hash_ids": [1]}` + "\n" + `{"timestamp": 1000, "input_length": 600, "output_length": 8, "hash_ids": [1, 2]}` + "\n",
			[]row{{1e9, 600, 8}, {3e9, 500, 7}},
		},
		"own.csv": {"at_s,prompt_tokens\n0.5,9\n", []row{{5e8, 9, 128}}},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spec.Read("", nil, []conf.Setting{{Path: "target.url", Value: "http://h:1"}, {Path: "schedule.file", Value: path}, {Path: "schedule.warmup", Value: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		prompts, plan, err := open(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []row
		for at, ok := plan.Next(0); ok; at, ok = plan.Next(0) {
			q, _ := prompts.At(at.Index, at.PromptTokens, at.OutputTokens)
			got = append(got, row{at.Due, q.PromptTokens, q.OutputTokens})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
