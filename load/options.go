// Package load drives a workload through a schedule over the wire and records
// what happens: phases, stopping, live numbers. It joins wire and dialect.
package load

import "time"

// Options say how the load is driven. The zero value never holds a request
// back and uses the documented time-outs.
type Options struct {
	MaxInFlight     int           `yaml:"max_in_flight"`     // most requests in flight; 0 means no limit
	Timeout         time.Duration `yaml:"timeout"`           // for a request in all; default 10m
	SilenceTimeout  time.Duration `yaml:"silence_timeout"`   // without a token, from the first one on; default 60s
	StopIfFailed    string        `yaml:"stop_if_failed"`    // share of failed requests that ends the run, such as 50%
	StopAtPrecision []string      `yaml:"stop_at_precision"` // percentiles with the width of their intervals, such as ttft.p99<=5%; all of them reached end the measured phase
	MaxCost         string        `yaml:"max_cost"`          // amount that the run may cost, in the currency of its prices, such as 2.50; default no bound
	Retries         int           `yaml:"retries"`           // tries of a failed request after its first; default 0
	TimeScale       float64       `yaml:"time_scale"`        // simulated seconds a second, of a simulator behind a port; default what it says
	ProbeSaturation bool          `yaml:"probe_saturation"`  // ask in a burst before the run how many requests/s are served at most; default no
	WaitReady       time.Duration `yaml:"wait_ready"`        // how long to wait for the server before starting; default 0, not at all
}
