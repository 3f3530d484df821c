package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/beacon"
	"fermata/experiment"
	"fermata/internal/place"
	"fermata/report"
)

// A cell is what one client made of one load. Times are ns.
type cell struct {
	Events                  int64    `json:"events"`
	Wanted                  int64    `json:"wanted"`
	SpanNs                  float64  `json:"span_ns"`
	CPUNs                   float64  `json:"cpu_ns"`
	SetupNs                 float64  `json:"setup_cpu_ns"`
	RSSKiB                  float64  `json:"rss_kib"`
	Error                   [4]int64 `json:"error_ns"`      // p50, p99, p99.9, max
	User                    [4]int64 `json:"user_error_ns"` // of the C reader's own clock
	FirstNs                 int64    `json:"first_ns"`
	LastNs                  int64    `json:"last_ns"`
	perEvent                float64  // CPU
	timed                   float64  // of it, the event loops'; negative where nobody knows
	sender                  int64    // the beacon's lateness at p99
	exact, bound, gap, ttft report.Spread
	trial                   *experiment.Trialed
}

func (c *cell) void() bool { return c.sender >= int64(time.Millisecond) }

// ours is a trial of Fermata.
func (b *bench) ours(t experiment.Trial) (cell, error) {
	t.Transport = cmp.Or(t.Transport, b.transport)
	got, err := b.rig.Make(b.ctx, t)
	if err != nil {
		return cell{}, err
	}
	s := got.Step(&t)
	c := cell{
		Events: s.Events, Wanted: int64(t.Streams * t.Plan.Events), SpanNs: float64(s.Events) / s.Sent * 1e9,
		RSSKiB: float64(got.Taken.Peak) / 1024, Error: [4]int64{s.Error.P50, s.Error.P99, s.Error.P999, s.Error.Max},
		perEvent: got.CPUPerEvent, timed: -1, sender: s.Sender.P99, SetupNs: got.SetupCPU * float64(t.Streams), trial: got,
	}
	if s.TimedPerEvent != nil {
		c.timed = *s.TimedPerEvent
	}
	if s.ErrorExact != nil {
		c.exact = *s.ErrorExact
	}
	if s.Violations > 0 {
		b.say("%d × %.4g/s: %d bounds violated, by %v ns", s.Streams, s.PerStream, s.Violations, got.Beyond[:min(len(got.Beyond), 20)])
	}
	c.bound, c.gap, c.ttft = s.Bound, s.GapError, s.TTFTError
	b.used = got.Taken.Transport
	if s.Void {
		b.inVoid, b.violatedInVoid = b.inVoid+s.Events, b.violatedInVoid+s.Violations
	} else {
		b.judged, b.violations = b.judged+s.Events, b.violations+s.Violations
	}
	return c, nil
}

// path is where a load's requests go.
func path(t *experiment.Trial) string { return "/v1/chat/completions?" + t.Plan.Query() }

// theirs runs a client that prints a cell, at the place of clients.
func (b *bench) theirs(at place.Place, argv ...string) (cell, error) {
	if _, err := b.rig.Beacon.Report(); err != nil {
		return cell{}, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := b.wait(cmd, at, nil); err != nil {
		return cell{}, err
	}
	c := cell{timed: -1}
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		return c, fmt.Errorf("%s printed %q: %w", argv[0], out.String(), err)
	}
	told, err := b.rig.Beacon.Report()
	if err != nil {
		return c, err
	}
	c.perEvent, c.sender = c.CPUNs/float64(max(1, c.Events)), lateness(&told)
	return c, nil
}

// wait runs cmd to its end, which comes soon or is made; watch is called often.
func (b *bench) wait(cmd *exec.Cmd, at place.Place, watch func(pid int)) error {
	group(cmd)
	if _, _, err := place.Start(cmd, at); err != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	limit := time.After(3 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s: %w", cmd.Path, err)
			}
			return nil
		case <-limit:
			killGroup(cmd)
			return fmt.Errorf("%s did not end in 3 minutes: %w", cmd.Path, <-done)
		case <-b.ctx.Done():
			killGroup(cmd)
			<-done
			return b.ctx.Err()
		case <-tick.C:
			if watch != nil {
				watch(cmd.Process.Pid)
			}
		}
	}
}

