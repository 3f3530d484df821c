package dialect

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fermata/recording"
)

func TestAttribute(t *testing.T) {
	const u = Unknown
	many := []string{recording.NoteManyChoices}
	for _, c := range []struct {
		name   string
		counts []int32
		bytes  []int32
		a      Answer
		want   []int32
		source string
	}{
		{"nothing", nil, nil, Answer{OutputTokens: some(3)}, nil, "assumed"},
		{"counts as they are", []int32{1, 0, 3, 0}, []int32{1, 2, 9, 0}, Answer{CountSource: "usage", OutputTokens: some(5)}, []int32{1, 0, 3, Dropped}, "usage"},
		{"counts without text", []int32{1, 1, u}, []int32{0, 4, 0}, Answer{CountSource: "token_ids"}, []int32{1, 1, Dropped}, "token_ids"},
		{"an uncounted text where the counts are whole", []int32{2, u}, []int32{4, 4}, Answer{CountSource: "logprobs", OutputTokens: some(2)}, []int32{2, 0}, "logprobs"},
		{"an uncounted text where they are not", []int32{1, u}, []int32{4, 4}, Answer{CountSource: "logprobs", OutputTokens: some(2)}, []int32{1, 1}, "events"},
		{"counts of nothing", []int32{0, 0}, []int32{4, 4}, Answer{CountSource: "token_ids"}, []int32{1, 1}, "assumed"},

		{"one an event", []int32{u, u}, []int32{4, 4}, Answer{OutputTokens: some(2)}, []int32{1, 1}, "events"},
		{"empty ones are none where the texts are enough", []int32{u, u, u}, []int32{4, 0, 4}, Answer{OutputTokens: some(2)}, []int32{1, Dropped, 1}, "events"},
		{"empty ones are tokens where the usage says so", []int32{u, u, u}, []int32{4, 0, 4}, Answer{OutputTokens: some(3)}, []int32{1, 1, 1}, "events"},
		{"only empty ones", []int32{u, u}, []int32{0, 0}, Answer{OutputTokens: some(2)}, []int32{1, 1}, "events"},
		{"only empty ones, too few", []int32{u, u}, []int32{0, 0}, Answer{OutputTokens: some(3)}, []int32{Dropped, Dropped}, "assumed"},

		// 5 more over 10 bytes: 0.5 a byte; 2.5, 0.5 and 2 give 2, 0, 2 and the remainder to the earlier half.
		{"a surplus by bytes", []int32{u, u, u, u}, []int32{5, 0, 1, 4}, Answer{OutputTokens: some(8), FinishReason: "stop"}, []int32{4, Dropped, 1, 3}, "usage_shared"},
		{"the end-of-sequence token", []int32{u, u}, []int32{40, 1}, Answer{OutputTokens: some(3), FinishReason: "stop"}, []int32{1, 2}, "usage_shared"},
		{"one more before another finish", []int32{u, u}, []int32{40, 1}, Answer{OutputTokens: some(3), FinishReason: "length"}, []int32{2, 1}, "usage_shared"},
		{"the last arrival has text", []int32{u, u, u, u}, []int32{4, 4, 0, 0}, Answer{OutputTokens: some(3), FinishReason: "stop"}, []int32{1, 2, Dropped, Dropped}, "usage_shared"},

		{"usage below", []int32{u, u, u}, []int32{4, 4, 4}, Answer{OutputTokens: some(2)}, []int32{1, 1, 1}, "assumed"},
		{"no usage", []int32{u, u}, []int32{4, 0}, Answer{}, []int32{1, Dropped}, "assumed"},

		{"several choices", []int32{u, u}, []int32{4, 4}, Answer{OutputTokens: some(9), Notes: many}, []int32{1, 1}, "assumed"},
		{"several choices counted by usage", []int32{1, 3}, []int32{4, 4}, Answer{CountSource: "usage", Notes: many}, []int32{1, 1}, "assumed"},
		{"several choices with ids", []int32{1, 3}, []int32{4, 4}, Answer{CountSource: "token_ids", Notes: many}, []int32{1, 3}, "token_ids"},

		{"hidden reasoning", []int32{u, u}, []int32{4, 4}, Answer{OutputTokens: some(66), ReasoningTokens: some(64)}, []int32{1, 1}, "events"},
		{"reasoning that was streamed", []int32{u, u}, []int32{4, 4}, Answer{OutputTokens: some(6), ReasoningTokens: some(3), ReasoningSeen: true}, []int32{3, 3}, "usage_shared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens, source, notes := Attribute(c.counts, c.bytes, &c.a)
			if !slices.Equal(tokens, c.want) || source != c.source {
				t.Errorf("tokens %v by %s, want %v by %s", tokens, source, c.want, c.source)
			}
			if shared := slices.Equal(notes, []string{recording.NoteUsageShared}); shared != (source == recording.ArrivalShared) || !shared && notes != nil {
				t.Errorf("notes %q by %s", notes, source)
			}
		})
	}
}

