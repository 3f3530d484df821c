package metrics

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fermata/recording"
)

func exactly(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Of 100 answers over 10 s every twentieth is wrong, four are slow, of which one
// is wrong too, and two requests failed: goodput is what is left.
func TestGoodputDropsByFailedChecks(t *testing.T) {
	var s recording.Slice
	for i := range int64(100) {
		n := 10
		if i%25 == 14 { // 14, 39, 64, 89
			n = 200
		}
		one := steadyTrace(i, n, 100_000_000, 10_000_000)
		one.Check = recording.Pass
		if i%20 == 19 {
			one.Check, one.CheckDetail = recording.Fail, fmt.Sprintf("wrong in %d", i)
		}
		if i == 3 || i == 4 {
			one = failedTrace(i, recording.StreamCut)
		}
		s = append(s, one)
	}
	s[39].Check = recording.Fail
	meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](10e9)}
	slos := []string{"ttft<=1s @50%", "schema>=90%", "schema>=99%"}
	const wrong, slow, failed, both = 5, 4, 2, 1

	plain := evaluate(t, without(s), meta, Options{SLO: objectivesOf(t, slos...)})
	if plain.Checks != nil || plain.Slow != nil {
		t.Errorf("checks %+v and slow %v of a run that asked for neither", plain.Checks, plain.Slow)
	}
	exactly(t, "goodput without checks", *plain.Goodput[0].RequestsS, (100-failed)/10.)
	if plain.SLO[1].Verdict != Open {
		t.Errorf("an objective on checks where there are none is %s", plain.SLO[1].Verdict)
	}

	r := evaluate(t, s, meta, Options{Check: "regex", SLO: objectivesOf(t, slos...)})
	exactly(t, "goodput", *r.Goodput[0].RequestsS, (100-failed-wrong)/10.)
	exactly(t, "share of the objective", *r.SLO[1].Share, (100.-failed-wrong)/100)
	if c := r.Checks; c == nil || c.Kind != "regex" || c.Passed != 93 || c.Failed != wrong || c.Unchecked != 0 ||
		*c.Example != (CheckExample{Index: 19, Detail: "wrong in 19"}) {
		t.Errorf("checks %+v", r.Checks)
	}
	exactly(t, "share of answers that passed", r.Checks.Share, 0.93)
	if r.SLO[2].Verdict != Missed { // 93 of 100: at most 97.1 % with 95 % confidence
		t.Errorf("93 of 100 against 99 %%: %s", r.SLO[2].Verdict)
	}
	if text := warningOf(r, "check_failed"); !strings.HasPrefix(text, "5 of 98 answers failed their check (regex); the first is request 19: wrong in 19") {
		t.Errorf("warning %q", text)
	}

	r = evaluate(t, s, meta, Options{Check: "regex", SlowNs: 1e9, SLO: objectivesOf(t, slos[0])})
	exactly(t, "goodput with slow ones", *r.Goodput[0].RequestsS, (100-failed-wrong-slow+both)/10.)
	if r.Slow == nil || *r.Slow != slow {
		t.Errorf("slow %v, want %d", r.Slow, slow)
	}
}

// An answer that nobody had time to check has not passed.
func TestUncheckedIsNotGood(t *testing.T) {
	s := recording.Slice{steadyTrace(0, 5, 1e8, 1e7), steadyTrace(1, 5, 1e8, 1e7), steadyTrace(2, 5, 1e8, 1e7), steadyTrace(3, 5, 1e8, 1e7)}
	s[0].Check = recording.Pass
	r := evaluate(t, s, recording.Meta{}, Options{Check: "command", SLO: objectivesOf(t, "ttft<=1s")})
	exactly(t, "goodput", *r.Goodput[0].Share, 0.25)
	if r.Checks == nil || r.Checks.Unchecked != 3 || r.Checks.Passed != 1 || r.Checks.Example != nil {
		t.Errorf("checks %+v", r.Checks)
	}
	if text := warningOf(r, "unchecked"); !strings.HasPrefix(text, "3 good answers were not checked (command)") {
		t.Errorf("warning %q", text)
	}
	// A recording that comes without a run file says by itself what was checked.
	r = evaluate(t, s, recording.Meta{}, Options{SLO: objectivesOf(t, "ttft<=1s")})
	exactly(t, "goodput", *r.Goodput[0].Share, 1)
	if r.Checks == nil || r.Checks.Unchecked != 0 || warningOf(r, "unchecked") != "" {
		t.Errorf("checks %+v", r.Checks)
	}
}

// What the recording says of slow answers counts where nothing else is declared.
func TestSlowAsRecorded(t *testing.T) {
	s := recording.Slice{steadyTrace(0, 5, 1e8, 1e7), steadyTrace(1, 5, 1e8, 1e7), failedTrace(2, recording.Timeout)}
	s[0].Slow, s[1].Slow = recording.Some(true), recording.Some(false)
	r := evaluate(t, s, recording.Meta{}, Options{SLO: objectivesOf(t, "ttft<=1s")})
	if r.Slow == nil || *r.Slow != 1 {
		t.Errorf("slow %v, want 1", r.Slow)
	}
	exactly(t, "goodput", *r.Goodput[0].Share, 1./3)
	r = evaluate(t, s, recording.Meta{}, Options{SlowNs: 1e9, SLO: objectivesOf(t, "ttft<=1s")})
	if r.Slow == nil || *r.Slow != 0 {
		t.Errorf("slow %v, want 0", r.Slow)
	}
}

// without is the recording of a run that checked nothing.
func without(s recording.Slice) recording.Slice {
	out := make(recording.Slice, len(s))
	for i := range s {
		out[i] = s[i].Clone()
		out[i].Check, out[i].CheckDetail = "", ""
	}
	return out
}

func warningOf(r *Result, code string) string {
	for _, w := range r.Warnings {
		if w.Code == code {
			return w.Text
		}
	}
	return ""
}

// A run that its failures stopped during the warm-up has nothing of nothing.
func TestFailuresBeforeAnythingWasMeasured(t *testing.T) {
	src := recording.Slice{{Phase: recording.Warmup, Outcome: recording.Refused}}
	r, err := Evaluate(src, recording.Meta{Interrupted: "too many requests failed", WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1)}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.Warnings {
		if strings.Contains(w.Text, "0 of 0") || strings.Contains(w.Text, "()") {
			t.Errorf("%+v", w)
		}
	}
	if len(r.Warnings) == 0 || r.Warnings[0].Code != "not_a_measurement" {
		t.Errorf("%+v", r.Warnings)
	}
}
