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

// ReadSaturation is the saturation_rps of a Result as `fermata capacity -o json`
// wrote it. The error says what is wrong with the document, as "has …" or "is …".
func ReadSaturation(document []byte) (rps float64, err error) {
	var one struct {
		Schema        string   `json:"schema"`
		SaturationRPS *float64 `json:"saturation_rps"`
	}
	var several []json.RawMessage
	if err := json.Unmarshal(document, &several); err == nil {
		return 0, fmt.Errorf("is no capacity result: it holds %d of them; give a file of one, or the rate that it says (saturation_rps)", len(several))
	}
	if err := json.Unmarshal(document, &one); err != nil {
		return 0, errors.New("is no capacity result: give what `fermata capacity -o json` wrote, or a rate")
	}
	switch rps := one.SaturationRPS; {
	case one.Schema != Schema:
		return 0, fmt.Errorf("has the schema %q, not %s: give what `fermata capacity -o json` wrote, or a rate", one.Schema, Schema)
	case rps == nil:
		return 0, errors.New("does not say the saturation (saturation_rps): its search did not find it; give a rate")
	case !(*rps > 0) || math.IsInf(*rps, 0):
		return 0, fmt.Errorf("has a saturation_rps of %v, which is no rate above 0", *rps)
	}
	return *one.SaturationRPS, nil
}
