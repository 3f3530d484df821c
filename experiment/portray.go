package experiment

import (
	"fmt"
	"slices"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
)

// Portray adds to the results of the recordings in dirs, judged under the same
// settings, what pictures of them are drawn from. The requests of show and those behind
// blind spots are kept with all their arrivals, as are some others by each run's seed:
// together as many as one page should hold, however many the runs are.
func Portray(dirs []string, sets []conf.Setting, results []*metrics.Result, show []int64) ([]report.Portrayed, error) {
	room := metrics.PortraitOptions{Lives: max(2000/len(dirs), 50), Arrivals: max(200_000/len(dirs), 5000)}
	var all []report.Portrayed
	for i, dir := range dirs {
		room.Show = slices.Clone(show)
		for _, spot := range results[i].BlindSpots {
			room.Show = append(room.Show, spot.Requests...)
		}
		p, err := portray(dir, sets, results[i], room)
		if err != nil {
			return nil, err
		}
		all = append(all, report.Portrayed{Result: results[i], Portrait: p})
	}
	return all, nil
}

func portray(dir string, sets []conf.Setting, r *metrics.Result, o metrics.PortraitOptions) (*metrics.Portrait, error) {
	a, err := reopen(dir, sets)
	if err != nil {
		return nil, err
	}
	defer a.rec.Close()
	o.Seed = a.spec.Seed
	p, err := metrics.Portray(a.rec, a.meta, r, a.judge, o)
	if err != nil {
		return nil, fmt.Errorf("drawing %s: %w", dir, err)
	}
	return p, nil
}