// Whatever the server says: no arrival has less than 0 tokens, each event with
// text is an arrival, and the sum is what the source promises.
func TestAttributeSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "events")
		counts := rapid.SliceOfN(rapid.Int32Range(-1, 4), n, n).Draw(t, "counts")
		bytes := rapid.SliceOfN(rapid.Int32Range(0, 1<<20), n, n).Draw(t, "bytes")
		a := Answer{
			CountSource:   rapid.SampledFrom([]string{"", "usage", "token_ids", "logprobs"}).Draw(t, "source"),
			FinishReason:  rapid.SampledFrom([]string{"", "stop", "length"}).Draw(t, "finish"),
			OutputTokens:  recording.Maybe[int32]{V: rapid.Int32Range(0, 1<<20).Draw(t, "usage"), OK: rapid.Bool().Draw(t, "told")},
			ReasoningSeen: true,
		}
		if rapid.Bool().Draw(t, "near") {
			a.OutputTokens.V = int32(rapid.IntRange(0, n+2).Draw(t, "near usage"))
		}
		tokens, source, _ := Attribute(counts, bytes, &a)
		if len(tokens) != n {
			t.Fatalf("%d tokens for %d events", len(tokens), n)
		}
		sum, said, texts := int32(0), int32(0), int32(0)
		for i, k := range tokens {
			if k < Dropped || bytes[i] > 0 && k == Dropped {
				t.Fatalf("event %d with %d bytes has %d tokens", i, bytes[i], k)
			}
			sum += max(k, 0)
			said += max(counts[i], 0)
			if bytes[i] > 0 {
				texts++
			}
		}
		want := map[string]int32{
			recording.ArrivalEvents: a.OutputTokens.V, recording.ArrivalShared: a.OutputTokens.V, recording.ArrivalAssumed: texts,
			recording.ArrivalUsage: said, recording.ArrivalIDs: said, recording.ArrivalLogprobs: said,
		}
		if w, ok := want[source]; !ok || sum != w {
			t.Fatalf("tokens add up to %d by %q, want %d", sum, source, w)
		}
	})
}

// A server's mistake must not become millions of tokens.
func TestUsageBeyondReason(t *testing.T) {
	a := &Answer{OutputTokens: recording.Some(int32(2_000_000_000)), FinishReason: "stop"}
	tokens, source, notes := Attribute([]int32{Unknown, Unknown}, []int32{1, 1}, a)
	if !slices.Equal(tokens, []int32{1, 1}) || source != recording.ArrivalAssumed || len(notes) != 0 {
		t.Errorf("%v, %s, %v", tokens, source, notes)
	}
	a.OutputTokens = recording.Some(int32(12)) // six tokens a letter are many, but who knows
	if tokens, source, _ = Attribute([]int32{Unknown, Unknown}, []int32{1, 1}, a); !slices.Equal(tokens, []int32{6, 6}) || source != recording.ArrivalShared {
		t.Errorf("%v, %s", tokens, source)
	}
}
