package sse

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type seen struct{ Name, Data string }

// split feeds the pieces and closes.
func split(t testing.TB, pieces ...string) (events []seen, comments int64, unterminated bool) {
	t.Helper()
	var s Splitter
	emit := func(ev Event) error {
		events = append(events, seen{string(ev.Name), string(ev.Data)})
		return nil
	}
	for _, p := range pieces {
		b := []byte(p)
		if err := s.Feed(b, emit); err != nil {
			t.Fatalf("Feed: %v", err)
		}
		for i := range b { // the bytes are the splitter's only during the call
			b[i] = '#'
		}
	}
	unterminated, err := s.Close(emit)
	if err != nil {
		t.Fatalf("Close: %v", err)
	}
	return events, s.Comments, unterminated
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name     string
		pieces   []string
		want     []seen
		comments int64
		tail     bool
	}{
		{name: "nothing"},
		{name: "one", pieces: []string{"data: a\n\n"}, want: []seen{{"", "a"}}},
		{name: "CRLF", pieces: []string{"data: a\r\n\r\ndata: b\r\n\r\n"}, want: []seen{{"", "a"}, {"", "b"}}},
		{name: "CR", pieces: []string{"data: a\r\rdata: b\r\r"}, want: []seen{{"", "a"}, {"", "b"}}},
		{name: "CR and LF in two reads end one line", pieces: []string{"data: a\r", "\ndata: b\r", "\n\r", "\n"}, want: []seen{{"", "a\nb"}}},
		{name: "mixed ends", pieces: []string{"data: a\r\n\ndata: b\n\rdata: c\r\r\n"}, want: []seen{{"", "a"}, {"", "b"}, {"", "c"}}},
		{name: "within a rune", pieces: []string{"data: \xf0\x9f", "\x98\x80\n", "\n"}, want: []seen{{"", "😀"}}},
		{name: "blank line in the next read", pieces: []string{"data: abc\n", "\ndata: d\n\n"}, want: []seen{{"", "abc"}, {"", "d"}}},
		{name: "several data lines", pieces: []string{"data: a\ndata:b\ndata\ndata:  c\n\n"}, want: []seen{{"", "a\nb\n\n c"}}},
		{name: "comments give nothing", pieces: []string{":\n\n: ping\n\ndata: a\n:x\n\n"}, want: []seen{{"", "a"}}, comments: 3},
		{name: "names do not outlive their event", pieces: []string{"event: error\ndata: a\n\nevent: b\n\ndata: c\n\n"}, want: []seen{{"error", "a"}, {"", "c"}}},
		{name: "empty data is none", pieces: []string{"data:\n\ndata: \n\nevent: ping\n\n"}},
		{name: "other fields", pieces: []string{"id: 1\nretry: 5\nfoo: bar\nnocolon\ndata: a\n\n"}, want: []seen{{"", "a"}}},
		{name: "field error of old llama.cpp", pieces: []string{"error: {\"code\":500}\n\ndata: [DONE]\n\n"}, want: []seen{{"error", `{"code":500}`}, {"", "[DONE]"}}},
		{name: "byte order mark", pieces: []string{"\xef", "\xbb\xbfdata: a\n\n"}, want: []seen{{"", "a"}}},
		{name: "a later mark is part of a name", pieces: []string{"\n\xef\xbb\xbfdata: a\n\n"}},
		{name: "no blank line at the end", pieces: []string{"data: a\n\ndata: [DONE]\n"}, want: []seen{{"", "a"}, {"", "[DONE]"}}, tail: true},
		{name: "no line end at the end", pieces: []string{"data: a\n\ndata: [DO", "NE]"}, want: []seen{{"", "a"}, {"", "[DONE]"}}, tail: true},
		{name: "a comment at the end is no event", pieces: []string{"data: a\n\n: bye"}, want: []seen{{"", "a"}}, comments: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, comments, tail := split(t, c.pieces...)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if comments != c.comments || tail != c.tail {
				t.Errorf("comments %d, unterminated %v; want %d, %v", comments, tail, c.comments, c.tail)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine-len("data: "))
	got, _, _ := split(t, "data: "+long[:1000], long[1000:], "\n\n")
	if len(got) != 1 || got[0].Data != long {
		t.Fatalf("a line of exactly %d bytes did not come through", MaxLine)
	}
	for _, pieces := range [][]string{{"data: " + long, "y"}, {"data: " + long + "y\n"}, {"data: 123456\ndata: " + long + "\n"}} {
		var s Splitter
		var err error
		for _, p := range pieces {
			err = s.Feed([]byte(p), func(Event) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), "longer than 32 MiB") {
			t.Errorf("error = %v, want one that names the limit", err)
		}
		if again := s.Feed([]byte("\n\n"), nil); again != err {
			t.Errorf("after the error Feed gives %v", again)
		}
		if _, again := s.Close(nil); again != err {
			t.Errorf("after the error Close gives %v", again)
		}
	}
}

func TestEmitErrorStops(t *testing.T) {
	var s Splitter
	stop, calls := errors.New("enough"), 0
	emit := func(Event) error { calls++; return stop }
	if err := s.Feed([]byte("data: a\n\ndata: b\n\n"), emit); !errors.Is(err, stop) {
		t.Errorf("Feed: %v", err)
	}
	if _, err := s.Close(emit); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("Close: %v after %d calls, want the error after one", err, calls)
	}
}

