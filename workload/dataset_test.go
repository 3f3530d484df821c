package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextDataSets(t *testing.T) {
	note := "we study the waiting of readers . it is long .\n\nSummarize this article."
	for _, c := range []struct {
		file, format string
		want         []Request
		empty        int64
	}{
		// Tokens are a quarter of the letters, rounded up, and one for each other
		// character: 18 and 20 letters; "Hi" is 2.
		{"sharegpt.json", "sharegpt", []Request{
			{Prompt: `How do I write "[" and } inside a string, \ and all?`, OutputTokens: 5},
			{ID: 1, Prompt: "Größer", OutputTokens: 5},
			{ID: 2, Messages: []json.RawMessage{json.RawMessage(`{"content":"Be brief.","role":"system"}`), json.RawMessage(`{"content":"Hello there","role":"user"}`)}, OutputTokens: 1},
		}, 1},
		// 53 letters; two Japanese ones.
		{"lmsys.jsonl", "lmsys", []Request{
			{Prompt: "What is a fermata?", OutputTokens: 14},
			{ID: 1, Prompt: "こんにちは", OutputTokens: 2},
		}, 0},
		// 16 letters with their spaces; "notes last .   some longer ." is 28.
		{"arxiv.jsonl", "arxiv", []Request{
			{Prompt: note, OutputTokens: 4},
			{ID: 1, Prompt: "we hold a note . it lasts .\n\nSummarize this article.", OutputTokens: 7},
		}, 0},
		{"arxiv.parquet", "arxiv", []Request{
			{Prompt: "first article\n\nSummarize this article.", OutputTokens: 1},
			{ID: 1, Prompt: "second article\n\nSummarize this article.", OutputTokens: 1},
		}, 0},
	} {
		w := mustOpen(t, Options{Dataset: filepath.Join("testdata", c.file)}, 1)
		if w.Format() != c.format || w.Rows() != int64(len(c.want)) || w.Skipped().Empty != c.empty || w.Synthetic() {
			t.Errorf("%s: format %s, %d rows, %+v", c.file, w.Format(), w.Rows(), w.Skipped())
			continue
		}
		for i, want := range c.want {
			if diff := cmp.Diff(want, mustAt(t, w, int64(i), 0, 0)); diff != "" {
				t.Errorf("%s: request %d: %s", c.file, i, diff)
			}
		}
	}
	// A length that was asked for goes before an estimate.
	w := mustOpen(t, Options{Dataset: "testdata/lmsys.jsonl", Output: "64"}, 1)
	if q := mustAt(t, w, 0, 0, 0); q.OutputTokens != 64 {
		t.Errorf("%d tokens, want the 64 that were asked for", q.OutputTokens)
	}
}

// Rows of Parquet come whole in any order, across pages and row groups.
func TestParquet(t *testing.T) {
	for file, n := range map[string]int{"lmsys.parquet": 300, "lmsys_item.parquet": 7} {
		w := mustOpen(t, Options{Dataset: filepath.Join("testdata", file)}, 1)
		if w.Format() != "lmsys" || w.Rows() != int64(n-1) || w.Skipped().Empty != 1 {
			t.Fatalf("%s: format %s, %d rows, %+v", file, w.Format(), w.Rows(), w.Skipped())
		}
		for i := range int64(2 * n) {
			k := i * 89 % int64(n-1) // 89 is prime to both sizes: every row, in leaps
			if i > int64(n) {
				k = int64(2*n-1) - i // and backwards
			}
			if k >= int64(n-1) {
				continue
			}
			number := k
			if k >= 5 { // conversation 5 is empty
				number++
			}
			want := fmt.Sprintf("question %d: %s", number, strings.Repeat("x", int(3*number)))
			if q := mustAt(t, w, k, 0, 0); q.Prompt != want || int(q.OutputTokens) != (len(fmt.Sprint("answer ", number))+3)/4 {
				t.Fatalf("%s: request %d is %q, %d tokens", file, k, q.Prompt, q.OutputTokens)
			}
		}
	}
}

