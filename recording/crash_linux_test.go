package recording

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestMain also plays the process that is killed: it runs this binary again.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FERMATA_TEST_VICTIM"); dir != "" {
		if err := victim(dir, os.Getenv("FERMATA_TEST_WRITE") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const victimStreams = 8

// openTally counts acknowledged arrivals in a mapping that outlives the process.
func openTally(path string) ([]atomic.Int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(8 * victimStreams); err != nil {
		return nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 8*victimStreams, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&mem[0])), victimStreams), nil
}

// victim records until it is killed: streams of one long request each, whose
// arrivals carry their own number, beside short requests that end.
func victim(dir string, write bool) error {
	tally, err := openTally(dir + ".tally")
	if err != nil {
		return err
	}
	r, err := create(dir, Meta{Tool: "victim"}, journalOptions{size: 64 << 10, write: write, clocks: func() (int64, int64) { return 1, 2 }})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for s := range int64(victimStreams) {
		if err := r.Begin(&Trace{Index: s}); err != nil {
			return err
		}
		go func() {
			for n := int64(1); ; n++ {
				if err := r.Arrive(s, 0, Arrival{At: n, Tokens: 1, Read: int32(n), TextBytes: 3, Text: true}); err != nil {
					errs <- err
					return
				}
				tally[s].Store(n)
				short := Trace{Index: victimStreams*n + s, Due: n, Outcome: OK}
				if err := errors.Join(r.Begin(&short), r.End(&short)); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	fmt.Println("recording")
	return <-errs
}

// Whatever the recorder acknowledged before kill -9 is there afterwards.
func TestKill(t *testing.T) {
	for _, write := range []string{"", "", "yes"} {
		dir := filepath.Join(t.TempDir(), "run")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FERMATA_TEST_VICTIM="+dir, "FERMATA_TEST_WRITE="+write)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("the victim said %q: %v", line, err)
		}
		tally, err := openTally(dir + ".tally")
		must(t, err)
		for tally[0].Load() < 2000 { // some segments
			time.Sleep(time.Millisecond)
		}
		if _, err := Recover(dir); err == nil {
			t.Error("Recover took a journal whose writer lives")
		}
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the victim ended: %v", err)
		}
		report, err := Recover(dir)
		must(t, err)
		if len(report.Damages) != 0 {
			t.Errorf("damages: %v", report.Damages)
		}
		meta, got := readAll(t, dir)
		if meta.Tool != "victim" || meta.Interrupted == "" {
			t.Errorf("meta %+v", meta)
		}
		ended := make(map[int64]int64) // short requests by stream
		for _, g := range got {
			if g.Outcome == OK {
				ended[g.Index%victimStreams]++
			}
		}
		for s := range int64(victimStreams) {
			var g Trace
			for _, c := range got {
				if c.Index == s {
					g = c
				}
			}
			acknowledged := tally[s].Load()
			// One more may have been journalled and not yet been counted.
			if n := int64(g.Len()); n < acknowledged || n > acknowledged+1 || ended[s] < acknowledged-1 {
				t.Errorf("stream %d: recovered %d arrivals and %d requests of %d acknowledged", s, n, ended[s], acknowledged)
			}
			for i, d := range g.DeltaNs {
				if d != 1 || g.Read[i] != int32(i+1) {
					t.Fatalf("stream %d, arrival %d: gap %d, read %d", s, i, d, g.Read[i])
				}
			}
		}
	}
}

// A full disk is one clear error, and what was acknowledged before it is kept.
func TestFullDisk(t *testing.T) {
	for _, write := range []bool{false, true} {
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
			t.Skipf("mounting a small tmpfs: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(mount, syscall.MNT_DETACH) })
		dir := filepath.Join(mount, "run")
		r, err := create(dir, Meta{}, journalOptions{size: 128 << 10, write: write, clocks: func() (int64, int64) { return 1, 2 }})
		must(t, err)
		must(t, r.Begin(&Trace{Index: 1}))
		var acknowledged int64
		for err == nil && acknowledged < 1<<20 {
			if err = r.Arrive(1, 0, Arrival{At: acknowledged, Tokens: 1}); err == nil {
				acknowledged++
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), dir) {
			t.Fatalf("write %v: after %d arrivals: %v", write, acknowledged, err)
		}
		if acknowledged < 20_000 {
			t.Errorf("write %v: only %d arrivals fitted", write, acknowledged)
		}
		if again := r.End(&Trace{Index: 1}); again == nil || again.Error() != err.Error() {
			t.Errorf("write %v: the next error is %v", write, again)
		}
		if err := r.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "fermata recover "+dir) {
			t.Errorf("write %v: closing on the full disk: %v", write, err)
		}
		must(t, syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
		report, err := Recover(dir)
		must(t, err)
		if report.Arrivals != acknowledged || report.Incomplete != 1 {
			t.Errorf("write %v: report %+v, want %d arrivals", write, report, acknowledged)
		}
	}
}
