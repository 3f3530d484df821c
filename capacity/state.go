package capacity

import "math"

// Phases of a search.
const (
	probing   = "probe"
	searching = "search"
	fixed     = "fixed"
	done      = "done"
)

// A State is all that a search knows, as JSON that a later process can go on from.
// The zero value is a search that has not begun.
type State struct {
	Phase string `json:"phase,omitempty"` // probe, search, fixed or done

	Probe   *Probe  `json:"probe,omitempty"`
	Steps   []Step  `json:"steps,omitempty"`   // of the search, or Bisect's trials
	LnRPS   float64 `json:"ln_rps,omitempty"`  // that comes next
	Descent int     `json:"descent,omitempty"` // steps that only led down to where the objective can be met
	Floor   int     `json:"floor,omitempty"`   // blocks in a row at the lowest rate, each of which missed
	Fixed   Fixed   `json:"fixed"`

	Low  *float64 `json:"low,omitempty"` // of Bisect, ln of the highest rate that passed
	High *float64 `json:"high,omitempty"`

	Sent     int64 `json:"sent"` // requests of all, with warm-ups and the probe
	Answered int64 `json:"answered"`
	Failed   int64 `json:"failed"`
	Turned   int64 `json:"turned"`
	Misses   int64 `json:"misses"`             // with warm-ups
	Unjudged int64 `json:"unjudged,omitempty"` // answers whose prompts have no first-token deadline; with warm-ups
	Dead     int   `json:"dead,omitempty"`     // failures in a row that are not refusals for the load
	BusyNs   int64 `json:"busy_ns"`            // on the plant's clock, in all

	BoundBy string `json:"bound_by,omitempty"` // why whoever asked was the bottleneck; empty where not

	Ending Ending `json:"ending,omitempty"` // why it ended, empty while it goes on
	Why    string `json:"why,omitempty"`
}

// Rate is the one that is asked at, in requests/s; 0 before the first.
func (s *State) Rate() float64 {
	switch {
	case s.Phase == fixed || s.Phase == done:
		return math.Exp(s.Fixed.LnRPS)
	case s.Probe == nil:
		return 0
	}
	return math.Exp(s.LnRPS)
}

// Over says that the search is over, and not only interrupted or stopped.
func (s *State) Over() bool {
	return s.Ending != "" && s.Ending != Interrupted && s.Ending != Stopped
}

// A Probe is what a burst, or a climb where that told nothing, said of saturation.
type Probe struct {
	RPS      float64 `json:"rps,omitempty"` // 0 where nothing is known
	Asked    int     `json:"asked"`         // by the last burst
	Answered int     `json:"answered"`
	Turned   int     `json:"turned,omitempty"`
	Guessed  bool    `json:"guessed,omitempty"` // even the largest burst fitted into one batch: RPS is its average, and the saturation may be higher
	Climbed  bool    `json:"climbed,omitempty"` // the rate was doubled until requests failed
}

// A Step is one block of a search, or one trial of Bisect.
type Step struct {
	Rate     float64 `json:"rate"`               // requests/s that were set
	Realised float64 `json:"realised,omitempty"` // that came of it
	Requests int     `json:"requests"`           // outcomes that became known meanwhile
	Misses   int     `json:"misses"`
	Drained  bool    `json:"drained,omitempty"` // the queue was so long that nothing more was asked until it was empty
}

// Fixed is what is known of the run at the rate found.
type Fixed struct {
	LnRPS     float64 `json:"ln_rps,omitempty"`
	Requests  int     `json:"requests"`            // outcomes, without the warm-up
	Misses    []int   `json:"misses,omitempty"`    // which of them missed, counted from 0
	Unjudged  int     `json:"unjudged,omitempty"`  // answers whose prompts have no first-token deadline, besides Requests
	Withdrawn int     `json:"withdrawn,omitempty"` // that failed after they had met the objective
	Ahead     []int   `json:"ahead,omitempty"`     // requests that each found under way
	Sent      int     `json:"sent"`                // with warm-ups
	Tokens    int64   `json:"tokens"`              // of them
	SpanNs    int64   `json:"span_ns"`             // in which they were asked
}

// An Ending is why a search is over.
type Ending string

// The endings.
const (
	Found        Ending = "found"         // a rate with its interval
	NeverMissed  Ending = "never_missed"  // the objective held at every rate that was tried
	AlwaysMiss   Ending = "always_missed" // it fails even at a twentieth of saturation
	Unanswered   Ending = "unanswered"    // nothing was ever answered
	NoneJudged   Ending = "none_judged"   // no answer could be judged: none of the prompts has a first-token deadline
	Died         Ending = "died"          // it answered, and then no more
	Stopped      Ending = "stopped"       // Enough said so, such as for money
	Interrupted  Ending = "interrupted"   // and can go on
	NotBracketed Ending = "not_bracketed" // judged again, and too far from the rates that were asked
	Unsettled    Ending = "unsettled"     // Bisect took all its trials without an end
)
