package experiment

import (
	"encoding/json"
	"fmt"

	"fermata/metrics"
	"fermata/workload"
)

// datasetFacts are what became of the data set, as the recording keeps them; empty
// without one.
func datasetFacts(w *workload.Workload, rounds int64) (string, error) {
	if w.Rows() == 0 {
		return "", nil
	}
	skips := w.Skipped()
	d := metrics.DataSet{
		Rows: w.Rows(), Rounds: rounds, Unreadable: skips.Bad, FirstUnreadable: skips.FirstBad, Empty: skips.Empty, Estimated: w.Estimated(),
	}
	if c, ok := w.Cut(); ok {
		d.Filters = &metrics.Filters{
			Rows: c.Rows, Kept: c.Kept, Dropped: map[string]int64{},
			InputBefore: c.Before.Input, InputAfter: c.After.Input, OutputBefore: c.Before.Output, OutputAfter: c.After.Output,
		}
		for name, n := range c.Dropped() {
			d.Filters.Dropped[name] = n
		}
	}
	b, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("writing down what became of the data set: %w", err)
	}
	return string(b), nil
}
