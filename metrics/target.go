package metrics

import (
	"fmt"
	"iter"

	"fermata/recording"
)

// byTarget judges the measured requests of each target by themselves, as if there
// were no others; nil where the recording names no targets. It goes over the source
// once more for each, so that no more is kept than for one.
func byTarget(src recording.Source, meta recording.Meta, opt Options, names []string) (map[string]TargetResult, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all := map[string]TargetResult{}
	opt.SaturationRPS = 0 // of all of them together
	opt.Cost = nil
	for _, name := range names {
		e, err := evaluateAll(ofTarget{src, name}, meta, opt)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", name, err)
		}
		r := e.result(nil)
		all[name] = TargetResult{Outcomes: r.Outcomes, Metrics: r.Metrics, SLO: r.SLO}
	}
	return all, nil
}

// ofTarget is a recording without the requests of other targets.
type ofTarget struct {
	recording.Source
	name string
}

func (s ofTarget) Traces(want recording.Columns) iter.Seq[recording.Trace] {
	return func(yield func(recording.Trace) bool) {
		for t := range s.Source.Traces(want) {
			if t.Target == s.name && !yield(t) {
				return
			}
		}
	}
}