func TestNoAllocations(t *testing.T) {
	var s Splitter
	n := 0
	emit := func(ev Event) error { n += len(ev.Data); return nil }
	pieces := [][]byte{
		[]byte("data: {\"a\":1}\n\ndata: {\"b\":"), []byte("2}\n"), []byte("\n: ping\n\nevent: x\ndata: a\ndata: b\n\n"),
	}
	got := testing.AllocsPerRun(100, func() {
		for _, p := range pieces {
			if err := s.Feed(p, emit); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got != 0 || n == 0 {
		t.Errorf("%v allocations for a round of events, want 0", got)
	}
}

// naive is the format's definition applied to the whole text at once.
func naive(text string) (events []seen, comments int64, unterminated bool) {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	name, data := "", []string(nil)
	flush := func() bool {
		joined := strings.Join(data, "\n")
		ev := seen{name, joined}
		name, data = "", nil
		if joined == "" {
			return false
		}
		events = append(events, ev)
		return true
	}
	for i, l := range lines {
		if l == "" {
			if i < len(lines)-1 {
				flush()
			}
			continue
		}
		field, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			comments++
		case "event":
			name = value
		case "data":
			data = append(data, value)
		case "error":
			name, data = "error", append(data, value)
		}
	}
	return events, comments, flush()
}

func FuzzSplitting(f *testing.F) {
	for _, s := range []string{"data: a\r\n\r\n: x\n\ndata: b\ndata: c", "\xef\xbb\xbfevent: error\rdata:\r\rerror: 1\n\r", "\r\n\n\r\rdata\n\n"} {
		f.Add([]byte(s), []byte{1, 3, 2})
	}
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		var pieces []string
		rest := text
		for _, c := range cuts {
			n := min(int(c)%9, len(rest))
			pieces, rest = append(pieces, string(rest[:n])), rest[n:]
		}
		pieces = append(pieces, string(rest))
		want, comments, tail := naive(string(text))
		got, gotComments, gotTail := split(t, pieces...)
		if d := cmp.Diff(want, got); d != "" || comments != gotComments || tail != gotTail {
			t.Errorf("%q in %q: comments %d, unterminated %v; want %d, %v; events (-want +got):\n%s",
				text, pieces, gotComments, gotTail, comments, tail, d)
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	one := []byte(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Two"},"finish_reason":null}],"usage":null}` + "\n\n")
	read := bytes.Repeat(one, 8)
	b.SetBytes(int64(len(read)))
	var s Splitter
	for b.Loop() {
		if err := s.Feed(read, func(Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
