package experiment

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/schedule"
	"fermata/spec"
	"fermata/workload"
)

// A given row is a request of a generated trace.
type givenRow struct {
	at            int64 // ns
	input, output int32
}

var traceFormats = map[string]struct {
	head string
	unit int64 // ns that its times are whole numbers of
	row  func(g givenRow) string
}{
	"azure": {"TIMESTAMP,ContextTokens,GeneratedTokens\n", 100, func(g givenRow) string {
		return time.Date(2024, 5, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(g.at)).Format("2006-01-02 15:04:05.0000000") + fmt.Sprintf(",%d,%d\n", g.input, g.output)
	}},
	"burstgpt": {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n", 1e9, func(g givenRow) string {
		return fmt.Sprintf("%d,ChatGPT,%d,%d,%d,Conversation log\n", g.at/1e9, g.input, g.output, g.input+g.output)
	}},
	"mooncake": {"", 1e6, func(g givenRow) string {
		return fmt.Sprintf(`{"timestamp":%d,"input_length":%d,"output_length":%d,"hash_ids":[%d]}`+"\n", g.at/1e6, g.input, g.output, g.at%7)
	}},
	"own": {"at_s,prompt_tokens,output_tokens\n", 1, func(g givenRow) string {
		return fmt.Sprintf("%d.%09d,%d,%d\n", g.at/1e9, g.at%1e9, g.input, g.output)
	}},
	"lines": {"", 1, func(g givenRow) string {
		return fmt.Sprintf(`{"at_s":%d.%09d,"prompt_tokens":%d,"output_tokens":%d}`+"\n", g.at/1e9, g.at%1e9, g.input, g.output)
	}},
}

// The arrivals of a trace in any format are its rows in order of time, divided by the
// speed-up to the nearest ns; those of a clock begin with the first row, or an
// earlier one.
func TestGivenArrivals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for name, format := range traceFormats {
		for range 6 {
			rows := make([]givenRow, 30+r.IntN(1000))
			for i := range rows {
				rows[i] = givenRow{1e9 + r.Int64N(3600e9)/format.unit*format.unit, 1 + r.Int32N(300), 1 + r.Int32N(90)}
			}
			text := format.head
			for _, g := range rows {
				text += format.row(g)
			}
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			slices.SortStableFunc(rows, func(a, b givenRow) int { return cmp.Compare(a.at, b.at) })
			if zero := rows[0].at; name == "azure" {
				for i := range rows {
					rows[i].at -= zero
				}
			}
			speedup := []float64{0, 0.25, 3, 1000}[r.IntN(4)]
			s := &spec.Run{Seed: 1, Schedule: schedule.Options{File: path, Speedup: speedup}}
			_, arrivals, err := open(s)
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range rows {
				if speedup > 0 {
					g.at = int64(math.Round(float64(g.at) / speedup))
				}
				want := schedule.Arrival{Index: int64(i), Due: g.at, Phase: schedule.Measured, PromptTokens: g.input, OutputTokens: g.output}
				if got, ok := arrivals.Next(0); !ok || got != want {
					t.Fatalf("%s at %v: arrival %d is %+v, want %+v", name, speedup, i, got, want)
				}
			}
			if a, ok := arrivals.Next(0); ok {
				t.Errorf("%s: one more: %+v", name, a)
			}
		}
	}
}

