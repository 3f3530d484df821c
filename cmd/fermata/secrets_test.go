package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server that lets the preflight pass and then repeats what it was sent, in
// every way in which a request can fail.
func leaky() http.Handler {
	const chunk = `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":%s}]}`
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		event := func(format string, args ...any) { fmt.Fprintf(w, "data: "+format+"\n\n", args...) }
		stream := func() { w.Header().Set("Content-Type", "text/event-stream"); event(chunk, "hello ", "null") }
		brought := r.Header.Get("Authorization") + " " + r.Header.Get("X-Team-Key") + " " + r.URL.RequestURI()
		fault, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "refused: " + brought}})
		if r.Header.Get("X-Fermata-Purpose") != "" {
			stream()
			event(chunk, "you", `"stop"`)
			event("[DONE]")
			return
		}
		switch n.Add(1) % 6 {
		case 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(fault)
		case 1: // plain text
			http.Error(w, "no entry for "+brought, http.StatusInternalServerError)
		case 2: // inside the stream
			stream()
			event("%s", fault)
			event("[DONE]")
		case 3: // long, so that the key may be cut in two where messages are shortened
			http.Error(w, strings.Repeat("x", 180+int(n.Load()%40))+brought, http.StatusBadGateway)
		case 4:
			stream()
			event("%s", "{broken "+brought)
		case 5:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><title>%s</title></html>", brought)
		}
	})
}

// Credentials go to the server and into nothing that lasts or is shown.
func TestSecretsStayOut(t *testing.T) {
	const key, team, query = "sk-5e7a<&>0k87-abcdefgh", "team-4z11-ijklmnop", "query%2F7x31-qrstuvwx"
	t.Setenv("FERMATA_TEST_KEY", key)
	server := httptest.NewServer(leaky())
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompts.jsonl"), []byte(`{"prompt": "hello"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, said := fermata(t, dir, "run", server.URL+"?api-key="+query, "--rate", "400", "--requests", "120", "--warmup", "0", "--drain", "quiet",
		"--dataset", "prompts.jsonl", "--model", "m", "--api-key-env", "FERMATA_TEST_KEY", "--header", "X-Team-Key: "+team, "--keep-text", "--out", "run")
	if code != exitMissed && code != exitUnclear {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	r := resultOf(t, filepath.Join(dir, "run"))
	if r.Load.Measured != 120 || r.Outcomes["ok"] != 0 || len(r.Failures) < 5 {
		t.Errorf("%v %+v", r.Outcomes, r.Failures)
	}
	_, table, _ := fermata(t, dir, "report", "run", "-o", "csv")
	files := map[string][]byte{"standard output": []byte(out), "standard error": []byte(said), "report": []byte(table)}
	err := filepath.WalkDir(filepath.Join(dir, "run"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[d.Name()], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	hidden(t, files)
	// The columns themselves, past the file's compression.
	_, traces := tracesOf(t, filepath.Join(dir, "run"))
	marked := 0
	for i := range traces {
		hidden(t, map[string][]byte{"error of a request": []byte(traces[i].Error)})
		if strings.Contains(traces[i].Error, "[secret]") {
			marked++
		}
	}
	if marked == 0 {
		t.Error("no error shows that something was hidden: the server's words did not come through")
	}
}

// hidden checks that no part of a key of this test is in any file.
func hidden(t testing.TB, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		for _, part := range []string{"5e7a", "0k87", "4z11", "7x31", "abcdefgh", "ijklmnop", "qrstuvwx"} {
			if i := bytes.Index(b, []byte(part)); i >= 0 {
				t.Errorf("%s holds a part of a secret: …%s…", name, b[max(0, i-30):min(len(b), i+30)])
			}
		}
	}
}

// While the run goes on, the journal holds no secret either.
func TestSecretsStayOutOfTheJournal(t *testing.T) {
	t.Setenv("FERMATA_TEST_KEY", "sk-5e7a<&>0k87-abcdefgh")
	server := httptest.NewServer(leaky())
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompts.jsonl"), []byte(`{"prompt": "hello"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "run", server.URL+"?api-key=query%2F7x31-qrstuvwx", "--rate", "200", "--requests", "100000", "--warmup", "0",
		"--dataset", "prompts.jsonl", "--model", "m", "--api-key-env", "FERMATA_TEST_KEY", "--header", "X-Team-Key: team-4z11-ijklmnop", "--out", "run")
	run := filepath.Join(dir, "run")
	await(t, "an error of the server's in the journal", func() bool {
		first, _ := filepath.Glob(filepath.Join(run, "journal", "*"))
		if len(first) == 0 {
			return false
		}
		b, _ := os.ReadFile(first[0])
		return bytes.Contains(b, []byte("[secret]"))
	})
	time.Sleep(200 * time.Millisecond) // others follow
	p.signal(os.Kill)
	p.exit()
	segments, err := filepath.Glob(filepath.Join(run, "journal", "*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	files := map[string][]byte{"standard error": []byte(p.err.String())}
	for _, path := range segments {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	hidden(t, files)
	if !bytes.Contains(files[segments[0]], []byte("[secret]")) {
		t.Error("the journal holds no error of the server: it was killed too early")
	}
}