func TestFormatsAreRecognised(t *testing.T) {
	for _, c := range []struct{ text, format, want string }{
		{"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,2162,5\r\n2024-05-10 00:00:01+00:00,10,6", "", "azure"},
		{`[{"conversations":[{"from":"human","value":"a"}]}]`, "", "sharegpt"},
		{`{"conversations":[{"from":"human","value":"a"}]}`, "", "sharegpt"},
		{`[{"conversation":[{"role":"user","content":"a"}]}]`, "", "lmsys"},
		{"\ufeff[\n{\"prompt\":\"a\"},\n{\"prompt\":\"b\"}\n]", "", "fermata"},
		{"num_prefill_tokens,num_decode_tokens,pd_ratio\n5,6,0.8\n", "", "lengths"},
		{"arrival_s,prompt_tokens,output_tokens\n0.5,5,6\n", "", "lengths"},
		{`{"prompt_tokens":5,"output_tokens":6,"at_s":1}`, "", "fermata"},
		{`{"prompt":"a"}`, "fermata", "fermata"},
		{"prompt_tokens,output_tokens\n5,6\n", "lengths", "lengths"},
	} {
		w, err := Open(Options{Dataset: write(t, c.text), Format: c.format}, 1)
		if err != nil || w.Format() != c.want {
			t.Errorf("%.40q: %v, want format %s", c.text, err, c.want)
		}
	}
	// A week of 2024: 990.07 ms from the first row to the second.
	w := mustOpen(t, Options{Dataset: write(t, "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,10,6\n")}, 1)
	if due := allTimes(w); due[0] != 0 || due[1] != 990_070_000 {
		t.Errorf("times %v", due)
	}
	// Rows before the first in the file begin the schedule.
	w = mustOpen(t, Options{Dataset: write(t, "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:02,20,5\n2024-05-10 00:00:01,10,6\n")}, 1)
	if due := allTimes(w); due[0] != 0 || due[1] != 1e9 || mustAt(t, w, 0, 0, 0).PromptTokens != 10 {
		t.Errorf("times %v", due)
	}
}

