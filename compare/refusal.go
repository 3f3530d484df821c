package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fermata/metrics"
)

// refusal says why the systems cannot be compared; empty where they can.
func refusal(systems []System) string {
	for _, find := range []func([]System) string{sameRun, clientBound, otherLoad, nobodyAnswered} {
		if why := find(systems); why != "" {
			return why
		}
	}
	return ""
}

// sameRun finds a recording that stands on two sides.
func sameRun(systems []System) string {
	var all []*Run
	for s := range systems {
		for r := range systems[s].Runs {
			one := &systems[s].Runs[r]
			for _, other := range all {
				if one.Path != "" && one.Path == other.Path {
					return fmt.Sprintf("%s is given twice: a run does not differ from itself", one.Name)
				}
				if sameToTheNs(one, other) {
					return fmt.Sprintf("%s and %s hold the same recording, to the nanosecond: there is nothing to compare", other.Name, one.Name)
				}
			}
			all = append(all, one)
		}
	}
	return ""
}

// sameToTheNs says that every request of both runs went the same way, and that at
// least one got a token: failures may well be alike.
func sameToTheNs(a, b *Run) bool {
	tokens := false
	same := slices.EqualFunc(a.Requests, b.Requests, func(x, y metrics.Request) bool {
		tokens = tokens || x.TTFT.OK
		return x.Index == y.Index && x.Due == y.Due && x.Good == y.Good && x.TTFT == y.TTFT && x.TPOT == y.TPOT && x.E2E == y.E2E && x.GapLongest == y.GapLongest
	})
	return same && tokens
}

func clientBound(systems []System) string {
	for s := range systems {
		for r := range systems[s].Runs {
			one := &systems[s].Runs[r]
			if h := one.Result.Health; h.ClientBound {
				return fmt.Sprintf("in %s this machine was the bottleneck, not the server (%s): its times are not the server's; run it again with a lower load or on a faster machine", one.Name, strings.Join(h.Reasons, "; "))
			}
		}
	}
	return ""
}

// otherLoad finds two runs that asked for something else, or otherwise.
func otherLoad(systems []System) string {
	first := &systems[0].Runs[0]
	for s := range systems {
		for r := range systems[s].Runs {
			one := &systems[s].Runs[r]
			if first.Load == nil || one.Load == nil {
				continue
			}
			if d := differences(first.Load, one.Load); len(d) > 0 {
				return fmt.Sprintf("%s and %s were offered different loads: %s", first.Name, one.Name, strings.Join(d, "; "))
			}
		}
	}
	return ""
}

func differences(a, b []Fact) (found []string) {
	other := map[string]string{}
	for _, f := range b {
		other[f.Key] = f.Value
	}
	for _, f := range a {
		if v := other[f.Key]; v != f.Value {
			found = append(found, fmt.Sprintf("%s is %s and %s", f.Key, orUnset(f.Value), orUnset(v)))
		}
		delete(other, f.Key)
	}
	for _, k := range slices.Sorted(maps.Keys(other)) {
		if other[k] != "" {
			found = append(found, fmt.Sprintf("%s is unset and %s", k, other[k]))
		}
	}
	return found
}

func orUnset(v string) string {
	if v == "" {
		return "unset"
	}
	return v
}

func nobodyAnswered(systems []System) string {
	for s := range systems {
		for _, r := range systems[s].Runs {
			if r.Result.Outcomes["ok"] > 0 {
				return ""
			}
		}
	}
	return "no request succeeded in any of the runs: there are no answers to compare; `fermata report` says how they failed"
}

// cautions are what a careful reader must know of the runs beside each other.
func cautions(systems []System) []metrics.Warning {
	var all []metrics.Warning
	add := func(code, help, format string, args ...any) {
		all = append(all, metrics.Warning{Code: code, Text: fmt.Sprintf(format, args...), Help: help})
	}
	if w := missingLabels(systems); w != nil {
		all = append(all, *w)
	}
	scale := systems[0].Runs[0].Result.Window.TimeScale
	for s := range systems {
		good := int64(0)
		for _, r := range systems[s].Runs {
			good += r.Result.Outcomes["ok"]
			if why := r.Result.Run.Interrupted; why != "" {
				add("interrupted", "What was asked until then is compared.", "%s was interrupted: %s", r.Name, why)
			}
			if d := r.Result.Load.Drift; d != nil && d.Unsteady {
				add("drifts", "A load that grows without end has no percentiles: compare at a lower rate.", "in %s requests piled up until the end", r.Name)
			}
			for _, w := range r.Result.Warnings {
				if w.Code == "saturation_doubtful" {
					add(w.Code, w.Help, "in %s %s", r.Name, w.Text)
				}
			}
			if now := r.Result.Window.TimeScale; now < scale || now > scale {
				add("time_scale", "", "%s is in simulated time of another speed than %s", r.Name, systems[0].Runs[0].Name)
			}
			if r.Load == nil {
				add("load_unknown", "Make sure that the same was asked of both.", "%s has no run file: nothing says what load it was offered", r.Name)
			}
		}
		all = append(all, costCautions(&systems[s])...)
		if good == 0 {
			add("no_answers", "`fermata report` says how they failed.", "no request of %s succeeded: only failures can be compared", systems[s].Name)
		}
	}
	return all
}

// own are labels that Fermata gives itself.
var own = map[string]bool{"transport": true, "transport_why": true}

// missingLabels warns where one system says of itself what another does not, and
// where nothing says what differs.
func missingLabels(systems []System) *metrics.Warning {
	keys := map[string]bool{}
	for s := range systems {
		for _, r := range systems[s].Runs {
			for k := range r.Result.Run.Labels {
				keys[k] = keys[k] || !own[k]
			}
		}
	}
	var missing []string
	differ := false
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !keys[k] {
			continue
		}
		var without []string
		for s := range systems {
			value, has := systems[s].Runs[0].Result.Run.Labels[k]
			if !has {
				without = append(without, systems[s].Name)
			}
			differ = differ || value != systems[0].Runs[0].Result.Run.Labels[k]
		}
		if len(without) > 0 {
			missing = append(missing, fmt.Sprintf("%s (not in %s)", k, strings.Join(without, ", ")))
		}
	}
	first := systems[0].Runs[0].Result.Run
	for s := range systems {
		r := systems[s].Runs[0].Result.Run
		differ = differ || r.Target != first.Target || r.Model != first.Model
	}
	const help = "Name what differs with --label, such as --label engine=1.4 --label gpu=H100."
	switch {
	case len(missing) > 0:
		return &metrics.Warning{Code: "labels_missing", Text: "labels that not all have: " + strings.Join(missing, ", "), Help: help}
	case !differ:
		return &metrics.Warning{Code: "labels_missing", Text: "target, model and labels are the same: nothing says what differs between the systems", Help: help}
	}
	return nil
}
