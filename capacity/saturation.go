package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// FewestAnswers is how many answers of a burst it takes to know the saturation.
const FewestAnswers = 40

// ServedRate is how many answers a second ended between the first quarter and the
// last 15 in 100 of them, while a system that was asked for all at once fills and
// empties no more. Ends are in ns, and are sorted; ok is false where there are
// fewer than FewestAnswers.
func ServedRate(ends []int64) (rps float64, ok bool) {
	if len(ends) < FewestAnswers {
		return 0, false
	}
	slices.Sort(ends)
	from, to := len(ends)/4, len(ends)*85/100
	if ends[to] <= ends[from] {
		return 0, false
	}
	return float64(to-from) * 1e9 / float64(ends[to]-ends[from]), true
}

// mostOver is how far the rate of ServedRate may lie above the average since the
// burst began. A system that holds h requests and serves mu a second ends the first
// of n after about h/mu, so that the ratio is 1 + h/(.85·n): a burst of four times
// what the system holds is under it.
const mostOver = 1.3

// Saturation is the rate at which a burst was served, in requests/s. It is sure where
// the burst was several times what the system holds. What fits into one batch ends
// together and says little: rps is then the average until 85 in 100 had ended, which
// is no more than the saturation. 0 where fewer than FewestAnswers came.
func (b *Burst) Saturation() (rps float64, sure bool) {
	if len(b.Ends) < FewestAnswers {
		return 0, false
	}
	rps, ok := ServedRate(b.Ends) // sorts
	to := len(b.Ends) * 85 / 100
	took := float64(b.Ends[to]-b.Began) / 1e9
	if took <= 0 {
		return 0, false
	}
	average := float64(to+1) / took
	if ok && rps <= mostOver*average {
		return rps, true
	}
	return average, false
}

// ReadSaturation is the saturation_rps of a Result as `fermata capacity -o json`
// wrote it, and the codes of doubts that its search left about that rate: rough,
// client_bound, unsteady, outside, saturation_guessed. The error says what is wrong
// with the document, as "has …" or "is …".
func ReadSaturation(document []byte) (rps float64, doubts []string, err error) {
	var one Result
	var several []json.RawMessage
	if err := json.Unmarshal(document, &several); err == nil {
		return 0, nil, fmt.Errorf("is no capacity result: it holds %d of them; give a file of one, or the rate that it says (saturation_rps)", len(several))
	}
	if err := json.Unmarshal(document, &one); err != nil {
		return 0, nil, errors.New("is no capacity result: give what `fermata capacity -o json` wrote, or a rate")
	}
	switch rps := one.SaturationRPS; {
	case one.Schema != Schema:
		return 0, nil, fmt.Errorf("has the schema %q, not %s: give what `fermata capacity -o json` wrote, or a rate", one.Schema, Schema)
	case rps == nil:
		return 0, nil, errors.New("does not say the saturation (saturation_rps): its search did not find it; give a rate")
	case !(*rps > 0) || math.IsInf(*rps, 0):
		return 0, nil, fmt.Errorf("has a saturation_rps of %v, which is no rate above 0", *rps)
	}
	told := map[string]bool{"rough": one.Rough, "client_bound": one.ClientBound, "unsteady": one.Held != nil && one.Held.Drift != nil && one.Held.Drift.Unsteady}
	for _, w := range one.Warnings {
		told[w.Code] = true
	}
	for _, code := range []string{"rough", "client_bound", "unsteady", "outside", "saturation_guessed"} {
		if told[code] {
			doubts = append(doubts, code)
		}
	}
	return *one.SaturationRPS, doubts, nil
}
