package spec

import (
	"slices"
	"strings"

	"fermata/schedule"
)

// preferWhen is prefer for the schedule. Each of rate, ramp, steps, concurrency
// and file says when to ask; one that is set takes the place of the others and
// of what belongs to them.
func preferWhen(s *schedule.Options, converse bool, given func(path string) bool) {
	set := func(key string) bool { return given("schedule." + key) }
	drop := func(key string, clear func()) {
		if !set(key) {
			clear()
		}
	}
	if set("duration") && !set("requests") {
		s.Requests, s.AtLeast = 0, 0
	}
	if set("requests") && !set("duration") {
		s.Duration = 0
	}
	rate, plan, closed, file := set("rate"), set("ramp") || set("steps"), set("concurrency"), set("file")
	switch open := rate || plan; {
	case !open && !closed && !file:
	case open && (closed || file) || closed && file:
		// Set together: what contradicts what is for the room to say.
	default:
		if !rate {
			drop("rate", func() { s.Rate = 0 })
		}
		drop("ramp", func() { s.Ramp = nil })
		drop("steps", func() { s.Steps = nil })
		drop("concurrency", func() { s.Concurrency = 0 })
		if !closed {
			drop("streams", func() { s.Streams = 0 })
		}
		drop("file", func() { s.File = "" })
		if !rate {
			drop("burst", func() { s.Burst = nil })
		}
		if !open {
			drop("burstiness", func() { s.Burstiness = 0 })
			drop("shape", func() { s.Shape = 0 })
		}
		if !closed && !converse {
			drop("think", func() { s.Think = "" })
		}
		if !file {
			drop("speedup", func() { s.Speedup = 0 })
		} else if s.Drain == "load" {
			drop("drain", func() { s.Drain = "" })
		}
		if openKinds := []string{schedule.Poisson, schedule.Gamma, schedule.Weibull, schedule.Constant}; !open || !slices.Contains(openKinds, s.Kind) {
			drop("kind", func() { s.Kind = "" })
		}
	}
	if set("kind") && s.Kind == schedule.All && !open(set) {
		preferAll(s, drop)
		if !converse {
			drop("think", func() { s.Think = "" })
		}
	}
	preferGaps(s, set)
	if set("kind") && !file {
		s.File = ""
	}
}

// open says that one of the keys is set that say when to ask.
func open(set func(string) bool) bool {
	return slices.ContainsFunc([]string{"rate", "ramp", "steps", "concurrency", "file"}, set)
}

// preferAll is preferWhen for everything at once, which takes the place of whatever
// spreads requests over time.
func preferAll(s *schedule.Options, drop func(string, func())) {
	drop("rate", func() { s.Rate = 0 })
	drop("ramp", func() { s.Ramp = nil })
	drop("steps", func() { s.Steps = nil })
	drop("concurrency", func() { s.Concurrency = 0 })
	drop("streams", func() { s.Streams = 0 })
	drop("burst", func() { s.Burst = nil })
	drop("burstiness", func() { s.Burstiness = 0 })
	drop("shape", func() { s.Shape = 0 })
	drop("speedup", func() { s.Speedup = 0 })
	drop("warmup", func() { s.Warmup = "" })
	drop("drain", func() { s.Drain = "" })
}

// preferGaps is preferWhen for the kinds of gaps.
func preferGaps(s *schedule.Options, set func(string) bool) {
	switch {
	case set("kind") && s.Kind != schedule.Gamma && !set("burstiness"):
		s.Burstiness = 0
	case set("burstiness") && !set("kind"):
		s.Kind = ""
	}
	switch {
	case set("kind") && s.Kind != schedule.Weibull && !set("shape"), set("burstiness") && !set("shape"):
		s.Shape = 0
	case set("shape") && !set("kind"):
		s.Kind = ""
		if !set("burstiness") {
			s.Burstiness = 0
		}
	}
}

// below says whether a path is a key or lies under it.
func below(path, key string) bool {
	rest, ok := strings.CutPrefix(path, key)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