// A trace of 6 million rows is driven, or described, in less than 150 MiB of
// memory: the most that a process of its own ever had.
func TestMemoryOfALargeTrace(t *testing.T) {
	const memoryMax = 150 << 10 // KiB
	if path := os.Getenv("FERMATA_TRACE"); path != "" {
		s := &spec.Run{Seed: 1, Schedule: schedule.Options{File: path, Speedup: 4}}
		if os.Getenv("FERMATA_TRACE_SHOWN") != "" {
			s = &spec.Run{Seed: 1, Workload: workload.Options{Dataset: path}}
			_, summary, err := DescribeWorkload(s, 0)
			if err != nil || summary.Requests != largeTrace {
				t.Fatalf("described %d requests: %v", summary.Requests, err)
			}
		}
		_, arrivals, err := open(s)
		if err != nil {
			t.Fatal(err)
		}
		defer holdMemory()()
		n := 0
		for _, ok := arrivals.Next(0); ok; _, ok = arrivals.Next(0) {
			n++
		}
		if n != largeTrace {
			t.Errorf("%d arrivals", n)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, most, _ := strings.Cut(string(status), "VmHWM:")
		kib, err := strconv.Atoi(strings.Fields(most)[0])
		t.Logf("took %.1f MiB", float64(kib)/1024)
		if err != nil || kib > memoryMax {
			t.Errorf("%d KiB of memory, want at most %d", kib, memoryMax)
		}
		return
	}
	if os.Getenv("FERMATA_SLOW") == "" {
		t.Skip("FERMATA_SLOW is not set")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("this system does not tell the most memory that a process had")
	}
	for name := range traceFormats {
		path := writeTrace(t, name)
		for _, shown := range []string{"", "1"} {
			t.Run(name+shown, func(t *testing.T) {
				child := exec.Command(os.Args[0], "-test.run=^TestMemoryOfALargeTrace$", "-test.v")
				child.Env = append(os.Environ(), "FERMATA_TRACE="+path, "FERMATA_TRACE_SHOWN="+shown)
				out, err := child.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				_, said, _ := strings.Cut(string(out), "took ")
				t.Logf("took %s", strings.SplitN(said, "\n", 2)[0])
			})
		}
	}
}

const largeTrace = 6_000_000 // rows

// writeTrace writes that many rows, in order of time.
func writeTrace(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	out.WriteString(traceFormats[name].head)
	r := rand.New(rand.NewPCG(6, 1))
	at := int64(0)
	for range largeTrace {
		at += int64(r.ExpFloat64() * 20e6)
		out.WriteString(traceFormats[name].row(givenRow{at, 1 + r.Int32N(4000), 1 + r.Int32N(400)}))
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Rows that a run leaves out are counted aloud.
func TestGivenNotes(t *testing.T) {
	dir := t.TempDir()
	azure, own := filepath.Join(dir, "azure.csv"), filepath.Join(dir, "own.csv")
	for path, text := range map[string]string{
		azure: "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,5,5\n2024-05-10 00:00:01,5,0\n2024-05-10 00:00:02,5,9\n2024-05-10 00:00:03,0,9\n2024-05-10 00:00:04,5,9\n",
		own:   "at_s\n0\n1\n2\n3\n4\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := "2 rows of " + azure + " are of requests that failed, and are left out"
	for _, c := range []struct {
		o    schedule.Options
		want []string
	}{
		{schedule.Options{File: azure}, []string{failed}},
		{schedule.Options{File: azure, Requests: 2}, []string{failed, "of 3 given times the first 2 are used, enough for 2 measured requests; 1 are left out"}},
		{schedule.Options{File: own}, nil},
		{schedule.Options{File: own, Requests: 2, Warmup: "1"}, []string{"of 5 given times the first 3 are used, enough for 2 measured requests; 2 are left out"}},
		{schedule.Options{File: own, Duration: 2 * time.Second}, []string{"of 5 given times the first 2 are used, enough for a measured phase of 2s; 3 are left out"}},
		{schedule.Options{Rate: 4}, nil},
	} {
		s := &spec.Run{Seed: 1, Schedule: c.o}
		_, arrivals, err := open(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := givenNotes(s, arrivals); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	s := &spec.Run{Seed: 1, Schedule: schedule.Options{File: azure}, Workload: workload.Options{MaxInput: 1000}}
	if _, _, err := open(s); err == nil || !strings.Contains(err.Error(), "the workload's filters (max_input) choose among others: give the file as workload.dataset (--dataset) instead") {
		t.Errorf("filters beside a trace: %v", err)
	}
	for _, c := range []struct {
		w    workload.Options
		want string
	}{
		{workload.Options{MinInput: 20, MaxInput: 30, Input: "7"}, "the workload's filters (min_input, max_input) choose"}, // not that they leave none
		{workload.Options{Input: "7", Output: "3"}, "so that workload.input (--input) and workload.output (--output) would do nothing"},
		{workload.Options{Output: "8"}, "so that workload.output (--output) would do nothing"},
		{workload.Options{Lengths: "lmsys"}, "so that workload.lengths (--lengths) would do nothing"},
		{workload.Options{}.Filled(), ""}, // as a saved run file has it
	} {
		s.Workload = c.w
		switch _, _, err := open(s); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v beside a trace: %v, want %s", c.w, err, c.want)
		}
	}
	half := filepath.Join(t.TempDir(), "half.csv")
	if err := os.WriteFile(half, []byte("at_s,prompt_tokens,output_tokens\n0,5,0\n1,6,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Schedule.File, s.Workload = half, workload.Options{Output: "8"} // which the first row needs
	if _, _, err := open(s); err != nil {
		t.Error(err)
	}
	s.Workload = workload.Options{MaxInput: 1000}
	s.Schedule.File = own // whose lengths are drawn
	if _, _, err := open(s); err != nil {
		t.Error(err)
	}
}

// A question that is asked twice would count twice in the correction.
func TestMetricAskedTwice(t *testing.T) {
	for _, twice := range [][]string{{"e2e.mean", "ttft_due.p99", "e2e.mean"}, {"ttft.p99", "ttft_due.p99"}} {
		_, err := Comparison{Sides: []string{"a", "b"}, Metrics: twice}.Compare()
		if want := "--metric " + twice[len(twice)-1] + " is asked twice"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", twice, err)
		}
	}
}

// A window that was cut from a trace whose times have a zero of their own begins
// late, and that is said before it is waited for.
func TestLateBeginning(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	burst := write("burst.csv", traceFormats["burstgpt"].head+"100000,ChatGPT,5,7,12,Conversation log\n100003,ChatGPT,5,7,12,Conversation log\n")
	moon := write("moon.jsonl", `{"timestamp":61000,"input_length":5,"output_length":7,"hash_ids":[1]}`+"\n")
	day := write("azure.csv", traceFormats["azure"].head+"2024-05-10 12:00:00.0000000,5,7\n")
	for _, c := range []struct {
		s    spec.Run
		want string // nothing where it is early
	}{
		{spec.Run{Schedule: schedule.Options{File: burst}}, "27h46m40s"},
		{spec.Run{Workload: workload.Options{Dataset: burst}}, "27h46m40s"},
		{spec.Run{Schedule: schedule.Options{File: burst, Speedup: 1000}}, "1m40s"},
		{spec.Run{Schedule: schedule.Options{File: burst, Speedup: 2000}}, ""},
		{spec.Run{Schedule: schedule.Options{File: moon}}, "1m1s"},
		{spec.Run{Schedule: schedule.Options{File: day}}, ""},
		{spec.Run{Schedule: schedule.Options{Rate: .01, Requests: 5}}, ""},
	} {
		_, arrivals, err := open(&c.s)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(givenNotes(&c.s, arrivals), "\n")
		if late := strings.Contains(notes, "nothing is sent for "+c.want+": "); late != (c.want != "") {
			t.Errorf("%+v: %q, want %s", c.s.Schedule, notes, c.want)
		}
	}
}
