// Package schedule says when to ask: moments drawn lazily from one seed, so
// that a rate may change under way, each with the phase that it belongs to.
package schedule

import "time"

// A Phase is a half-open stretch of schedule time; an arrival belongs to the
// phase of its due time.
type Phase string

const (
	Warmup   Phase = "warmup"   // until the server is in its stride
	Measured Phase = "measured" // what results are about
	Drain    Phase = "drain"    // load that goes on until the measured requests have ended
)

// An Arrival is one moment to ask.
type Arrival struct {
	Index   int64 // position in the schedule, from 0: the key of merging and loss accounting
	Due     int64 // ns since time zero; in a closed loop, when a user became free and had thought
	Session string
	Phase   Phase

	PromptTokens int32 // from a schedule file that has them; else 0
	OutputTokens int32
}

// Options say when to ask. The zero value is not a schedule: Kind decides which
// of the others are needed.
type Options struct {
	Kind        string        `yaml:"kind"`        // poisson, gamma, weibull, constant, closed, all, or a file of given times; its default follows from the others
	File        string        `yaml:"file"`        // CSV or JSONL of given times
	Speedup     float64       `yaml:"speedup"`     // of given times: 2 is twice as fast; default 1
	Rate        float64       `yaml:"rate"`        // requests a second, for poisson, gamma, weibull and constant
	Ramp        *Ramp         `yaml:"ramp"`        // instead of rate
	Steps       []Step        `yaml:"steps"`       // instead of rate
	Burst       *Burst        `yaml:"burst"`       // on top of rate
	Burstiness  float64       `yaml:"burstiness"`  // shape of gamma gaps: 1 is Poisson, less comes in clumps
	Shape       float64       `yaml:"shape"`       // of Weibull gaps: 1 is Poisson, less comes in clumps
	Concurrency int           `yaml:"concurrency"` // users of a closed loop
	Think       string        `yaml:"think"`       // from an answer to its user's next request, or its conversation's next turn: 2s or exponential:2s
	Streams     int           `yaml:"streams"`     // requests that a user of a closed loop sends at once, as one query; default 1
	Requests    int64         `yaml:"requests"`    // measured requests; default 100 where no duration is given
	Duration    time.Duration `yaml:"duration"`    // length of the measured phase; default that of ramp or steps
	AtLeast     time.Duration `yaml:"at_least"`    // besides requests: the measured phase goes on until one was due so long after its start; default 0
	Warmup      string        `yaml:"warmup"`      // 200, 10%, 30s or 0; default the smaller of 200 requests and 10 %, 0 with ramp or steps
	Drain       string        `yaml:"drain"`       // load or quiet; default load
}
