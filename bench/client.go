package main

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"

	"fermata/beacon"
	"fermata/experiment"
	"fermata/internal/place"
	"fermata/internal/term"
	"fermata/report"
)

// goals are what the client has to show, in groups that share their trials. Each
// prints rows.
var goals = []struct {
	name string
	show func(*bench) error
}{
	{"limit", (*bench).limit},
	{"highest", (*bench).highest},
	{"burners", (*bench).burners},
	{"bound", (*bench).bound},
	{"aiohttp", (*bench).eightfold},
	{"loop", (*bench).closedLoop},
	{"footprint", (*bench).footprint},
	{"poisson", (*bench).poisson},
	{"dispatch", (*bench).dispatch},
	{"connections", (*bench).connections},
	{"violations", (*bench).violated},
}

// client prints each goal with what was measured beside it.
func (b *bench) client() error {
	fmt.Fprintf(b.out, "| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, g := range goals {
		if b.only != "" && !strings.Contains(g.name, b.only) {
			continue
		}
		b.say("%s", g.name)
		if err := g.show(b); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "\n%s Transport: %s.\n", b.machine(), b.used)
	return nil
}

// row prints one goal. Where most of the trials that it rests on are void it is
// neither met nor missed.
func (b *bench) row(what, goal, measured string, ok bool, trials ...cell) {
	verdict := "missed"
	switch {
	case 2*countVoid(trials) > len(trials):
		verdict = "void"
	case ok:
		verdict = "met"
	}
	fmt.Fprintf(b.out, "| %s | %s | %s | %s |\n", what, goal, measured, verdict)
}

