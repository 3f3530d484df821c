package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cost"
	"fermata/internal/conf"
)

// pricedSweep is of two loads of 20 requests and 2 of warm-up, of which each costs
// (12 + 3)·10/10⁶ = 0.00015: 0.0033 a load, 0.0066 together.
func pricedSweep(t testing.TB, url, most string) *Sweep {
	t.Helper()
	var sets []conf.Setting
	for path, value := range map[string]string{
		"target.url": url, "target.model": "m", "workload.input": "12", "workload.output": "3", "schedule.requests": "20", "schedule.drain": "quiet", "seed": "4",
		"load.max_cost": most, "prices": `{currency: USD, date: 2026-11-01, source: x, tokens: {input_per_million: "10", output_per_million: "10"}}`,
	} {
		sets = append(sets, conf.Setting{Path: path, Value: value})
	}
	return &Sweep{Subject: Subject{Sets: sets}, Rates: []string{"100", "50"}}
}

// What a sweep may cost is of all its loads together: too little for them is
// refused before anything is asked, and each load may spend what those before left.
func TestSweepCostsNoMore(t *testing.T) {
	t.Parallel()
	url := scripted(t, "models: {m: {ttft: 2ms, gap: 1ms, tokens: max}}\n")
	dir := filepath.Join(t.TempDir(), "sweep")
	o := Options{Out: dir, Version: "test"}
	_, _, err := pricedSweep(t, url, "0.005").Run(t.Context(), o)
	var mistakes conf.Mistakes
	if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), "about 0.00660 USD together, and all of it may cost 0.005") {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused sweep left a folder")
	}
	out, _, err := pricedSweep(t, url, "0.007").Run(t.Context(), o)
	if err != nil || len(out.Points) != 2 || out.Stopped != "" || out.Cut {
		t.Fatalf("%+v %v", out, err)
	}
	var sum cost.Amount
	for _, p := range out.Points {
		r, err := Judge(filepath.Join(dir, p.Folder), nil, "test")
		if err != nil || r.Load.Spent == nil {
			t.Fatal(err)
		}
		did, err := cost.ParseAmount(r.Load.Spent.Amount)
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.Plus(did)
	}
	if limit, _ := cost.ParseAmount("0.007"); sum.Cmp(limit) > 0 {
		t.Errorf("it cost %s", sum)
	}
	// Another limit is no other spec, and what was measured counts.
	again := pricedSweep(t, url, "0.008")
	again.Rates = append(again.Rates, "20")
	if _, _, err := again.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "measured before") {
		t.Error(err)
	}
}

// A load that cost more than was thought leaves too little for the next one: the
// sweep ends between them, or within it, and has those that ended.
func TestSweepStopsWhenTheMoneyIsSpent(t *testing.T) {
	t.Parallel()
	// Of answers that break off nobody knows how long they got: they cost the most.
	url := scripted(t, "models: {m: {ttft: 2ms, gap: 1ms, tokens: max}}\n")
	sweep := pricedSweep(t, url, "0.007")
	first, err := sweep.read(sweep.settings(0)...)
	if err != nil {
		t.Fatal(err)
	}
	purse, err := newSweepPurse(first)
	if err != nil {
		t.Fatal(err)
	}
	point := sweepPoint{label: "rate-50", play: first}
	if point.costs, point.priced = first.costs(20); !point.priced || point.costs.String() != "0.0033" {
		t.Errorf("%s %v", point.costs, point.priced)
	}
	if why := purse.short(false, point); why != "" {
		t.Error(why)
	}
	purse.spent, _ = cost.ParseAmount("0.004")
	if left := purse.into(first).run.Load.MaxCost; left != "0.003" || first.run.Load.MaxCost != "0.007" {
		t.Errorf("%s is left of %s", left, first.run.Load.MaxCost)
	}
	if why := purse.short(false, point); !strings.Contains(why, "before rate-50: of 0.007 USD, 0.004") {
		t.Error(why)
	}
	if why := purse.short(true, point); why != "" {
		t.Error("what was measured costs nothing:", why)
	}
	// A load that ends for want of money is no load of the sweep.
	bound := *first.run
	bound.Load.MaxCost = "0.001"
	d, err := (&play{run: &bound}).into(t.Context(), filepath.Join(t.TempDir(), "run"), Options{Version: "test"})
	if err != nil || !penniless(d.Result) {
		t.Errorf("%+v %v", d, err)
	}
}

// A sweep of which a load fails has those that ended before it.
func TestSweepKeepsWhatEnded(t *testing.T) {
	t.Parallel()
	url, stop := serving(t, "models: {m: {ttft: 2ms, gap: 1ms, tokens: max}}\n")
	o := Options{Out: filepath.Join(t.TempDir(), "sweep"), Version: "test", Say: func(f string, args ...any) {
		if strings.HasPrefix(f, "load %d") && args[0] == 2 {
			stop()
		}
	}}
	out, _, err := pricedSweep(t, url, "1").Run(t.Context(), o)
	if err == nil || out == nil || len(out.Points) != 1 || out.Points[0].Label != "rate-100" {
		t.Errorf("%+v %v", out, err)
	}
}
