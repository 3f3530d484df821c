package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/recording"
)

// What is said of a target is what a recording of its requests alone would say.
func TestTargetsAreJudgedByThemselves(t *testing.T) {
	objective, err := ParseObjective("ttft<=150ms @50%")
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{SLO: []Objective{objective}}
	var all recording.Slice
	own := map[string]recording.Slice{}
	for i := range int64(300) {
		name, ttft := "fast", int64(100e6)
		if i%3 == 0 {
			name, ttft = "slow", 200e6
		}
		tr := steadyTrace(i, 5, ttft+i*7919%300*1000, 20_000_000) // in no order: what grows from request to request is no sample of 300
		if i%30 == 0 {
			tr = failedTrace(i, recording.HTTPError)
		}
		tr.Target = name
		all = append(all, tr)
		own[name] = append(own[name], tr)
		if i == 40 { // was tried again, at the same target
			again := steadyTrace(i, 5, ttft, 20_000_000)
			again.Target, again.Try, again.Due = name, 1, tr.Due
			tr.Outcome = recording.Refused
			all[len(all)-1], own[name][len(own[name])-1] = tr, tr
			all, own[name] = append(all, again), append(own[name], again)
		}
	}
	r := evaluate(t, all, recording.Meta{}, opt)
	if len(r.Targets) != 2 {
		t.Fatalf("targets %v", r.Targets)
	}
	for name, rows := range own {
		for i := range rows {
			rows[i].Target = ""
		}
		alone := evaluate(t, rows, recording.Meta{}, opt)
		want := TargetResult{Outcomes: alone.Outcomes, Metrics: alone.Metrics, SLO: alone.SLO}
		if diff := cmp.Diff(want, r.Targets[name]); diff != "" || alone.Targets != nil {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if r.Targets["fast"].SLO[0].Verdict != Met || r.Targets["slow"].SLO[0].Verdict != Missed || r.Targets["slow"].Outcomes["http_error"] != 10 || r.Outcomes["ok"] != 290 {
		t.Errorf("%+v", r.Targets)
	}
}
