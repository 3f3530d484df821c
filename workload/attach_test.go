package workload

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An image beside the data set goes out as a data URL, all else of the message as
// it is; what is no reference stays.
func TestFilesInMessages(t *testing.T) {
	dir := t.TempDir()
	picture := []byte("\x89PNG\r\n\x1a\n, more or less")
	if err := os.WriteFile(filepath.Join(dir, "a b.png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
	const before = `{"role":"user","content":[{"type":"text","text":"see \"url\": \"file:x.png\""},{"type":"image_url","image_url":{"url": "file:a b.png","detail":"low"}},` +
		`{"type":"image_url","image_url":{"url":"https://h/b.png"}},{"type":"image_url","image_url":{"url":"file:///srv/c.png"}}]}`
	path := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(path, []byte(`{"messages":[{"role":"system","content":"s"},`+before+`]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := mustOpen(t, Options{Dataset: path}, 1)
	q := mustAt(t, w, 0, 0, 0)
	want := strings.Replace(before, `"url": "file:a b.png"`, `"url":"data:image/png;base64,`+base64.StdEncoding.EncodeToString(picture)+`"`, 1)
	if len(q.Messages) != 2 || string(q.Messages[0]) != `{"role":"system","content":"s"}` || string(q.Messages[1]) != want || !json.Valid(q.Messages[1]) {
		t.Errorf("%s", q.Messages)
	}
	if s, ok := w.Shape(0, 0, 0); !ok || s.PromptTokens == 0 || s.PromptTokens > 20 {
		t.Errorf("%+v, %v", s, ok)
	}

	// Removed meanwhile, it ends the run instead of a request without it.
	if err := os.Remove(filepath.Join(dir, "a b.png")); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.At(0, 0, 0); ok || w.Err() == nil || !strings.Contains(w.Err().Error(), "file:a b.png") {
		t.Errorf("%v", w.Err())
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows.jsonl")
	for reference, want := range map[string]string{
		"file:none.png":  "line 2: messages[0]: file:none.png: ",
		"file:rows":      "line 2: messages[0]: file:rows is of no kind that is known",
		"file:.hide.png": "line 2: messages[0]: file:.hide.png is no file",
	} {
		text := `{"prompt":"a"}` + "\n" + `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + reference + `"}}]}]}` + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Mkdir(filepath.Join(dir, ".hide.png"), 0o700)
		if _, err := Open(Options{Dataset: path}, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reference, err)
		}
		if w := mustOpen(t, Options{Dataset: path, SkipBad: true}, 1); w.Rows() != 1 || w.Skipped().Bad != 1 {
			t.Errorf("%s: %d rows, %+v", reference, w.Rows(), w.Skipped())
		}
	}
}
