package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fermata/internal/calm"
)

// smallDisk is the folder of a disk that holds 10 MiB: two segments of a journal.
func smallDisk(t testing.TB) string {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("fermata-test", disk, "tmpfs", 0, "size=10m"); err != nil {
		t.Skipf("a small disk must be mounted for this test, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// A full disk ends a run with one error that says where the recording is and how
// to finish it; nothing that was recorded is lost.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t)
	// Answers of half a mebibyte each, which are kept: the third segment of the
	// journal does not fit.
	server := newScripted(t, "models: {a: {ttft: 5ms, gap: 1ms, tokens: 128, text: \""+strings.Repeat("long ", 800)+"\"}}")
	run := filepath.Join(disk, "run")
	code, out, said := fermata(t, t.TempDir(), "run", server.URL, "--concurrency", "2", "--requests", "1000", "--warmup", "0",
		"--input", "32", "--output", "128", "--keep-text", "--out", run)
	if code != exitFailed || out != "" {
		t.Errorf("exit code %d, on standard output %q", code, out)
	}
	contains(t, said, "no space left on device", filepath.Join(run, "journal"), "`fermata recover "+run+"` finishes it")
	if n := strings.Count(said, "fermata: "); n != 1 {
		t.Errorf("%d errors:\n%s", n, said)
	}
	if strings.Contains(said, "goroutine") {
		t.Errorf("it panicked:\n%s", said)
	}

	// Still full: recover says the same, and the journal stays.
	if err := fill(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	code, _, said = fermata(t, disk, "recover", "run")
	if code != exitFailed || !strings.Contains(said, "no space left on device") {
		t.Errorf("recover on a full disk: exit code %d, %s", code, said)
	}
	if err := unix.Mount("fermata-test", disk, "tmpfs", unix.MS_REMOUNT, "size=200m"); err != nil {
		t.Fatal(err)
	}
	code, _, said = fermata(t, disk, "recover", "run")
	if code != exitFine || !strings.Contains(said, "recovered ") {
		t.Fatalf("recover: exit code %d, %s", code, said)
	}
	// 8 MiB of segments hold the texts of some twelve answers.
	if r := resultOf(t, run); r.Outcomes["ok"] < 5 {
		t.Errorf("%v after recovery", r.Outcomes)
	}
	for name, want := range map[string]bool{"requests.parquet": true, "text.parquet": true, "journal": false} {
		if _, err := os.Stat(filepath.Join(run, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A disk that others fill does not end a run for which the journal has reserved
// enough: closing the journal gives that space back for the files made from it.
func TestReservedDisk(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		disk := smallDisk(t)
		server := newScripted(t, "models: {a: {ttft: 20ms, gap: 10ms, tokens: max}}")
		run := filepath.Join(disk, "run")
		p := start(t, t.TempDir(), "run", server.URL, "--rate", "50", "--requests", "40", "--warmup", "0", "--drain", "quiet",
			"--input", "32", "--output", "16", "--out", run)
		await(t, "the journal", func() bool {
			all, _ := filepath.Glob(filepath.Join(run, "journal", "*.log"))
			return len(all) >= 2 // the next segment is made ahead
		})
		if err := fill(filepath.Join(disk, "ballast")); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != exitFine && code != exitUnclear {
			t.Fatalf("exit code %d\n%s", code, &p.err)
		}
		if r := resultOf(t, run); r.Load.Measured != 40 || r.Outcomes["ok"] != 40 {
			t.Errorf("%+v", r.Outcomes)
		}
	})
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close()
	if strings.Contains(err.Error(), "no space left") {
		return nil
	}
	return err
}
