package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fermata/internal/place"
)

// A launch is a server that a command starts. Its owner stops it.
type launch struct {
	Command string // for sh
	URL     string
	Health  string // path that answers 200 once the server is ready
	Ready   time.Duration
	Log     string // file for what the command says
}

// launched is one that runs.
type launched struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed once the command has ended
	err   error         // how, after that
}

const (
	healthEvery  = 200 * time.Millisecond
	stopPatience = 30 * time.Second // for a server that was asked to end
	logShown     = 400              // bytes of a log's end that an error repeats
)

// A launchError says that a server did not come up with its settings, which is a
// finding about those.
type launchError struct{ text string }

func (e launchError) Error() string { return e.text }

// start starts the server and waits until it is ready. Whatever was started is
// ended again where it does not become ready.
func (l launch) start(ctx context.Context) (*launched, error) {
	if err := nobodyThere(l.URL); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(l.Log), 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for the server's log: %w", err)
	}
	log, err := os.Create(l.Log)
	if err != nil {
		return nil, fmt.Errorf("making the server's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command("sh", "-c", l.Command)
	cmd.Stdout, cmd.Stderr = log, log
	place.Group(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	r := &launched{cmd: cmd, log: l.Log, ended: make(chan struct{})}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	if err := l.await(ctx, r); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// await waits for the server's health.
func (l launch) await(ctx context.Context, r *launched) error {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	late := time.NewTimer(l.Ready)
	defer late.Stop()
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	said := "nothing listened"
	for {
		select {
		case <-ctx.Done():
			return ErrInterrupted
		case <-r.ended:
			return launchError{fmt.Sprintf("the server ended before it was ready (%s): %s", exitText(r.err), r.lastWords())}
		case <-late.C:
			return launchError{fmt.Sprintf("the server was not ready within %s: %s at %s; its log is %s", l.Ready, said, l.Health, l.Log)}
		case <-tick.C:
		}
		answer, err := client.Get(strings.TrimRight(l.URL, "/") + l.Health)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16))
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		said = "it answered " + answer.Status
	}
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// lastWords are the end of the log, on one line.
func (r *launched) lastWords() string {
	data, err := os.ReadFile(r.log)
	if err != nil {
		return "its log cannot be read"
	}
	data = bytes.TrimSpace(data)
	data = data[max(0, len(data)-logShown):]
	if len(data) == 0 {
		return "it said nothing"
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "")), " ")
}

// stop ends the server and what it started, with patience at first.
func (r *launched) stop() error {
	_ = place.EndGroup(r.cmd, false) // it may have ended by itself
	select {
	case <-r.ended:
	case <-time.After(stopPatience):
	}
	_ = place.EndGroup(r.cmd, true) // what is left of its group
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopPatience):
		return fmt.Errorf("the server (process %d) does not end", r.cmd.Process.Pid)
	}
}

// alive says that the server still runs.
func (r *launched) alive() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// nobodyThere refuses a URL at which something listens already: its answers would
// be taken for the server's.
func nobodyThere(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no URL of a server that a command could start", text)
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return nil
	}
	c.Close()
	return fmt.Errorf("something listens at %s already, and its answers would be taken for those of the server that is to be started: end it, or give another port", address)
}

// freePort is one of this machine that nothing listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
