package dialect

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"fermata/workload"
)

func TestBody(t *testing.T) {
	ask := &workload.Request{Prompt: "a <b> & \"c\"\n日", OutputTokens: 7}
	for _, c := range []struct {
		name string
		o    Options
		q    *workload.Request
		want string
	}{
		{
			"chat",
			Options{Model: "m"},
			ask,
			`{"model":"m","messages":[{"role":"user","content":"a <b> & \"c\"\n日"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":7}`,
		},
		{
			"chat with what some servers take",
			Options{Model: "m", NoUsage: true, IgnoreEOS: true, NewMaxField: true},
			ask,
			`{"model":"m","messages":[{"role":"user","content":"a <b> & \"c\"\n日"}],"stream":true,"max_completion_tokens":7,"ignore_eos":true,"min_tokens":7}`,
		},
		{
			"no model, no length",
			Options{IgnoreEOS: true},
			&workload.Request{Prompt: "x"},
			`{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`,
		},
		{
			"messages as they are",
			Options{NoUsage: true},
			&workload.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"system","content":"<s>","x":1.0}`), json.RawMessage(`{ "role": "user" }`)}},
			`{"messages":[{"role":"system","content":"<s>","x":1.0},{"role":"user"}],"stream":true}`,
		},
		{
			"fields of the options, then of the request",
			Options{Model: "m", Body: map[string]any{"temperature": 0, "model": "n", "seed": 1, "stream_options": map[string]any{"include_usage": true, "continuous_usage_stats": true}}},
			&workload.Request{Prompt: "x", Params: map[string]any{"seed": 2, "a": nil}},
			`{"model":"n","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true},"seed":2,"temperature":0,"a":null}`,
		},
		{
			"completions",
			Options{API: "completions", Model: "m", NewMaxField: true, IgnoreEOS: true},
			ask,
			`{"model":"m","prompt":"a <b> & \"c\"\n日","stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"ignore_eos":true,"min_tokens":7}`,
		},
		{
			"a prompt as ids",
			Options{API: "completions", NoUsage: true},
			&workload.Request{Params: map[string]any{"prompt": []int{1, 2}}},
			`{"prompt":[1,2],"stream":true}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := New(c.o)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 { // the order of maps does not show
				got, err := d.Body(c.q)
				if err != nil || string(got) != c.want || !json.Valid(got) {
					t.Fatalf("body %s (%v)\nwant %s", got, err, c.want)
				}
			}
		})
	}
}

func TestBodyErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		q    *workload.Request
		want string
	}{
		{Options{API: "completions"}, &workload.Request{Messages: []json.RawMessage{json.RawMessage(`{}`)}}, "messages need api: chat"},
		{Options{Body: map[string]any{"top_p": math.NaN()}}, &workload.Request{Prompt: "x"}, `body field "top_p"`},
		{Options{}, &workload.Request{Messages: []json.RawMessage{json.RawMessage(`{`)}}, `body field "messages"`},
	} {
		d, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := d.Body(c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("body %s, error %v; want an error with %q", b, err, c.want)
		}
	}
}

func TestNewRefusesOthers(t *testing.T) {
	_, err := New(Options{API: "telepathy"})
	if err == nil || !strings.Contains(err.Error(), `"telepathy"`) || !strings.Contains(err.Error(), "chat and completions") {
		t.Errorf("error %v, want one that names the api and the known ones", err)
	}
}
