package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/report"
)

// The self-test of this machine, whatever it finds: its document is what is
// published, every arrival lies within its bounds, and no error is larger than the
// load is long. A machine that takes the server away between its clock and its
// write makes a bound look broken: it may do so now and then.
func TestSelftest(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		const tries = 3
		for try := 1; ; try++ {
			code, out, errs := fermata(t, t.TempDir(), "selftest", "--quick", "-o", "json")
			if code != exitFine && code != exitUnclear {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if err := report.SelftestDocument.Validate([]byte(out)); err != nil {
				t.Fatal(err)
			}
			var s report.Selftest
			if err := json.Unmarshal([]byte(out), &s); err != nil {
				t.Fatal(err)
			}
			if len(s.Steps) == 0 || s.Dispatch == nil || (s.Verdict.ErrorNs == nil) != (code == exitUnclear) {
				t.Fatalf("exit code %d of %s", code, out)
			}
			for _, step := range s.Steps {
				if want := int64(step.Streams) * 20; step.Events != want || step.Failed != 0 || step.Early != 0 {
					t.Errorf("%d streams: %d events of %d, %d failed, %d stamped early", step.Streams, step.Events, want, step.Failed, step.Early)
				}
			}
			if s.Violations == 0 {
				return
			}
			if try == tries {
				t.Fatalf("%d arrivals outside their bounds, in the last of %d tries", s.Violations, tries)
			}
		}
	})
}

// ^C ends a self-test and everything that it started.
func TestSelftestInterrupted(t *testing.T) {
	p := start(t, t.TempDir(), "selftest")
	await(t, "its first step", func() bool { return strings.Contains(p.err.String(), "streams") })
	began := time.Now()
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
}

// One that is killed leaves neither processes nor a folder.
func TestSelftestKilled(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	left := func() int {
		all, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	p := start(t, t.TempDir(), "selftest")
	await(t, "a recording", func() bool {
		made, _ := filepath.Glob(filepath.Join(temp, "*", "1", "*"))
		return len(made) > 0
	})
	p.signal(syscall.SIGKILL)
	p.exit()
	await(t, "its folder to go", func() bool { return left() == 0 })
	time.Sleep(100 * time.Millisecond) // nobody makes it anew
	if n := left(); n != 0 {
		t.Errorf("%d folders are left", n)
	}
}
