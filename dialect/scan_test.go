package dialect

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fermata/internal/sse"
)

// chunks are the events of all captured streams.
func chunks(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "streams", "*", "c*.jsonl"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d captures found (%v)", len(files), err)
	}
	var all [][]byte
	for _, f := range files {
		_, body := readCapture(t, f)
		var s sse.Splitter
		if err := s.Feed(body, func(ev sse.Event) error {
			all = append(all, append([]byte(nil), ev.Data...))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// same checks that scan, where it reads data, reads what parse does.
func same(t *testing.T, data []byte) bool {
	t.Helper()
	got, ok := scan(data, nil)
	if !ok {
		return false
	}
	want, err := parse(data)
	if err != nil {
		t.Errorf("scan reads %q, which parse refuses: %v", data, err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(chunk{}, usage{}, timing{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%q (-parse +scan):\n%s", data, d)
	}
	return true
}

func TestScanReadsTheUsual(t *testing.T) {
	n, read := 0, 0
	for _, data := range chunks(t) {
		n++
		if same(t, data) {
			read++
		}
	}
	if n == 0 || read*100 < n*85 { // the rest: tools, log-probabilities, timings and [DONE]
		t.Errorf("scan read %d of %d events of real servers", read, n)
	}
}

func FuzzScan(f *testing.F) {
	for i, data := range chunks(f) {
		if i%7 == 0 {
			f.Add(data)
		}
	}
	for _, s := range []string{
		`{"id":"a","id":"b"}`, `{"choices":[{"index":0,"delta":{"content":"\ud83d\ude00\u00e9\ud83d\n\/"}}],"x":[{"y":[-1.5e+3,0.1,true,false,null]}]}`,
		`{"choices":[{"index":1,"text":"x"},{"index":0,"text":"y","token_ids":[1,[2],{}]},{"text":"z"}]}`, ` { "usage" : { "prompt_tokens" : 1 , "completion_tokens":02 } } `,
		`{"Choices":[{"text":"x"}],"ch\u006fices":[]}`, `{"choices":[{"delta":{"reasoning":"r","role":"","tool_calls":[]},"finish_reason":""}]}`,
		`{"usage":{"completion_tokens":999999999,"total_tokens":1e3}}`, `{"object":"error"}`, `{"choices":[{"index":1.0,"index":-0}]}`, `nullx`, `{"a":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		same(t, data)
		d := (openAI{}).NewDecoder()
		d.Event("", data) // nothing makes it fail
		d.Event("error", data)
		(openAI{}).Whole(200, data)
		(openAI{}).Whole(500, data)
	})
}

const (
	vllmChunk = `{"id":"chatcmpl-9c26acdd580ea48d","object":"chat.completion.chunk","created":1795963883,"model":"smollm2-135m","choices":[{"index":0,"delta":{"content":" colour\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}`
	openChunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"reasoning_content":"Two é"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aBc"}`
	contChunk = `{"id":"c1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":34,"total_tokens":38,"completion_tokens":4}}`
)

func TestNoAllocations(t *testing.T) {
	for _, data := range []string{vllmChunk, openChunk, contChunk} {
		d, b := (openAI{}).NewDecoder(), []byte(data)
		if got := testing.AllocsPerRun(100, func() {
			if _, ok := d.Event("", b); !ok {
				t.Fatal("no token")
			}
		}); got != 0 {
			t.Errorf("%v allocations for %s", got, data)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	for name, data := range map[string]string{"vllm": vllmChunk, "openai": openChunk, "continuous": contChunk} {
		b.Run(name, func(b *testing.B) {
			d, data := (openAI{}).NewDecoder(), []byte(data)
			for b.Loop() {
				d.Event("", data)
			}
		})
	}
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := parse([]byte(vllmChunk)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
