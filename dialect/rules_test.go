package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/recording"
)

// A tok is a token event as a test writes it.
type tok struct {
	Channel int8
	Text    string
	Count   int32
}

func some(n int32) recording.Maybe[int32]   { return recording.Some(n) }
func some64(n int64) recording.Maybe[int64] { return recording.Some(n) }

const (
	role  = `{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	hello = `{"id":"c1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}`
	empty = `{"choices":[{"index":0,"delta":{}}]}`
	stop  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

func TestDecoderRules(t *testing.T) {
	h := tok{0, "hello", Unknown}
	for _, c := range []struct {
		name   string
		events string // one a line; "NAME|data" for a named one
		toks   []tok
		want   Answer
	}{
		{
			"the usual stream", role + "\n" + hello + "\n" + hello + "\n" + stop + `
			{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}
			[DONE]`,
			[]tok{h, h},
			Answer{ID: "c1", FinishReason: "stop", Done: true, PromptTokens: some(9), OutputTokens: some(2)},
		},
		{"an empty event may be a token, but not after the finish", empty + "\n" + stop + "\n" + empty, []tok{{0, "", Unknown}}, Answer{FinishReason: "stop"}},
		{"content null with a role", `{"choices":[{"delta":{"role":"assistant","content":null}}]}`, nil, Answer{}},
		{"a role beside text is a token", `{"choices":[{"delta":{"role":"assistant","content":"x"}}]}`, []tok{{0, "x", Unknown}}, Answer{}},
		{"Azure's first chunk", `{"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, nil, Answer{}},
		{"progress", `{"choices":[{"index":0,"text":""}],"prompt_progress":{"total":9,"processed":0}}`, nil, Answer{}},
		{
			"usage beside an empty delta", hello + "\n" + `{"choices":[{"delta":{"content":""}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			[]tok{h},
			Answer{ID: "c1", PromptTokens: some(1), OutputTokens: some(1)},
		},

		{"reasoning in both spellings", `{"choices":[{"delta":{"reasoning_content":"a","reasoning":"a"}}]}
			{"choices":[{"delta":{"reasoning":"b","content":null}}]}`, []tok{{1, "a", Unknown}, {1, "b", Unknown}}, Answer{ReasoningSeen: true}},
		{"refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, []tok{{3, "no", Unknown}}, Answer{}},
		{
			"a tool call's name and arguments", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}
			{"choices":[{"delta":{"tool_calls":[{"function":{"name":"g","arguments":"1"}},{"function":{"name":"h"}}]}}]}`,
			[]tok{{2, "f", Unknown}, {2, "{}", Unknown}, {2, "g1h", Unknown}},
			Answer{},
		},
		{"an empty list of tool calls is none", `{"choices":[{"delta":{"content":"x","tool_calls":[]}}]}`, []tok{{0, "x", Unknown}}, Answer{}},
		{"function call of old", `{"choices":[{"delta":{"function_call":{"name":"f","arguments":"1"}}}]}`, []tok{{2, "f1", Unknown}}, Answer{}},
		{"content in parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, []tok{{0, "ab", Unknown}}, Answer{}},

		{
			"the first of several choices", `{"choices":[{"index":1,"delta":{"content":"b"}}]}
			{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}
			{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}
			{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3}}`,
			[]tok{{0, "a", Unknown}},
			Answer{PromptTokens: some(3), ChoicesTokens: some(3), Notes: []string{recording.NoteManyChoices}},
		},

		{
			"running usage", `{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":5,"completion_tokens":0}}
			{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}
			{"choices":[{"delta":{}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}
			{"choices":[{"delta":{}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}
			{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}
			{"choices":[{"delta":{"content":"cd"}}],"usage":{"prompt_tokens":5,"completion_tokens":4}}
			{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":5}}`,
			[]tok{{0, "a", 1}, {0, "", 1}, {0, "b", 0}, {0, "cd", 2}, {0, "", 1}},
			Answer{FinishReason: "stop", PromptTokens: some(5), OutputTokens: some(5), CountSource: "usage"},
		},
		{
			"tokens that a role chunk tells of come with the first text", `{"choices":[{"delta":{"role":"assistant"}}],"usage":{"completion_tokens":1}}
			{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}`,
			[]tok{{0, "a", 1}},
			Answer{OutputTokens: some(1), CountSource: "usage"},
		},
		{
			"usage in the last event with text is a total", `{"choices":[{"text":"a"}]}
			{"choices":[{"text":"b","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":7}}`,
			[]tok{{0, "a", Unknown}, {0, "b", Unknown}},
			Answer{FinishReason: "length", PromptTokens: some(1), OutputTokens: some(7)},
		},
		{
			"usage in a finish event without any text is a total", `{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":7}}`,
			nil,
			Answer{FinishReason: "length", PromptTokens: some(1), OutputTokens: some(7)},
		},
		{
			"the whole answer in one event", `{"choices":[{"text":"a b c","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":4}}`,
			[]tok{{0, "a b c", 4}},
			Answer{FinishReason: "stop", PromptTokens: some(1), OutputTokens: some(4), CountSource: "usage"},
		},
		{
			"usage that falls: the last holds", `{"choices":[{"text":"a"}],"usage":{"completion_tokens":5}}
			{"choices":[{"text":"b"}],"usage":{"completion_tokens":3}}
			{"choices":[{"text":"c"}],"usage":{"completion_tokens":6}}
			{"choices":[],"usage":null}`,
			[]tok{{0, "a", 5}, {0, "b", 0}, {0, "c", 1}},
			Answer{OutputTokens: some(6), CountSource: "usage", Notes: []string{recording.NoteUsageFell}},
		},
		{
			"usage of nothing beside text", `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":4,"completion_tokens":0}}`,
			[]tok{{0, "a", Unknown}},
			Answer{PromptTokens: some(4), OutputTokens: some(0)},
		},
		{
			"usage of nothing before the text", `{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":0}}` + "\n" + hello,
			[]tok{h},
			Answer{ID: "c1", PromptTokens: some(4)},
		},
		{"Groq", `{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":2,"completion_tokens":3}}}`, nil, Answer{PromptTokens: some(2), OutputTokens: some(3)}},
		{
			"details", `{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":6,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}}`,
			nil,
			Answer{PromptTokens: some(8), OutputTokens: some(6), CachedTokens: some(4), ReasoningTokens: some(5)},
		},
		{
			"a total above the sum", `{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":6,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":6}}}`,
			nil,
			Answer{PromptTokens: some(8), OutputTokens: some(12), ReasoningTokens: some(6), Notes: []string{NoteUsageWithoutReasoning}},
		},
		{
			"more reasoning than output", `{"choices":[],"usage":{"completion_tokens":6,"reasoning_tokens":9}}`,
			nil,
			Answer{OutputTokens: some(6), ReasoningTokens: some(6), Notes: []string{NoteReasoningClamped}},
		},

		{
			"token ids", `{"choices":[{"text":"","token_ids":[1]}]}
			{"choices":[{"text":"ab","token_ids":[2,3]}]}
			{"choices":[{"text":"x","token_ids":[]}]}
			{"choices":[{"text":"","token_ids":[4],"finish_reason":"stop"}]}`,
			[]tok{{0, "", 1}, {0, "ab", 2}, {0, "x", 0}, {0, "", 1}},
			Answer{FinishReason: "stop", CountSource: "token_ids"},
		},
		{
			"usage is better than ids, ids than logprobs", `{"choices":[{"text":"a","token_ids":[1,2],"logprobs":{"content":[{},{},{}]}}],"usage":{"completion_tokens":1}}`,
			[]tok{{0, "a", 1}},
			Answer{OutputTokens: some(1), CountSource: "usage"},
		},
		{
			"ids are better than logprobs", `{"choices":[{"text":"a","token_ids":[1,2],"logprobs":{"content":[{},{},{}]}}]}`,
			[]tok{{0, "a", 2}},
			Answer{CountSource: "token_ids"},
		},
		{"logprobs of old", `{"choices":[{"text":"a b","logprobs":{"tokens":["a"," b"],"token_logprobs":[0,0]}}]}
			{"choices":[{"text":"","logprobs":{"tokens":["c"]}}]}
			{"choices":[{"text":"","logprobs":null}]}`, []tok{{0, "a b", 2}, {0, "", 1}, {0, "", Unknown}}, Answer{CountSource: "logprobs"}},

		{"finish reasons by other names", `{"choices":[{"text":"a","finish_reason":""}]}
			{"choices":[{"text":"","finish_reason":"max_tokens"}]}`, []tok{{0, "a", Unknown}}, Answer{FinishReason: "length"}},
		{"tool calls after stop", stop + "\n" + strings.Replace(stop, "stop", "tool_use", 1), nil, Answer{FinishReason: "tool_calls"}},
		{"a second finish", stop + "\n" + strings.Replace(stop, "stop", "length", 1), nil, Answer{FinishReason: "stop", Notes: []string{recording.NoteExtraFinish}}},
		{"a finish that nobody knows", `{"choices":[{"text":"","finish_reason":"Weather"}]}`, nil, Answer{FinishReason: "Weather"}},
		{
			"finish abort", `{"choices":[{"delta":{},"finish_reason":"abort"}]}` + "\n[DONE]", nil,
			Answer{FinishReason: "abort", Done: true, Error: "the server ended the answer with the finish reason abort"},
		},

		{"error object", hello + "\n" + `{"error":{"message":"out of\n memory","type":"server_error"}}` + "\n" + `{"error":"later"}`, []tok{h}, Answer{ID: "c1", Error: "out of memory"}},
		{"error text", `{"error":"busy"}`, nil, Answer{Error: "busy"}},
		{"error without words", `{"error":{}}`, nil, Answer{Error: "an error without a message"}},
		{"error beside choices", `{"choices":[{"delta":{"content":"x"}}],"error":{"code":502}}`, []tok{{0, "x", Unknown}}, Answer{Error: "502"}},
		{"no error", `{"error":null,"choices":[]}` + "\n" + `{"error":""}`, nil, Answer{}},
		{"event error", `error|{"error":{"message":"overloaded"}}`, nil, Answer{Error: "overloaded"}},
		{"event error with a bare object", `error|{"code":500,"message":"boom","type":"server_error"}`, nil, Answer{Error: "boom"}},
		{"event error with a code alone", `error|{"code":500}`, nil, Answer{Error: "500"}},
		{"event error in plain text", `error|went away`, nil, Answer{Error: "went away"}},
		{"Groq's error", `{"x_groq":{"error":"over capacity"},"choices":[]}`, nil, Answer{Error: "over capacity"}},
		{"object error", `{"object":"error","message":"too long","code":400}`, nil, Answer{Error: "too long"}},
		{"detail", `{"detail":"Not Found"}` + "\n", nil, Answer{Error: "Not Found"}},
		{"list of details", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, nil, Answer{Error: "field required"}},
		{"message alone", `{"message":"slow down"}`, nil, Answer{Error: "slow down"}},
		{"error after the finish", stop + "\n" + `{"error":"late"}`, nil, Answer{FinishReason: "stop", Error: "late", Notes: []string{recording.NoteErrorAfter}}},

		{"text after the end marker", hello + "\n[DONE]\n" + hello, []tok{h}, Answer{ID: "c1", Done: true}},
		{"not JSON", "oops, no <b>JSON</b>\n" + hello, []tok{h}, Answer{ID: "c1", Bad: `an event's data is not JSON: "oops, no <b>JSON</b>"`}},
		{"cut JSON", hello[:40], nil, Answer{Bad: `an event's data is not JSON: "{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\""`}},
		{"no object", `[1]`, nil, Answer{Bad: "an event's data is no JSON object: [1]"}},
		{"other events", `ping|{"type":"ping"}` + "\n" + `{"choices":null}` + "\n" + `{"choices":[7]}`, nil, Answer{}},
		{"text beyond ASCII", `{"choices":[{"text":"日 \u00e9 \ud83d\ude00 \ud83d \"\\\/\b\f\n\r\t"}]}`, []tok{{0, "日 é 😀 \uFFFD \"\\/\b\f\n\r\t", Unknown}}, Answer{}},
		{"bytes that are no UTF-8", "{\"choices\":[{\"text\":\"a\xff\"}]}", []tok{{0, "a\uFFFD", Unknown}}, Answer{}},

		{"vLLM's own times", `{"choices":[],"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":20.25}}`, nil, Answer{QueueNs: some64(1_500_000), PrefillNs: some64(20_250_000)}},
		{
			"our server's own times", `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1},"fermata":{"received_ns":1795963640123456789,"queue_ns":7,"prefill_ns":0}}`,
			nil,
			Answer{PromptTokens: some(1), OutputTokens: some(1), ReceivedWallNs: some64(1795963640123456789), QueueNs: some64(7), PrefillNs: some64(0)},
		},
		{
			"llama.cpp's times", `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3},"timings":{"cache_n":4,"prompt_n":6,"prompt_ms":12.5,"predicted_n":4}}`,
			nil,
			Answer{PromptTokens: some(10), OutputTokens: some(3), PredictedN: some(4), PrefillNs: some64(12_500_000)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := (openAI{}).NewDecoder()
			var toks []tok
			for line := range strings.SplitSeq(c.events, "\n") {
				line = strings.TrimSpace(line)
				name, data, ok := strings.Cut(line, "|")
				if !ok {
					name, data = "", line
				}
				if got, ok := d.Event(name, []byte(data)); ok {
					toks = append(toks, tok{got.Channel, string(got.Text), got.Count})
				}
			}
			if diff := cmp.Diff(c.toks, toks); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, *d.Answer()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   Answer
	}{
		{
			"an answer in one body", 200, `{"id":"c9","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
			Answer{ID: "c9", FinishReason: "stop", PromptTokens: some(3), OutputTokens: some(2), CountSource: "usage"},
		},
		{"an error at status 200", 200, `{"error":{"message":"no such model"}}`, Answer{Error: "no such model"}},
		{"FastAPI", 404, `{"detail":"Not Found"}`, Answer{Error: "Not Found"}},
		{"an error in a list", 429, `[{"error":{"code":429,"message":"quota"}}]`, Answer{Error: "quota"}},
		{"JSON without an error", 500, `{"status": "down"}`, Answer{Error: `{"status": "down"}`}},
		{"plain text", 503, "  upstream connect\n error ", Answer{Error: "upstream connect error"}},
		{"a page", 502, "<html>\n<head><TITLE>502 Bad &amp; Gateway</TITLE></head><body>x</body></html>", Answer{Error: `an HTML page titled "502 Bad & Gateway"`}},
		{"a page without a title", 403, "<!DOCTYPE html><body>x", Answer{Error: "an HTML page"}},
		{"a page at status 200", 200, "<!doctype html><title>Log in</title>", Answer{Bad: `an HTML page titled "Log in"`}},
		{"nothing", 401, "", Answer{}},
		{"long text", 500, strings.Repeat("é", 300), Answer{Error: strings.Repeat("é", 100) + "…"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, *(openAI{}).Whole(c.status, []byte(c.body))); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
