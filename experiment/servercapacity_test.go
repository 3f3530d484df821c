package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"fermata/capacity"
	"fermata/spec"
)

// searchServer searches a server as the command does.
func searchServer(t testing.TB, ctx context.Context, s *spec.Run, o Options, c CapacityOptions) (*capacity.Result, *ServerSite, error) {
	t.Helper()
	o.Version, o.Say, c.Say = "test", t.Logf, t.Logf
	site, err := OpenServer(context.WithoutCancel(ctx), s, o)
	if err != nil {
		t.Fatal(err)
	}
	c.State, c.Begin = site.State(), site.Begin
	all, err := Capacity(ctx, site, c)
	if len(all) == 0 {
		return nil, site, err
	}
	if len(all) != 1 {
		t.Fatalf("%d results", len(all))
	}
	if err := site.Keep(all); err != nil {
		t.Error(err)
	}
	return all[0], site, err
}

// A simulator behind a port, ten times as fast as its time: what a search finds to
// 10 % holds the objective at .85 of it and fails it at 1.2 times it, in three runs
// of 3,000 requests each.
func TestServerCapacityHolds(t *testing.T) {
	if os.Getenv("FERMATA_SLOW") == "" {
		t.Skip("FERMATA_SLOW is not set")
	}
	url := simulator(t, "cost: {flat: {ttft: 5ms, itl: 120ms}}\nscheduler: {max_num_seqs: 8}\n", 10)
	settings := map[string]string{
		"target.url": url, "workload.input": "16", "workload.output": "10", "schedule.rate": "1", "seed": "1",
		"slo": "[ttft<=3s @p90]",
	}
	dir := t.TempDir()
	r, _, err := searchServer(t, t.Context(), readSettings(t, settings), Options{Out: filepath.Join(dir, "search")}, CapacityOptions{Search: capacity.Options{Precision: .1}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Ending != capacity.Found || r.Capacity == nil || r.Capacity.Low == nil || r.Capacity.High == nil || r.Rough {
		t.Fatalf("%+v", r)
	}
	c := r.Capacity
	t.Logf("%d requests: %.4g/s (%.4g–%.4g), saturation %.4g/s, attainment %.4g at %.4g/s, client-bound %v",
		r.Requests, c.RPS, *c.Low, *c.High, *r.SaturationRPS, *c.Attainment, r.Held.Rate, r.ClientBound)
	settings["judge.verdict"], settings["schedule.requests"] = "point", "3000"
	for seed := range 3 {
		for _, one := range []struct {
			of      float64
			verdict string
		}{{.85, "met"}, {1.2, "missed"}} {
			settings["schedule.rate"], settings["seed"] = strconv.FormatFloat(one.of*c.RPS, 'g', -1, 64), fmt.Sprint(11+seed)
			done, err := Run(t.Context(), readSettings(t, settings), Options{Out: filepath.Join(dir, fmt.Sprint(seed, one.of)), Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			v := done.Result.SLO[0]
			t.Logf("%.2f times it, seed %d: %s, %.2f %% held", one.of, 11+seed, v.Verdict, 100**v.Share)
			if v.Verdict != one.verdict {
				t.Errorf("at %.2f times the capacity: %s, %.4g held", one.of, v.Verdict, *v.Share)
			}
		}
	}
}