func TestFormatErrors(t *testing.T) {
	const share = `{"conversations":[{"from":"human","value":"a"}]}`
	azureHead := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for _, c := range []struct{ text, format, want string }{
		{"a,b\n1,2\n", "", "line 1: neither JSON nor Parquet, nor a CSV file with one of these headers: TIMESTAMP,ContextTokens,GeneratedTokens (azure); Timestamp,Request tokens,Response tokens (burstgpt); prompt_tokens,output_tokens (lengths)"},
		{"once upon a time", "", "line 1: neither JSON nor Parquet"},
		{"at_s,prompt_tokens,output_tokens,session\n0,1,1,a\n", "", "line 1: the column session is not read from a data set in CSV: give the file as schedule.file"},
		{azureHead + "2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:47,375\n", "", "line 3: 2 fields, where the header has 3"},
		{azureHead + "yesterday,374,44\n", "", `line 2: TIMESTAMP must be a time such as 2023-11-16 18:15:46.6805900, not "yesterday"`},
		{azureHead + "2023-11-16 18:15:46.68,many,44\n", "", `line 2: ContextTokens must be a whole number of tokens up to 16777216, not "many"`},
		{azureHead + "2023-11-16 18:15:46.68,1,-4\n", "", `line 2: GeneratedTokens must be`},
		{azureHead + "2023-11-16 18:15:46.68,0,0\n", "", "none of its 1 rows has anything to ask"},
		{azureHead, "", "no prompts in it"},
		{azureHead, "burstgpt", "line 1: this is the header of format azure, not of burstgpt"},
		{`{"prompt":"a"}`, "azure", "it holds JSON, and azure is a format of CSV files"},
		{`{"prompt":"a"}`, "mooncake", "line 1: timestamp is missing"},
		{`{"prompt":"a"}`, "sharegpt", "line 1: no conversations in it"},
		{`{"prompt":"a"}`, "lmsys", "line 1: no conversation in it"},
		{`{"timestamp":0,"input_length":-1,"output_length":5}`, "", "line 1: a length must be between"},
		{`{"timestamp":-1,"input_length":1,"output_length":5}`, "", "line 1: timestamp must be between 0"},
		{`{"timestamp":0,"input_length":1,"output_length":5,"hash_ids":[-1]}`, "", "line 1: a hash id must not be negative"},
		{"[\n" + share + ",\n" + `{"conversations":7}` + "\n]", "", "line 3: conversations must be a list, not number"},
		{"[\n" + share + ",\n{\"conversations\":[\n", "", "line 3: the object that begins here is never closed"},
		{"[\n" + share + ",\n\n", "", "line 4: the file ends before the array's closing ]"},
		{"[\n" + share + ",\n  oops\n]", "", "line 3: invalid character 'o'"},
		{"[" + share + `,{"id":"k17","conversations":7}]`, "", `line 1: conversations must be a list, not number (row 2, id "k17")`},
		{"[" + share + "," + share + `,{"conversations":7}]`, "", `line 1: conversations must be a list, not number (row 3)`},
		{"[" + share + `,{"id": "k18", "conversations":[`, "", `line 1: the object that begins here is never closed (row 2, id "k18")`},
		{"\x1f\x8b\x08\x00", "", "it is compressed; unpack it first"},
		{"PAR1PAR1", "", "opening it as Parquet: "},
	} {
		path := write(t, c.text)
		_, err := Open(Options{Dataset: path, Format: c.format}, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "reading the data set: "+path+": "+c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Open(Options{Dataset: "testdata/lmsys.parquet", Format: "arxiv"}, 1); err == nil || !strings.HasSuffix(err.Error(), "its columns are those of format lmsys, not of arxiv") {
		t.Error(err)
	}
}

func TestSkipBad(t *testing.T) {
	const good = `{"prompt":"a"}` + "\n"
	for _, c := range []struct {
		text      string
		rows, bad int64
		first     string
	}{
		{good + "what?\n" + good + `{"prompt":` + "\n" + good, 3, 2, "line 2: invalid character 'w' looking for beginning of value"},
		{`{"prompt` + "\n" + `{"conversations":[{"from":"human","value":"a"}]}`, 1, 1, "line 1: the JSON object is cut off"},
		{"prompt_tokens,output_tokens\n1,2\n1\n3,4\n", 2, 1, "line 3: 1 fields, where the header has 2"},
		{`[{"conversations":[{"from":"human","value":"a"}]},` + "\n" + `{"conversations":{}},{"conversations":[{"from":"human","value":"b"}]}]`, 2, 1, "line 2: conversations must be a list, not object"},
		{good + `{"prompt":"b","at_s":1}` + "\n" + good, 2, 1, "line 2 has at_s and line 1 has none"},
		{good + good, 2, 0, ""},
		{good + `{"prompt":"b","body":{"model":"other"}}` + "\n" + good, 2, 1, "line 2: body.model cannot be given: name it under target.model"},
	} {
		path := write(t, c.text)
		w := mustOpen(t, Options{Dataset: path, SkipBad: true}, 1)
		if s := w.Skipped(); w.Rows() != c.rows || s.Bad != c.bad || !strings.HasPrefix(s.FirstBad, c.first) || (s.FirstBad == "") != (c.first == "") {
			t.Errorf("%q: %d rows, %+v", c.text, w.Rows(), s)
		}
		if _, err := Open(Options{Dataset: path}, 1); (err != nil) != (c.bad > 0) {
			t.Errorf("%q without skip_bad: %v", c.text, err)
		}
	}
	path := write(t, "{\n[\n")
	if _, err := Open(Options{Dataset: path, SkipBad: true}, 1); err == nil || !strings.Contains(err.Error(), "none of its 2 rows can be read; the first: line 1: ") {
		t.Error(err)
	}
}

func TestTooLong(t *testing.T) {
	path := write(t, `{"prompt":"a"}`+"\n"+`{"prompt":"`+strings.Repeat("x", elementMax)+`"}`+"\n"+`{"prompt":"b"}`)
	if _, err := Open(Options{Dataset: path}, 1); err == nil || !strings.HasSuffix(err.Error(), "line 2: longer than 16777215 bytes") {
		t.Error(err)
	}
	w := mustOpen(t, Options{Dataset: path, SkipBad: true}, 1)
	if q := mustAt(t, w, 1, 0, 0); w.Rows() != 2 || q.Prompt != "b" {
		t.Errorf("%d rows, %q", w.Rows(), q.Prompt)
	}
}

func TestChangedDataSet(t *testing.T) {
	path := write(t, `{"prompt":"a"}`+"\n"+`{"prompt":"b"}`+"\n")
	w := mustOpen(t, Options{Dataset: path}, 1)
	if err := os.WriteFile(path, []byte(`{"prompt":"a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.At(0, 0, 0); !ok || w.Err() != nil {
		t.Errorf("the first row: %v", w.Err())
	}
	if _, ok := w.At(1, 0, 0); ok || !errors.Is(w.Err(), io.EOF) {
		t.Errorf("a row that is gone: %v", w.Err())
	}
}

// An array of objects splits into what encoding/json sees in it, each at its
// place and line.
func FuzzSplitArray(f *testing.F) {
	for _, s := range []string{`[]`, `[{}]`, ` [ {"a":"]}\\"} , {"b":[{},[]]}` + "\n]", `[{"a":"\""},` + "\n\n" + `{}]x`, `[1]`, `[{},"a,b",3.5,null]`, `[{}`, `[`, `x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []json.RawMessage
		err := splitArray(bytes.NewReader(data), func(e element) error {
			if e.err != nil {
				return e.err
			}
			if !bytes.Equal(data[e.offset:int(e.offset)+len(e.data)], e.data) {
				t.Fatalf("%q is not at byte %d", e.data, e.offset)
			}
			if line := int64(1 + bytes.Count(data[:e.offset], []byte("\n"))); line != e.line {
				t.Fatalf("%q on line %d, told %d", e.data, line, e.line)
			}
			got = append(got, bytes.Clone(bytes.TrimSpace(e.data)))
			return nil
		})
		var want []json.RawMessage
		if json.Unmarshal(data, &want) != nil {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if diff := cmp.Diff(want, got); len(want) > 0 && diff != "" {
			t.Errorf("%q: %s", data, diff)
		}
	})
}

func TestUnclosedQuote(t *testing.T) {
	path := write(t, "prompt_tokens,output_tokens\n1,2\n\"3,4\n5,\"6\"\n")
	if _, err := Open(Options{Dataset: path}, 1); err == nil || !strings.HasSuffix(err.Error(), "line 3: a quote is opened and never closed") {
		t.Error(err)
	}
	if w := mustOpen(t, Options{Dataset: path, SkipBad: true}, 1); w.Rows() != 2 || w.Skipped().Bad != 1 {
		t.Errorf("%d rows, %+v", w.Rows(), w.Skipped())
	}
}

// A row cannot override what the run decides; anything else of a body it may set.
func TestRowsOverrideNothing(t *testing.T) {
	for field, want := range map[string]string{
		"model": "target.model", "stream": "no token has a time", "messages": "the workload's", "prompt": "the workload's",
		"max_tokens": "output_tokens", "max_completion_tokens": "output_tokens",
	} {
		_, err := Open(Options{Dataset: write(t, `{"prompt":"a"}`+"\n"+`{"prompt":"b","body":{"top_p":1,"`+field+`":1}}`)}, 1)
		if err == nil || !strings.Contains(err.Error(), "line 2: body."+field+" cannot be given: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
	w := mustOpen(t, Options{Dataset: write(t, `{"prompt":"b","body":{"top_p":1,"stop":["x"],"min_tokens":2}}`)}, 1)
	if q := mustAt(t, w, 0, 0, 0); len(q.Params) != 3 {
		t.Errorf("%v", q.Params)
	}
}
