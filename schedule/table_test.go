package schedule

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// randomRows are given times as a file may hold them: in no order, several at once,
// some with lengths and sessions.
func randomRows(r *rand.Rand, n int) []Arrival {
	rows := make([]Arrival, n)
	for i := range rows {
		rows[i] = Arrival{Due: r.Int64N(int64(n)) * 1_000_003}
		if i%3 > 0 {
			rows[i].Due = r.Int64N(1e12)
		}
		if i > n/3 {
			rows[i].PromptTokens, rows[i].OutputTokens = r.Int32N(9000), r.Int32N(900)
		}
		if i > n/2 && r.IntN(2) == 0 {
			rows[i].Session = fmt.Sprint("s", r.IntN(n/4))
		}
	}
	return rows
}

func csvOf(rows []Arrival) string {
	var b strings.Builder
	b.WriteString("at_s,prompt_tokens,output_tokens,session\n")
	for _, a := range rows {
		fmt.Fprintf(&b, "%d.%09d,%d,%d,%s\n", a.Due/1e9, a.Due%1e9, a.PromptTokens, a.OutputTokens, a.Session)
	}
	return b.String()
}

func jsonlOf(rows []Arrival) string {
	var b strings.Builder
	for _, a := range rows {
		fmt.Fprintf(&b, `{"at_s":%d.%09d,"prompt_tokens":%d,"output_tokens":%d,"session":%q}`+"\n", a.Due/1e9, a.Due%1e9, a.PromptTokens, a.OutputTokens, a.Session)
	}
	return b.String()
}

// What a file gives is what a plain sort of its rows gives, divided by the speed-up
// to the nearest ns.
func TestGivenRowsAreTheFile(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for range 20 {
		rows := randomRows(r, 20+r.IntN(2000))
		o := Options{Speedup: []float64{0, 0.3, 1, 2, 7}[r.IntN(5)], Requests: []int64{0, 1, 17, 5000}[r.IntN(4)]}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b Arrival) int { return int(max(-1, min(1, a.Due-b.Due))) })
		if o.Requests > 0 {
			want = want[:min(len(want), int(o.Requests))]
		}
		for i := range want {
			want[i].Index, want[i].Phase = int64(i), Measured
			if o.Speedup > 0 {
				want[i].Due = int64(math.Round(float64(want[i].Due) / o.Speedup))
			}
		}
		for name, text := range map[string]string{"rows.csv": csvOf(rows), "rows.jsonl": jsonlOf(rows)} {
			o.File = write(t, name, text)
			if diff := cmp.Diff(want, drain(mustNew(t, o, 1))); diff != "" {
				t.Fatalf("%s, %+v: %s", name, o, diff)
			}
		}
	}
}

// A row in order takes the memory of its digits: 44 million rows are half a GB.
func TestGivenRowsAreSmall(t *testing.T) {
	const rows = 500_000
	in, out := io.Pipe()
	go func() {
		r := rand.New(rand.NewPCG(7, 2))
		io.WriteString(out, "at_s,prompt_tokens,output_tokens\n")
		for i := range rows {
			fmt.Fprintf(out, "%d.%06d,%d,%d\n", i/50, i%50*20_000+r.IntN(20_000), 1+r.IntN(4000), 1+r.IntN(400))
		}
		out.Close()
	}()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	table, err := readRows(in)
	if err != nil {
		t.Fatal(err)
	}
	each := float64(heap()-before) / rows
	if table.rows() != rows || each > 12 {
		t.Errorf("%d rows of %.1f bytes, want %d of at most 12", table.rows(), each, rows)
	}
	runtime.KeepAlive(table)
}

func TestLongLine(t *testing.T) {
	text := "{\"at_s\":1}\n{\"at_s\":2,\"session\":\"" + strings.Repeat("x", lineMax) + "\"}\n"
	if _, err := readRows(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 2: longer than 16777216 bytes") {
		t.Errorf("%v", err)
	}
}

// The reason of a window's end is the one that ended it.
func TestWindowWhy(t *testing.T) {
	file := write(t, "rows.csv", "at_s\n0\n1\n2\n3\n")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Rate: 10, Requests: 5}, NextWasDue},
		{Options{Rate: 10, Duration: time.Second}, TimeWasUp},
		{Options{Kind: Closed, Concurrency: 1, Requests: 5}, LastHadEnded},
		{Options{Kind: Closed, Concurrency: 1, Duration: time.Second}, TimeWasUp},
		{Options{Kind: All, Requests: 5}, LastHadEnded},
		{Options{File: file}, GivenRanOut},
		{Options{File: file, Requests: 3}, NextWasDue},
		{Options{File: file, Requests: 30}, GivenRanOut},
		{Options{File: file, Duration: 2 * time.Second}, TimeWasUp},
		{Options{File: file, Duration: time.Minute}, GivenRanOut},
	} {
		s := mustNew(t, c.o, 1)
		for i := range int64(100) {
			if a, ok := s.Next(i * 1e8); !ok || a.Phase == Drain {
				break
			}
		}
		if why := s.WindowWhy(); why != c.want || !Planned(why) {
			t.Errorf("%+v: %q, want %q", c.o, why, c.want)
		}
	}
}
