package experiment

import (
	"math"
	"testing"

	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/spec"
)

// A system that serves one request at a time, 20 ms of prefill and 9 gaps of 20 ms,
// serves 5 requests/s. The probe finds that through a port, where time runs twenty
// times as fast, and none of its 600 requests is recorded.
func TestProbeSaturation(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		system := `cost: {flat: {ttft: 20ms, itl: 20ms}}
scheduler: {max_num_seqs: 1}
`
		done, traces, _ := simulatedRun(t, system, 20, map[string]string{
			"workload.input": "16", "workload.output": "10", "schedule.rate": "2", "schedule.requests": "10", "seed": "1",
			"load.probe_saturation": "true",
		})
		l := done.Result.Load
		if l.Saturation == nil || l.Saturation.Source != "probed" || math.Abs(l.Saturation.RPS-5) > .75 {
			t.Fatalf("saturation %+v, not 5/s", l.Saturation)
		}
		if len(traces) < 10 || len(traces) > 60 {
			t.Errorf("%d requests were recorded", len(traces))
		}
		if l.OfSaturation == nil {
			t.Error("the load's ratio to saturation is unknown")
		}
		again, err := Judge(done.Dir, []conf.Setting{{Path: "judge.saturation", Value: "8"}}, "test")
		if err != nil {
			t.Fatal(err)
		}
		if s := again.Load.Saturation; s == nil || s.Source != "given" || s.RPS != 8 {
			t.Errorf("judged again with another one: %+v", s)
		}
	})
}

func TestProbesThatMeanNothing(t *testing.T) {
	for name, settings := range map[string][]conf.Setting{
		"closed":   {{Path: "schedule.concurrency", Value: "4"}, {Path: "schedule.requests", Value: "9"}},
		"at once":  {{Path: "schedule.kind", Value: "all"}, {Path: "schedule.requests", Value: "9"}},
		"sessions": {{Path: "workload.turns", Value: "3"}, {Path: "schedule.rate", Value: "3"}, {Path: "schedule.requests", Value: "9"}},
	} {
		sets := append([]conf.Setting{{Path: "target.url", Value: "http://127.0.0.1:1"}, {Path: "load.probe_saturation", Value: "true"}}, settings...)
		if _, err := spec.Read("", nil, sets); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
