package workload

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	memoryMax  = 150 << 20
	corruptRow = 17_345
)

// writeBig writes lines until they are 200 MB, line 17,345 of them corrupt.
func writeBig(t *testing.T, head string, row func(i int) string, corrupt string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	written, _ := io.WriteString(out, head)
	for line := strings.Count(head, "\n") + 1; written < 200<<20; line++ {
		text := row(line)
		if line == corruptRow {
			text = corrupt
		}
		n, err := io.WriteString(out, text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		written += n
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A data set of 200 MB takes less than 150 MiB of memory, a trace of the shortest rows, of which it
// has 5.8 million, too: measured as the most that a process of its own ever had, which reads all of it and asks some.
func TestMemoryOfALargeDataSet(t *testing.T) {
	if path := os.Getenv("FERMATA_BIG"); path != "" {
		askBig(t, path)
		return
	}
	if os.Getenv("FERMATA_SLOW") == "" {
		t.Skip("FERMATA_SLOW is not set")
	}
	trace := time.Date(2023, 11, 16, 18, 15, 46, 0, time.UTC)
	text := strings.Repeat("lorem ipsum dolor ", 30)
	for name, c := range map[string]struct {
		head, corrupt string
		row           func(i int) string
	}{
		"texts": {"", `{"prompt":"cut o`, func(i int) string { return fmt.Sprintf(`{"prompt":"%d %s","output_tokens":%d}`, i, text, 1+i%500) }},
		"short": {"", `{"prompt":`, func(i int) string { return fmt.Sprintf(`{"prompt":"question %d: %s","at_s":%d.5}`, i, text[:60], i) }},
		"trace": {"TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:15:46,many,4", func(i int) string {
			return trace.Add(time.Duration(i)*137*time.Millisecond+time.Duration(i*7919%1000)*time.Microsecond*100).Format("2006-01-02 15:04:05.0000000") + fmt.Sprintf(",%d,%d", 1+i*7919%8000, 1+i*31%90)
		}},
		"hashes": {"", `{"timestamp":`, func(i int) string {
			return fmt.Sprintf(`{"timestamp":%d,"input_length":600,"output_length":9,"hash_ids":[%d,%d]}`, i, i, i+1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeBig(t, c.head, c.row, c.corrupt)
			if _, err := Open(Options{Dataset: path}, 1); err == nil || !strings.Contains(err.Error(), "line 17345: ") {
				t.Errorf("the corrupt line: %v", err)
			}
			child := exec.Command(os.Args[0], "-test.run=^TestMemoryOfALargeDataSet$", "-test.v")
			child.Env = append(os.Environ(), "FERMATA_BIG="+path)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			_, said, _ := strings.Cut(string(out), "took ")
			t.Logf("took %s", strings.SplitN(said, "\n", 2)[0])
		})
	}
}

func askBig(t *testing.T, path string) {
	w, err := Open(Options{Dataset: path, SkipBad: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s := w.Skipped(); s.Bad != 1 || !strings.HasPrefix(s.FirstBad, "line 17345: ") {
		t.Errorf("skipped %+v", s)
	}
	for i := range int64(20_000) {
		if _, ok := w.At(i*37%w.Rows(), 0, 0); !ok {
			t.Fatalf("request %d: %v", i, w.Err())
		}
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	most := int64(use.Maxrss)
	if info, err := os.Stat("/proc/self/status"); err == nil && info.Mode().IsRegular() {
		most *= 1024 // Linux counts in KiB, macOS in bytes
	}
	t.Logf("took %.1f MiB for %d rows", float64(most)/(1<<20), w.Rows())
	if most > memoryMax {
		t.Errorf("%d bytes of memory, want at most %d", most, memoryMax)
	}
}
