package beacon

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"fermata/internal/place"
)

// memoryLimit keeps a beacon that collects no garbage within bounds.
const memoryLimit = 2 << 30

// Main is a beacon as a process of its own: it says on out where it listens, and
// answers each line of in with a report. It ends when in does, so that it does not
// outlive whoever started it.
func Main(in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(max(3, runtime.GOMAXPROCS(0))) // the loop keeps one
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("beacon: listening: %w", err)
	}
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return fmt.Errorf("beacon: saying where it listens: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	asked := make(chan chan Report)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, ln, asked) }()
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- struct{}{}
		}
	}()
	for {
		select {
		case err := <-served:
			return err
		case _, ok := <-lines:
			if !ok {
				stop()
				return <-served
			}
		}
		answer := make(chan Report, 1)
		select {
		case asked <- answer:
		case err := <-served:
			return err
		}
		r := <-answer
		if err := writeReport(out, &r); err != nil {
			return fmt.Errorf("beacon: reporting: %w", err)
		}
	}
}

// A Process is a beacon that runs by itself. Start makes it.
type Process struct {
	Address  string // where it listens
	Cores    bool   // it has the cores that were asked for
	Realtime bool   // it runs ahead of everything else there

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts cmd, which must run Main, at a place.
func Start(cmd *exec.Cmd, at place.Place) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("beacon: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("beacon: %w", err)
	}
	p := &Process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if p.Cores, p.Realtime, err = place.Start(cmd, at); err != nil {
		return nil, fmt.Errorf("starting the beacon: %w", err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the beacon: it said nothing: %w", err), p.Stop())
	}
	p.Address = line[:len(line)-1]
	return p, nil
}

// Report is what the beacon did since the last one.
func (p *Process) Report() (Report, error) {
	if _, err := io.WriteString(p.in, "report\n"); err != nil {
		return Report{}, fmt.Errorf("asking the beacon for a report: %w", err)
	}
	r, err := readReport(p.out)
	if err != nil {
		return Report{}, fmt.Errorf("reading the beacon's report: %w", err)
	}
	return r, nil
}

// Stop ends the beacon and waits for it.
func (p *Process) Stop() error {
	p.in.Close() // it ends by itself
	late := time.AfterFunc(3*time.Second, func() { p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the beacon: %w", err)
	}
	return nil
}

// writeReport writes a line of JSON and after it the log: eight bytes a number,
// little-endian.
func writeReport(w io.Writer, r *Report) error {
	head, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b := append(head, '\n')
	for i := range r.Log {
		q := &r.Log[i]
		for _, v := range []int64{q.Number, int64(q.Body), q.ReceivedNs, q.FirstNs, q.StepNs, int64(q.Bunch), int64(len(q.SentNs))} {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		for _, list := range [][]int64{q.SentNs, q.TookNs} {
			for _, v := range list {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
		}
	}
	_, err = w.Write(b)
	return err
}

func readReport(in *bufio.Reader) (r Report, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	numbers := func(n int64) []int64 {
		if n < 0 || n > 1<<24 {
			err = fmt.Errorf("a list of %d numbers", n)
		}
		if err != nil {
			return nil
		}
		b := make([]byte, 8*n)
		if _, err = io.ReadFull(in, b); err != nil {
			return nil
		}
		list := make([]int64, n)
		for i := range list {
			list[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return list
	}
	for range r.Requests {
		v := numbers(7)
		if err != nil {
			return r, err
		}
		q := Request{Number: v[0], Body: uint64(v[1]), ReceivedNs: v[2], FirstNs: v[3], StepNs: v[4], Bunch: int(v[5])}
		q.SentNs, q.TookNs = numbers(v[6]), numbers(v[6])
		r.Log = append(r.Log, q)
	}
	return r, err
}