// lateness of the beacon's writes at p99.
func lateness(told *beacon.Report) int64 {
	var all []int64
	for i := range told.Log {
		q := &told.Log[i]
		for k, at := range q.SentNs {
			all = append(all, at-q.FirstNs-int64(k)*q.StepNs)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[(len(all)*99+99)/100-1] // of rank ⌈0.99 n⌉
}

func (b *bench) reader(t *experiment.Trial) (cell, error) {
	return b.theirs(b.rig.At(), b.tools.reader, b.rig.Beacon.Address, path(t), strconv.Itoa(t.Streams), strconv.Itoa(t.Plan.Events), "1000")
}

func (b *bench) aiohttp(t *experiment.Trial) (cell, error) {
	return b.theirs(b.rig.At(), b.tools.python, filepath.Join(b.tools.scripts, "aiohttp_reader.py"), b.rig.Beacon.Address, path(t), strconv.Itoa(t.Streams), strconv.Itoa(t.Plan.Events))
}

// inferencePerf runs the peer of that name, whose streams begin when it starts
// them.
func (b *bench) inferencePerf(t *experiment.Trial) (cell, error) {
	dir, remove, err := folder()
	if err != nil {
		return cell{}, err
	}
	defer remove()
	plan := t.Plan
	plan.Wait, plan.TTFT = 0, time.Second
	script := filepath.Join(b.tools.scripts, "inference_perf.py")
	if text, err := exec.Command(b.tools.python, script, "config", dir, "http://"+b.rig.Beacon.Address+"/"+plan.Query(), b.tools.tokens, strconv.Itoa(t.Streams), strconv.Itoa(plan.Events)).CombinedOutput(); err != nil {
		return cell{}, fmt.Errorf("configuring inference-perf: %w: %s", err, text)
	}
	if _, err := b.rig.Beacon.Report(); err != nil {
		return cell{}, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return cell{}, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(filepath.Dir(b.tools.python), "inference-perf"), "-c", filepath.Join(dir, "config.yml"))
	cmd.Stdout, cmd.Stderr = log, log
	var use usage
	if err := b.wait(cmd, b.rig.At(), use.take); err != nil {
		text, _ := os.ReadFile(log.Name())
		return cell{}, fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	told, err := b.rig.Beacon.Report()
	if err != nil {
		return cell{}, err
	}
	out, err := exec.Command(b.tools.python, script, "errors", dir).Output()
	if err != nil {
		return cell{}, fmt.Errorf("reading inference-perf's report: %w", err)
	}
	c := cell{timed: -1, sender: lateness(&told), Wanted: int64(t.Streams * plan.Events)}
	if err := json.Unmarshal(out, &c); err != nil {
		return c, fmt.Errorf("reading inference-perf's report: %w", err)
	}
	c.perEvent = use.between(c.FirstNs, c.LastNs) / float64(max(1, c.Events))
	c.RSSKiB = use.peakKiB
	return c, nil
}

func folder() (string, func(), error) {
	dir, err := os.MkdirTemp("", "fermata-bench-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// A usage is what a group of processes uses, as it goes on.
type usage struct {
	at      []int64   // wall clock
	cpu     []float64 // ns so far
	peakKiB float64
}

// take looks at all processes of the group that pid leads. The kernel counts in
// hundredths of a second.
func (u *usage) take(pid int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	ticks, pages := 0.0, 0.0
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // state ppid pgrp … utime is the 12th, rss the 22nd
		if len(f) < 22 || f[2] != strconv.Itoa(pid) {
			continue
		}
		for _, i := range []int{11, 12, 13, 14} { // own, and of children that have ended
			n, _ := strconv.ParseFloat(f[i], 64)
			ticks += n
		}
		n, _ := strconv.ParseFloat(f[21], 64)
		pages += n
	}
	u.at, u.cpu = append(u.at, time.Now().UnixNano()), append(u.cpu, ticks*1e7)
	u.peakKiB = max(u.peakKiB, pages*float64(os.Getpagesize())/1024, peakKiB(pid))
}

// peakKiB is the most memory that a process has had so far, by the system's own count; 0
// where it does not say.
func peakKiB(pid int) (kib float64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, after, ok := strings.Cut(string(b), "VmHWM:"); err == nil && ok {
		_, _ = fmt.Sscan(after, &kib)
	}
	return kib
}

// between is the processor time used from one moment to another; from look to look it
// counts as used evenly, as a look may be late on a busy machine.
func (u *usage) between(from, to int64) float64 {
	at := func(t int64) float64 {
		i, _ := slices.BinarySearch(u.at, t)
		switch {
		case len(u.at) == 0:
			return 0
		case i == 0:
			return u.cpu[0]
		case i == len(u.at):
			return u.cpu[i-1]
		}
		share := float64(t-u.at[i-1]) / float64(u.at[i]-u.at[i-1])
		return u.cpu[i-1] + share*(u.cpu[i]-u.cpu[i-1])
	}
	return at(to) - at(from)
}
