package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A typist sits at a real terminal (a pseudo-terminal of the kernel) at which a
// process runs.
type typist struct {
	t       *testing.T
	master  *os.File
	slave   *os.File
	before  *unix.Termios
	cmd     *exec.Cmd
	ended   chan int // its exit code
	mu      sync.Mutex
	written bytes.Buffer
}

// sitDown starts the command at a terminal of 80 columns, which controls it.
// Standard output goes elsewhere.
func sitDown(t *testing.T, dir string, environ []string, args ...string) *typist {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	p := &typist{t: t, master: master, slave: slave, ended: make(chan int, 1)}
	if p.before, err = unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command("fermata", args...)
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stderr = dir, slave, slave
	p.cmd.Env = append(os.Environ(), environ...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading, waiting sync.WaitGroup
	reading.Go(p.read)
	waiting.Go(func() {
		_ = p.cmd.Wait()
		p.ended <- p.cmd.ProcessState.ExitCode()
	})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		waiting.Wait()
		slave.Close() // the last one: the reader meets the end
		reading.Wait()
		master.Close()
	})
	return p
}

func (p *typist) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.written.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// seen is all that came to the screen.
func (p *typist) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

func (p *typist) press(key string) {
	p.t.Helper()
	if _, err := p.master.WriteString(key); err != nil {
		p.t.Fatal(err)
	}
}

// leaves waits for the end, and checks that the terminal is as it was: its modes,
// and a cursor that can be seen.
func (p *typist) leaves() (code int) {
	p.t.Helper()
	select {
	case code = <-p.ended:
	case <-time.After(3 * time.Minute):
		p.t.Fatalf("it does not end; on the screen: %q", p.seen())
	}
	const last = "(it has left)" // what is written later is read later: then all is read
	if _, err := p.slave.WriteString(last); err != nil {
		p.t.Fatal(err)
	}
	p.awaits(last)
	after, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	if *after != *p.before {
		p.t.Errorf("the terminal's modes are %+v, and were %+v", *after, *p.before)
	}
	text := p.seen()
	if strings.LastIndex(text, "\x1b[?25h") < strings.LastIndex(text, "\x1b[?25l") {
		p.t.Error("the cursor stays hidden")
	}
	for _, query := range []string{"\x1b[c", "\x1b[6n", "$p", "\x1b[?1049h", "\x1b[>q", "\x1b]11;?", "\x1b[?2004h"} {
		if strings.Contains(text, query) {
			p.t.Errorf("it asks the terminal %q, or takes all of the screen", query)
		}
	}
	return code
}

var atATerminal = []string{"TERM=xterm-256color", "NO_COLOR=", "COLUMNS="}

// watched starts a run that would go on for minutes, at a terminal.
func watched(t *testing.T, environ []string, more ...string) (*typist, *scripted, string) {
	t.Helper()
	server := newScripted(t, endless)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompts.jsonl"), []byte(`{"prompt": "hello there"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return sitDown(t, dir, environ, append([]string{
		"run", server.URL, "--model", "a", "--rate", "50", "--requests", "100000", "--warmup", "0", "--dataset", "prompts.jsonl", "--out", "run",
	}, more...)...), server, filepath.Join(dir, "run")
}

func (p *typist) awaits(what string) {
	p.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(p.seen(), what); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("there is no %q on the screen: %q", what, p.seen())
		}
	}
}

// On a terminal the view shows how the run goes; ^C stops it once, notices stand
// above the view, and the screen is left with the notices alone.
func TestLiveView(t *testing.T) {
	t.Parallel()
	p, _, run := watched(t, atATerminal)
	for _, what := range []string{"offered", "in flight", "TTFT", "TBT", "F ≥ 0.9", "at 25 ms", "measured", "of 100,000"} {
		p.awaits(what)
	}
	p.press("\x03")
	if code := p.leaves(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	contains(t, p.seen(), "stopping: waiting up to 30 s for answers; ^C again cuts them", "recorded in run")
	if strings.Count(p.seen(), "^C") > strings.Count(p.seen(), "; ^C again") {
		t.Errorf("the key that was pressed stands on the screen: %q", p.seen())
	}
	if tail := p.seen()[strings.LastIndex(p.seen(), "recorded in run"):]; strings.Contains(tail, "TTFT") {
		t.Errorf("the view is drawn after the end: %q", tail)
	}
	intact(t, run)
}

// A second ^C cuts, and SIGTERM does at once.
func TestLiveViewIsCut(t *testing.T) {
	t.Parallel()
	p, _, run := watched(t, atATerminal)
	p.awaits("TTFT")
	p.press("\x03")
	p.awaits("stopping")
	p.press("\x03")
	if code := p.leaves(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	intact(t, run)

	p, _, run = watched(t, atATerminal)
	p.awaits("TTFT")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.leaves(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	intact(t, run)
}

// Where a view is not welcome nothing but lines is written, not even a colour.
func TestPlainProgress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ []string
		flag    string
	}{
		{append([]string{}, "TERM=dumb", "NO_COLOR="), "--progress=auto"},
		{append([]string{}, "TERM=xterm", "NO_COLOR=1"), "--progress=auto"},
		{atATerminal, "--progress=plain"},
		{atATerminal, "--quiet"},
	} {
		p, server, run := watched(t, c.environ, c.flag)
		begun(t, server, run)
		p.press("\x03")
		if code := p.leaves(); code != exitInterrupted {
			t.Errorf("%v: exit code %d", c, code)
		}
		if text := p.seen(); strings.Contains(text, "\x1b") || strings.Contains(text, "TTFT") {
			t.Errorf("%v: %q", c, text)
		}
	}
}
