// Bench measures the instrument beside other clients and beside its own goals. It
// is not for CI: its figures are of one machine, which should have nothing else to
// do. `make bench-peers` and `make bench-client` build what it needs and run it.
//
//	bench peers   Fermata, a C reader, an aiohttp reader and inference-perf against one server
//	bench client  each goal of the client, with what was measured beside it
//
// Everything is offered by the same beacon (package beacon), on a core of its own
// in real time if this user may, where clients are too: that imitates a machine
// that is quiet. Cells are medians of -k trials of -span each. A cell is void where
// the beacon's own lateness was 1 ms or more at p99. A virtual machine's cores that sleep
// between two events make all that comes after dearer: -awake keeps them from it.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"fermata/experiment"
	"fermata/internal/place"
)

// A bench is one run of this program.
type bench struct {
	ctx       context.Context
	rig       *experiment.Rig
	out       *bufio.Writer
	k         int
	span      time.Duration
	transport string
	only      string
	awake     bool
	events    int64 // of valid trials in which no bound may be violated
	tools     tools

	judged, violations     int64  // events of all valid trials, and bounds that did not hold
	inVoid, violatedInVoid int64  // of void ones, whose truth is not to be trusted
	used                   string // transport
	lock                   *os.File
	self                   func(role ...string) *exec.Cmd
}

// tools are the programs that it runs besides itself; an empty one is left out.
type tools struct {
	fermata string // the command
	reader  string // bench/limit/reader.c
	python  string // with the peers installed
	scripts string // folder of the Python files
	tokens  string // folder of the tokenizer
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "beacon":
			exit(experiment.BeaconMain(os.Args[2], os.Stdin, os.Stdout))
		case "trial":
			exit(experiment.TrialMain(os.Stdin, os.Stdout))
		case "burn":
			burn(len(os.Args) > 2)
		}
	}
	exit(run(os.Args[1:], os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// burn keeps a processor busy until standard input ends; last says: unless anybody else
// wants it.
func burn(last bool) {
	signal.Ignore(os.Interrupt)
	go func() {
		runtime.LockOSThread()
		if last {
			standBack()
		}
		var turns atomic.Int64
		for {
			turns.Add(1)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func run(args []string, to io.Writer) error {
	b := bench{out: bufio.NewWriter(to)}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&b.k, "k", 3, "trials of each cell, of which the median counts")
	f.DurationVar(&b.span, "span", 3*time.Second, "length of a trial")
	f.BoolVar(&b.awake, "awake", false, "keep the cores from sleeping: a process of the lowest priority on each")
	f.StringVar(&b.transport, "transport", "", "fast or compatible; by default what a run would choose")
	f.StringVar(&b.only, "only", "", "of client: goals whose name contains this; of peers: loads such as 1000x20,100x20")
	f.Int64Var(&b.events, "events", 1_000_000, "of client: events of valid trials in which no bound may be violated")
	f.StringVar(&b.tools.fermata, "fermata", "bin/fermata", "the command")
	f.StringVar(&b.tools.reader, "reader", ".cache/bench/reader", "the C reader")
	f.StringVar(&b.tools.python, "python", "", "Python with the peers; without it they are left out")
	f.StringVar(&b.tools.scripts, "scripts", "bench", "folder of the peers' scripts")
	f.StringVar(&b.tools.tokens, "tokenizer", ".cache/peers/tokenizer", "folder of the peers' tokenizer")
	if len(args) == 0 {
		return errors.New("say what: peers or client")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	what := map[string]func(*bench) error{"peers": (*bench).peers, "client": (*bench).client}[args[0]]
	if what == nil || f.NArg() > 0 || b.k < 1 {
		return fmt.Errorf("%q: say peers or client, then flags", strings.Join(args, " "))
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b.ctx = ctx
	if err := b.alone(); err != nil {
		return err
	}
	b.self = func(role ...string) *exec.Cmd {
		cmd := exec.Command(exe, role...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	b.rig, err = experiment.NewRig(b.self, true)
	if err != nil {
		return err
	}
	if b.awake {
		for _, core := range place.Cores() {
			over, err := b.burner([]int{core}, "last")
			if err != nil {
				return errors.Join(err, b.rig.Close())
			}
			defer over()
		}
	}
	err = what(&b)
	return errors.Join(err, b.out.Flush(), b.rig.Close())
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// machine is the line that any figure needs beside it.
func (b *bench) machine() string {
	m := experiment.MachineOf(b.rig)
	return fmt.Sprintf("%s, %s. Beacon's own place: %v, real time: %v; cores kept awake: %v. Medians of %d trials of %s; %s.",
		cmp.Or(m.Processor, m.Arch), strings.TrimSpace(fmt.Sprintf("%d cores, %s %s", m.Cores, m.OS, m.Kernel)), b.rig.Beacon.Cores, b.rig.Beacon.Realtime, b.awake, b.k, b.span, time.Now().Format("2006-01-02"))
}

// median of the values that pick gives, by the middle of an odd number and the
// lower middle of an even one.
func median[T any](all []T, pick func(T) float64) float64 {
	v := make([]float64, len(all))
	for i, one := range all {
		v[i] = pick(one)
	}
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return v[(len(v)-1)/2]
}