// several makes k trials of a load.
func (b *bench) several(run func(*experiment.Trial) (cell, error), t experiment.Trial) ([]cell, error) {
	var all []cell
	for range b.k {
		c, err := run(&t)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (b *bench) fermata(t *experiment.Trial) (cell, error) { return b.ours(*t) }

func of(pick func(*cell) float64) func(cell) float64 { return func(c cell) float64 { return pick(&c) } }

// cost is the processor time of an event: of the event loop alone where it is
// known.
func cost(c cell) float64 {
	if c.timed >= 0 {
		return c.timed
	}
	return c.perEvent
}

func all(c cell) float64 { return c.perEvent }

// voids says how many cells mean nothing.
func voids(cells []cell) string {
	n := countVoid(cells)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d trials void", n, len(cells))
}

func countVoid(cells []cell) (n int) {
	for i := range cells {
		if cells[i].void() {
			n++
		}
	}
	return n
}

// costText is the timed path, and everything beside it.
func costText(cells []cell) string {
	s := term.Duration(median(cells, cost))
	if cells[0].timed >= 0 {
		s += " (with decoding and journal " + term.Duration(median(cells, all)) + ")"
	}
	return s + voids(cells)
}

// limit is the event loop beside the C loop's.
func (b *bench) limit() error {
	for _, l := range []struct {
		n    int
		rate float64
		most time.Duration // processor time an event
	}{{1000, 20, 7 * time.Microsecond}, {1000, 100, 4 * time.Microsecond}, {10_000, 10, 4 * time.Microsecond}, {10_000, 15, 4 * time.Microsecond}} {
		t := experiment.SpreadTrial(l.n, l.rate, b.span)
		ours, err := b.several(b.fermata, t)
		if err != nil {
			return err
		}
		limit, err := b.several(b.reader, t)
		if err != nil {
			return err
		}
		load := fmt.Sprintf("%s streams × %g/s", term.Count(int64(l.n)), l.rate)
		share := median(limit, all) / median(ours, cost)
		if l.rate > 20 || l.n > 1000 && l.rate == 10 {
			b.row("events a CPU second beside the C loop, "+load, "≥ 85%", term.Percent(share)+" (C: "+term.Duration(median(limit, all))+" an event)"+voids(slices.Concat(ours, limit)), share >= .85, slices.Concat(ours, limit)...)
		}
		b.row("CPU an event, timed path, "+load, "≤ "+term.Bound(int64(l.most)), costText(ours), median(ours, cost) <= float64(l.most), ours...)
	}
	return nil
}

// highest is the error of exact arrivals at the highest rate of 10,000 streams
// that the beacon keeps up with.
func (b *bench) highest() error {
	for _, rate := range []float64{20, 18, 15, 12, 10, 5} {
		t := experiment.SpreadTrial(10_000, rate, b.span)
		var valid []cell
		for i := range b.k {
			c, err := b.fermata(&t)
			if err != nil {
				return err
			}
			if c.void() {
				b.say("10,000 × %g/s is void: the beacon was late by %s at p99", rate, term.Duration(float64(c.sender)))
			} else {
				valid = append(valid, c)
			}
			if 2*(i+1-len(valid)) > b.k {
				break // most of them are void
			}
		}
		if 2*len(valid) <= b.k {
			continue
		}
		p99, p999, share := exactOf(valid)
		b.row(fmt.Sprintf("error of exact arrivals at the highest valid rate, 10,000 streams × %g/s", rate), "p99 ≤ 10 µs, p99.9 ≤ 30 µs",
			fmt.Sprintf("%s, %s (%s exact; %d of %d trials valid)", term.Duration(p99), term.Duration(p999), term.Percent(share), len(valid), b.k), p99 <= 10e3 && p999 <= 30e3)
		return nil
	}
	b.row("error of exact arrivals, 10,000 streams", "p99 ≤ 10 µs, p99.9 ≤ 30 µs", "void at every rate", false)
	return nil
}

func exactOf(cells []cell) (p99, p999, share float64) {
	exact := func(pick func(report.Spread) int64) float64 {
		return median(cells, func(c cell) float64 { return float64(pick(c.exact)) })
	}
	return exact(func(s report.Spread) int64 { return s.P99 }), exact(func(s report.Spread) int64 { return s.P999 }),
		median(cells, func(c cell) float64 { return float64(c.exact.N) / float64(max(1, c.Events)) })
}

// burners are two processes that keep the client's core busy; the client runs as
// any process does.
func (b *bench) burners() error {
	was := b.rig.Realtime
	b.rig.Realtime = false
	defer func() { b.rig.Realtime = was }()
	for range 2 {
		over, err := b.burner(b.rig.ClientCores)
		if err != nil {
			return err
		}
		defer over()
	}
	cells, err := b.several(b.fermata, experiment.SpreadTrial(1000, 20, b.span))
	if err != nil {
		return err
	}
	p99, p999, share := exactOf(cells)
	b.row("exact arrivals with two CPU burners on the client's core, 1,000 × 20/s", "p99 ≤ 15 µs, p99.9 ≤ 250 µs, exact ≥ 97%",
		fmt.Sprintf("%s, %s, %s%s", term.Duration(p99), term.Duration(p999), term.Percent(share), voids(cells)), p99 <= 15e3 && p999 <= 250e3 && share >= .97, cells...)
	return nil
}

// burner starts a process that keeps one of the cores busy until over is called.
func (b *bench) burner(cores []int, how ...string) (over func(), err error) {
	cmd := b.self(append([]string{"burn"}, how...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if _, _, err := place.Start(cmd, place.Place{Cores: cores}); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		_ = cmd.Wait()
	}, nil
}

// bound is what stamps say of themselves on either transport.
func (b *bench) bound() error {
	for _, transport := range []string{"fast", "compatible"} {
		t := experiment.SpreadTrial(50, 20, b.span)
		t.Transport = transport
		cells, err := b.several(b.fermata, t)
		if err != nil {
			return err
		}
		p50 := median(cells, func(c cell) float64 { return float64(c.bound.P50) })
		b.row("median bound of stamps, 50 × 20/s, "+cells[0].trial.Taken.Transport, "≤ 200 µs", term.Duration(p50)+voids(cells), p50 <= 200e3, cells...)
	}
	return nil
}

// eightfold is the cost beside an aiohttp reader's.
func (b *bench) eightfold() error {
	if b.tools.python == "" {
		return nil
	}
	t := experiment.SpreadTrial(1000, 20, b.span)
	ours, err := b.several(b.fermata, t)
	if err != nil {
		return err
	}
	theirs, err := b.several(b.aiohttp, t)
	if err != nil {
		return err
	}
	times := median(theirs, all) / median(ours, cost)
	b.row("CPU an event beside an aiohttp reader, 1,000 × 20/s", "≥ 8 × less",
		fmt.Sprintf("%.1f × less (%.1f × with decoding and journal); error p99 %s and %s%s", times, median(theirs, all)/median(ours, all),
			term.Duration(median(ours, errorP99)), term.Duration(median(theirs, errorP99)), voids(slices.Concat(ours, theirs))), times >= 8, slices.Concat(ours, theirs)...)
	return nil
}

func errorP99(c cell) float64 { return float64(c.Error[1]) }

// closedLoop is what a closed loop in step reports beside what was true: 128
// tokens at 50 a second after 200 ms.
func (b *bench) closedLoop() error {
	for _, l := range []struct {
		streams, requests int
		p50, p99, gap     time.Duration
	}{
		{32, 128, 50 * time.Microsecond, 500 * time.Microsecond, 0},
		{256, 1024, 100 * time.Microsecond, 2 * time.Millisecond, 50 * time.Microsecond},
		{1000, 2000, 200 * time.Microsecond, 5 * time.Millisecond, 200 * time.Microsecond},
	} {
		cells, err := b.several(b.fermata, loopTrial(l.streams, l.requests))
		if err != nil {
			return err
		}
		at := func(pick func(*cell) float64) float64 { return median(cells, of(pick)) }
		what := fmt.Sprintf("closed loop in step, %s streams", term.Count(int64(l.streams)))
		p50, p99 := at(func(c *cell) float64 { return float64(c.ttft.P50) }), at(func(c *cell) float64 { return float64(c.ttft.P99) })
		b.row(what+": error of ttft_sent at p50, p99", fmt.Sprintf("≤ %s, ≤ %s", term.Bound(int64(l.p50)), term.Bound(int64(l.p99))),
			fmt.Sprintf("%s, %s", term.Duration(p50), term.Duration(p99)), p50 <= float64(l.p50) && p99 <= float64(l.p99))
		gap := at(func(c *cell) float64 { return float64(c.gap.P99) })
		if l.gap > 0 {
			b.row(what+": error of gaps at p99", "≤ "+term.Bound(int64(l.gap)), term.Duration(gap), gap <= float64(l.gap))
		}
		if l.streams == 1000 {
			flying := at(func(c *cell) float64 { return c.trial.InFlight })
			b.row(what+": truly in flight", "≥ 990", fmt.Sprintf("%.1f on average", flying), flying >= 990)
		}
	}
	return nil
}

func loopTrial(streams, requests int) experiment.Trial {
	return experiment.Trial{Streams: streams, Requests: requests, Wide: true, Plan: beacon.Plan{Events: 128, TTFT: 200 * time.Millisecond, Gap: 20 * time.Millisecond}}
}

// footprint is a whole run of the command at 256 streams: what it takes besides
// the events.
func (b *bench) footprint() error {
	var start, rss []float64
	for range b.k {
		if _, err := b.rig.Beacon.Report(); err != nil {
			return err
		}
		dir, remove, err := folder()
		if err != nil {
			return err
		}
		plan := loopTrial(256, 1024).Plan
		events := plan.Events
		plan.Events = 0 // as many as are asked for
		cmd := exec.Command(b.tools.fermata, "run", "http://"+b.rig.Beacon.Address+"/"+plan.Query()+"/v1/chat/completions",
			"--model", "beacon", "--concurrency", "256", "--requests", "1024", "--warmup", "0", "--drain", "quiet", "--output", "128", "--out", dir+"/run", "-o", "json", "--quiet")
		var use usage
		err = b.wait(cmd, b.rig.At(), use.take)
		remove()
		if code := cmd.ProcessState; err != nil && (code == nil || code.ExitCode() != 4) { // client-bound says nothing about this
			return err
		}
		told, err := b.rig.Beacon.Report()
		if err != nil {
			return err
		}
		from, to := int64(math.MaxInt64), int64(0)
		for i := range told.Log {
			if q := &told.Log[i]; len(q.SentNs) == events { // no preflight
				from, to = min(from, q.ReceivedNs), max(to, q.SentNs[events-1])
			}
		}
		used := float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
		start, rss = append(start, used-use.between(from, to)), append(rss, use.peakKiB)
	}
	s, m := median(start, itself), median(rss, itself)
	b.row("`fermata run` at 256 streams, 1,024 requests: start and report", "≤ 0.1 s CPU, ≤ 40 MiB", fmt.Sprintf("%.2f s, %.0f MiB", s/1e9, m/1024), s <= 1e8 && m <= 40*1024)
	return nil
}

func itself(v float64) float64 { return v }

// poisson is an open loop of 20 requests a second.
func (b *bench) poisson() error {
	return b.openLoop(20, 10, "Poisson 20/s: from schedule to wire at p99", "≤ 300 µs", func(d *report.SelftestDispatch) (string, bool) {
		return fmt.Sprintf("%s; realised %.2f/s, gaps' CV %.2f, KS distance %.3f (√n·D %.2f)", term.Duration(float64(d.Wire.P99)), d.Realised, d.CV, d.KS, d.Root), d.Wire.P99 <= 300_000
	})
}

// dispatch is one of 1,000 a second.
func (b *bench) dispatch() error {
	return b.openLoop(1000, b.span.Seconds(), "dispatch lateness at 1,000 requests/s", "p50 ≤ 5 µs, p99 ≤ 250 µs", func(d *report.SelftestDispatch) (string, bool) {
		return fmt.Sprintf("%s, %s", term.Duration(float64(d.Lateness.P50)), term.Duration(float64(d.Lateness.P99))), d.Lateness.P50 <= 5000 && d.Lateness.P99 <= 250_000
	})
}

// openLoop makes trials at a rate and shows the one in the middle, by its p99.
func (b *bench) openLoop(rate, seconds float64, what, goal string, show func(*report.SelftestDispatch) (string, bool)) error {
	t := experiment.Trial{Rate: rate, Requests: int(rate * seconds), Wide: true, Plan: beacon.Plan{Events: 10, Gap: 50 * time.Millisecond}}
	cells, err := b.several(b.fermata, t)
	if err != nil {
		return err
	}
	var found []*report.SelftestDispatch
	for _, c := range cells {
		found = append(found, c.trial.Dispatch(&t))
	}
	middle := median(found, func(d *report.SelftestDispatch) float64 { return float64(d.Lateness.P99) })
	for _, d := range found {
		if float64(d.Lateness.P99) == middle {
			text, ok := show(d)
			b.row(what, goal, text+voids(cells), ok, cells...)
			return nil
		}
	}
	return nil
}

// violated counts the bounds that did not hold in all valid trials so far, and makes
// more of them until they have brought as many events as were asked for.
func (b *bench) violated() error {
	for began := time.Now(); b.judged < b.events && time.Since(began) < mostViolated; {
		t := experiment.SpreadTrial(1000, 20, 10*time.Second)
		if _, err := b.fermata(&t); err != nil {
			return err
		}
		b.say("%s of %s events", term.Count(b.judged), term.Count(b.events))
	}
	b.row("bounds violated, of all valid trials of Fermata here", "0 of "+term.Count(b.events)+" or more",
		fmt.Sprintf("%s of %s events (of void trials %s of %s)", term.Count(b.violations), term.Count(b.judged), term.Count(b.violatedInVoid), term.Count(b.inVoid)),
		b.violations == 0 && b.judged >= b.events)
	return nil
}

// mostViolated is how long trials are made only to find a bound that does not hold.
const mostViolated = 10 * time.Minute

// connections is what 10,000 streams take before the first event.
func (b *bench) connections() error {
	cells, err := b.several(b.fermata, experiment.SpreadTrial(10_000, 5, b.span))
	if err != nil {
		return err
	}
	setup := median(cells, of(func(c *cell) float64 { return c.SetupNs }))
	b.row("10,000 connections ready", "< 1 s CPU", fmt.Sprintf("%.2f s", setup/1e9), setup < 1e9)
	memory := func(cells []cell) float64 {
		return median(cells, of(func(c *cell) float64 { return c.trial.Memory }))
	}
	var held [2]float64
	streams := [2]float64{1000, 10_000}
	for i, n := range streams {
		few := experiment.SpreadTrial(int(n), 5, b.span)
		few.Collect = true
		collected, err := b.several(b.fermata, few)
		if err != nil {
			return err
		}
		held[i] = memory(collected) * n
	}
	each := (held[1] - held[0]) / (streams[1] - streams[0]) // what a process takes whatever it does is no stream's
	b.row("memory a stream besides its log, from 1,000 to 10,000 streams", "≤ 1 KiB",
		fmt.Sprintf("%.2f KiB (shared out over 10,000: %.2f, and with garbage %.2f)", each/1024, held[1]/streams[1]/1024, memory(cells)/1024), each <= 1024)
	return nil
}
