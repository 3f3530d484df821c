package dialect

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/internal/sse"
	"fermata/recording"
)

// A capture is an entry of a folder's index.json.
type capture struct {
	Name, File, Path, SHA256 string
	Status                   int
	Events                   int
	ContentEvents            int     `json:"content_events"`
	Comments                 int64   `json:"comments"`
	Finish                   *string `json:"finish_reason"`
	Usage                    *struct {
		Prompt     int32 `json:"prompt_tokens"`
		Completion int32 `json:"completion_tokens"`
		Details    *struct {
			Cached *int32 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Done  bool
	Bytes int `json:"utf8_bytes"`
}

// An answerRead is a stream after reading.
type answerRead struct {
	a                 *Answer
	events            int
	comments          int64
	text              []byte // of the answer channel
	counts, textBytes []int32
	channels          []int8
}

// readStream splits and decodes a body that comes in pieces of n bytes.
func readStream(t *testing.T, d Decoder, body []byte, n int) answerRead {
	t.Helper()
	var s sse.Splitter
	r := answerRead{a: d.Answer()}
	emit := func(ev sse.Event) error {
		r.events++
		tok, ok := d.Event(string(ev.Name), ev.Data)
		if !ok {
			if len(tok.Text) > 0 {
				t.Errorf("an event that is no token has the text %q", tok.Text)
			}
			return nil
		}
		if tok.Channel == recording.ChannelAnswer {
			r.text = append(r.text, tok.Text...)
		}
		r.counts = append(r.counts, tok.Count)
		r.textBytes = append(r.textBytes, int32(len(tok.Text)))
		r.channels = append(r.channels, tok.Channel)
		return nil
	}
	for piece := range slices.Chunk(body, n) {
		if err := s.Feed(slices.Clone(piece), emit); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Close(emit); err != nil {
		t.Fatal(err)
	}
	r.comments = s.Comments
	return r
}

// readCapture gives the head and body of what a socket brought.
func readCapture(t testing.TB, path string) (*http.Response, []byte) {
	t.Helper()
	f, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for line := range bytes.Lines(f) {
		var read struct{ B64 string }
		if err := json.Unmarshal(line, &read); err != nil {
			t.Fatal(err)
		}
		b, err := base64.StdEncoding.DecodeString(read.B64)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b...)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && err != io.ErrUnexpectedEOF { // a capture that ends early
		t.Fatal(err)
	}
	return resp, body
}

func captures(t *testing.T, engine string) []capture {
	t.Helper()
	var index struct{ Captures []capture }
	b, err := os.ReadFile(filepath.Join("testdata", "streams", engine, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index.Captures
}

// How the tokens of the captures' events are known, by the rules of Attribute
// and what the captures' README says of each.
var captureSources = map[string]string{
	"llamacpp/chat_eos_usage":                 recording.ArrivalShared, // the end-of-sequence token has no event
	"llamacpp/chat_json_schema":               recording.ArrivalShared,
	"llamacpp/chat_length_nousage":            recording.ArrivalEvents, // the finish event has timings, and so predicted_n
	"llamacpp/chat_length_usage":              recording.ArrivalEvents,
	"llamacpp/chat_logprobs":                  recording.ArrivalLogprobs,
	"llamacpp/chat_n2":                        recording.ArrivalAssumed,
	"llamacpp/chat_timings_per_token":         recording.ArrivalUsage,
	"llamacpp/chat_tools":                     recording.ArrivalEvents,
	"llamacpp/completions_emoji_grammar":      recording.ArrivalShared, // held back until a character is complete
	"llamacpp/completions_length_usage":       recording.ArrivalEvents,
	"llamacpp/completions_nousage_smallreads": recording.ArrivalEvents, // usage comes unasked
	"llamacpp/completions_progress":           recording.ArrivalEvents,
	"llamacpp/disconnect_chat":                recording.ArrivalAssumed,
	"llamacpp/ping_completions":               recording.ArrivalEvents,
	"llamacpp/queued_chat":                    recording.ArrivalEvents,
	"llamacpp/spec_ngram_completions":         recording.ArrivalEvents,

	"vllm/chat_continuous_usage":          recording.ArrivalUsage,
	"vllm/chat_eos_usage":                 recording.ArrivalShared,
	"vllm/chat_json_schema":               recording.ArrivalShared,
	"vllm/chat_length_nousage":            recording.ArrivalAssumed,
	"vllm/chat_length_usage":              recording.ArrivalEvents,
	"vllm/chat_logprobs":                  recording.ArrivalLogprobs,
	"vllm/chat_n2":                        recording.ArrivalAssumed,
	"vllm/chat_tools_required":            recording.ArrivalShared,
	"vllm/completions_emoji":              recording.ArrivalEvents, // an event without text for each token of a character
	"vllm/completions_emoji_regex_ids":    recording.ArrivalIDs,
	"vllm/completions_length_usage":       recording.ArrivalEvents,
	"vllm/completions_nousage_smallreads": recording.ArrivalAssumed,
	"vllm/completions_progress_none":      recording.ArrivalEvents,
	"vllm/disconnect_chat":                recording.ArrivalAssumed,
	"vllm/interval_completions":           recording.ArrivalShared,
	"vllm/queued_chat":                    recording.ArrivalEvents,
	"vllm/spec_ngram_completions":         recording.ArrivalShared,
}

func TestRealStreams(t *testing.T) {
	tested := 0
	for _, engine := range []string{"llamacpp", "vllm"} {
		for _, c := range captures(t, engine) {
			if c.Status != 200 || !strings.HasSuffix(c.Path, "/completions") {
				continue
			}
			tested++
			t.Run(engine+"/"+c.Name, func(t *testing.T) {
				resp, body := readCapture(t, filepath.Join("testdata", "streams", engine, c.File))
				if resp.StatusCode != 200 {
					t.Fatalf("status %d", resp.StatusCode)
				}
				for _, n := range []int{1, 97, 1 << 20} {
					checkCapture(t, engine, c, readStream(t, newDecoder(t, c.Path), body, n))
				}
			})
		}
	}
	if tested != len(captureSources) {
		t.Errorf("%d captures were tested, %d have an expected source", tested, len(captureSources))
	}
}

func newDecoder(t *testing.T, path string) Decoder {
	t.Helper()
	api := "completions"
	if strings.Contains(path, "chat") {
		api = "chat"
	}
	d, err := New(Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() != path {
		t.Fatalf("path %q, want %q", d.Path(), path)
	}
	return d.NewDecoder()
}

func checkCapture(t *testing.T, engine string, c capture, r answerRead) {
	t.Helper()
	several := c.Name == "chat_n2"
	if r.events != c.Events || r.comments != c.Comments {
		t.Errorf("%d events and %d comments, want %d and %d", r.events, r.comments, c.Events, c.Comments)
	}
	content := 0
	for i, b := range r.textBytes {
		if b > 0 && r.channels[i] == recording.ChannelAnswer {
			content++
		}
	}
	sum := sha256.Sum256(r.text)
	if got := hex.EncodeToString(sum[:]); content != c.ContentEvents || len(r.text) != c.Bytes || c.Bytes > 0 && got != c.SHA256 {
		t.Errorf("%d content events, %d bytes, SHA-256 %s; want %d, %d, %s", content, len(r.text), got, c.ContentEvents, c.Bytes, c.SHA256)
	}
	if want := deref(c.Finish); r.a.FinishReason != want || r.a.Done != c.Done {
		t.Errorf("finish %q, done %v; want %q, %v", r.a.FinishReason, r.a.Done, want, c.Done)
	}
	if r.a.Error != "" || r.a.Bad != "" || r.a.ID == "" {
		t.Errorf("error %q, bad %q, id %q; want an id alone", r.a.Error, r.a.Bad, r.a.ID)
	}
	tokens, source, _ := Attribute(r.counts, r.textBytes, r.a)
	if want := captureSources[engine+"/"+c.Name]; source != want {
		t.Errorf("source %q, want %q", source, want)
	}
	total := int32(0)
	for _, k := range tokens {
		if k != Dropped {
			total += k
		}
	}
	switch {
	case several:
		if total != int32(c.ContentEvents) || r.a.OutputTokens.OK || r.a.ChoicesTokens != recording.Some(c.Usage.Completion) {
			t.Errorf("tokens %d, usage %v, of the choices %v; want %d, none, %d", total, r.a.OutputTokens, r.a.ChoicesTokens, c.ContentEvents, c.Usage.Completion)
		}
		if !slices.Contains(r.a.Notes, recording.NoteManyChoices) {
			t.Errorf("notes %q do not tell of several choices", r.a.Notes)
		}
	case c.Usage != nil:
		if total != c.Usage.Completion || r.a.OutputTokens != recording.Some(c.Usage.Completion) || r.a.PromptTokens != recording.Some(c.Usage.Prompt) {
			t.Errorf("tokens %d, usage %v and prompt %v; want %d and %d", total, r.a.OutputTokens, r.a.PromptTokens, c.Usage.Completion, c.Usage.Prompt)
		}
		if d := c.Usage.Details; d != nil && d.Cached != nil && r.a.CachedTokens != recording.Some(*d.Cached) {
			t.Errorf("cached %v, want %d", r.a.CachedTokens, *d.Cached)
		}
		if engine == "llamacpp" && (r.a.PredictedN != r.a.OutputTokens || !r.a.PrefillNs.OK) {
			t.Errorf("predicted_n %v, prefill %v; want the usage %v and a time", r.a.PredictedN, r.a.PrefillNs, r.a.OutputTokens)
		}
	case engine == "llamacpp" && c.Done: // no usage, but timings
		n := recording.Some(int32(c.ContentEvents))
		if total != n.V || r.a.OutputTokens != n || r.a.PredictedN != n || !r.a.PromptTokens.OK {
			t.Errorf("tokens %d, output %v, predicted_n %v, prompt %v; want %d of each and a prompt", total, r.a.OutputTokens, r.a.PredictedN, r.a.PromptTokens, n.V)
		}
		if c.Name == "chat_timings_per_token" && (r.a.PromptTokens.V != 34 || r.a.PrefillNs != recording.Some[int64](161_849_000)) {
			t.Errorf("prompt %v, prefill %v; want 34, 161.849 ms", r.a.PromptTokens, r.a.PrefillNs)
		}
	default:
		if total != int32(c.ContentEvents) || r.a.OutputTokens.OK {
			t.Errorf("tokens %d, usage %v; want %d and none", total, r.a.OutputTokens, c.ContentEvents)
		}
	}
	if len(r.a.Notes) > 0 && !several {
		t.Errorf("notes %q, want none", r.a.Notes)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Of vLLM's merged events the logprobs say which had two tokens; of its emoji the
// ids say that the events without text are tokens, and the finish event too.
func TestRealTokensPerEvent(t *testing.T) {
	for _, c := range []struct {
		file, path string
		want       []int32
	}{
		{"vllm/chat_logprobs.jsonl", "/v1/chat/completions", []int32{1, 2, 1, 1, 1, 1, 1}},
		{"vllm/completions_emoji_regex_ids.jsonl", "/v1/completions", slices.Repeat([]int32{1}, 35)},
		{"vllm/completions_emoji.jsonl", "/v1/completions", slices.Repeat([]int32{1}, 40)},
		{"vllm/chat_eos_usage.jsonl", "/v1/chat/completions", []int32{1, 1, 1, 1, 1, 2}},
		{"llamacpp/completions_progress.jsonl", "/v1/completions", []int32{1, 1, 1, 1}},
	} {
		_, body := readCapture(t, filepath.Join("testdata", "streams", filepath.FromSlash(c.file)))
		r := readStream(t, newDecoder(t, c.path), body, 512)
		if tokens, _, _ := Attribute(r.counts, r.textBytes, r.a); !slices.Equal(tokens, c.want) {
			t.Errorf("%s: tokens %v, want %v", c.file, tokens, c.want)
		}
	}
}

func TestRealToolCall(t *testing.T) {
	_, body := readCapture(t, filepath.Join("testdata", "streams", "vllm", "chat_tools_required.jsonl"))
	d := newDecoder(t, "/v1/chat/completions")
	var text []byte
	var s sse.Splitter
	emit := func(ev sse.Event) error {
		if tok, ok := d.Event("", ev.Data); ok {
			if tok.Channel != recording.ChannelToolCall {
				t.Errorf("channel %d for %q", tok.Channel, tok.Text)
			}
			text = append(text, tok.Text...)
		}
		return nil
	}
	if err := s.Feed(body, emit); err != nil {
		t.Fatal(err)
	}
	if want := `get_weather"gabenwelter"`; string(text) != want {
		t.Errorf("text %q, want %q", text, want)
	}
}

func TestRealErrors(t *testing.T) {
	tested := 0
	for engine, want := range map[string]map[string]string{
		"llamacpp": {
			"error_context":      "request (9001 tokens) exceeds the available context size (2048 tokens), try increasing it",
			"error_invalid_json": "[json.exception.parse_error.101] parse error at line 1, column 14: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal",
			"error_wrong_path":   "File Not Found",
		},
		"vllm": {
			"error_context":       "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=8193)",
			"error_unknown_model": "The model `nope` does not exist. Valid aliases: smollm2-135m.",
		},
	} {
		for _, c := range captures(t, engine) {
			if c.Status == 200 {
				continue
			}
			resp, body := readCapture(t, filepath.Join("testdata", "streams", engine, c.File))
			d, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			tested++
			a := d.Whole(resp.StatusCode, body)
			if resp.StatusCode != c.Status || a.Error == "" || a.Bad != "" {
				t.Errorf("%s/%s: status %d, error %q, bad %q", engine, c.Name, resp.StatusCode, a.Error, a.Bad)
			}
			if w, ok := want[c.Name]; ok && a.Error != w {
				t.Errorf("%s/%s: error %q, want %q", engine, c.Name, a.Error, w)
			}
		}
	}
	if tested != 6 {
		t.Errorf("%d error answers were read, want 6", tested)
	}
}

func ExampleAttribute() {
	a := &Answer{FinishReason: "length", OutputTokens: recording.Some[int32](9)}
	counts := []int32{Unknown, Unknown, Unknown, Unknown}
	tokens, source, notes := Attribute(counts, []int32{4, 0, 8, 4}, a)
	fmt.Println(tokens, source, notes)
	// Output: [3 -1 4 2] usage_shared [usage_shared]
}
