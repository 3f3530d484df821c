package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/internal/conf"
)

// A finding collects what is wrong with options of a kind.
type finding struct {
	kind  string
	found []conf.Problem
}

func (f *finding) wrong(path, format string, args ...any) {
	f.found = append(f.found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Check finds everything that is wrong with o, without opening its file.
// Options that are Unset are a Poisson schedule without a rate.
func (o *Options) Check() []conf.Problem {
	f := finding{kind: o.kind()}
	if !slices.Contains(kinds, f.kind) {
		f.wrong("kind", "must be poisson, gamma, weibull, constant, closed, all or a file of given times, not %q", o.Kind)
		if o.Rate != 0 && !inside(o.Rate, rateMin, rateMax) {
			f.wrong("rate", "must be between %s requests a second, not %v", bounds(rateMin, rateMax), o.Rate)
		}
		o.checkPhases(&f)
		return f.found
	}
	o.checkFile(&f)
	o.checkRate(&f)
	o.checkPlan(&f)
	o.checkBurst(&f)
	o.checkGaps(&f)
	o.checkUsers(&f)
	o.checkPhases(&f)
	return f.found
}

func (o *Options) checkFile(f *finding) {
	if o.File != "" && f.kind != Given {
		f.wrong("file", "cannot be combined with kind %s", f.kind)
	} else if o.File != "" && o.Kind != "" && o.Kind != Given {
		f.wrong("file", "cannot be given beside the file %s", o.Kind)
	}
	switch {
	case o.Speedup == 0:
	case f.kind != Given && !o.Unset(): // a data set's times may yet decide
		f.wrong("speedup", "is for given times, not for kind %s; change the rate", f.kind)
	case !inside(o.Speedup, rateMin, rateMax):
		f.wrong("speedup", "must be between %s, not %v; 2 is twice as fast", bounds(rateMin, rateMax), o.Speedup)
	}
}

// noRate says why a kind takes no rate.
var noRate = map[string]string{
	Closed: "in a closed loop the answers set the rate",
	All:    "all requests are due at once",
	Given:  "given times have a rate of their own",
}

func (o *Options) checkRate(f *finding) {
	switch why, without := noRate[f.kind]; {
	case without:
		for _, key := range []struct {
			path  string
			given bool
		}{{"rate", o.Rate != 0}, {"ramp", o.Ramp != nil}, {"steps", len(o.Steps) > 0}, {"burst", o.Burst != nil}} {
			if key.given {
				f.wrong(key.path, "cannot be given: %s", why)
			}
		}
	case o.Rate == 0 && !o.hasPlan():
		f.wrong("rate", "must be given: requests a second, as --rate has it (or give concurrency, ramp, steps or a file of times)")
	case o.Rate != 0 && !inside(o.Rate, rateMin, rateMax):
		f.wrong("rate", "must be between %s requests a second, not %v", bounds(rateMin, rateMax), o.Rate)
	}
}

func (o *Options) checkPlan(f *finding) {
	if !isOpen(f.kind) || !o.hasPlan() {
		return
	}
	if r := o.Ramp; r != nil {
		if o.Rate != 0 {
			f.wrong("ramp", "cannot be given beside rate: it has rates of its own")
		}
		if r.From != 0 && !inside(r.From, rateMin, rateMax) {
			f.wrong("ramp.from", "must be 0 or between %s requests a second, not %v", bounds(rateMin, rateMax), r.From)
		}
		if !inside(r.To, rateMin, rateMax) {
			f.wrong("ramp.to", "must be between %s requests a second, not %v: the rate stays there", bounds(rateMin, rateMax), r.To)
		}
		f.length("ramp.over", r.Over)
	}
	o.checkSteps(f)
	if o.Requests != 0 || o.Duration != 0 || len(f.found) > 0 {
		return
	}
	switch {
	case o.planned() == 0:
		f.wrong("duration", "must be given, or requests, where the last of the steps has no for")
	case o.plannedMeasured() <= 0:
		f.wrong("duration", "must be given, or requests: warm-up takes all of the %s that are planned", conf.Duration(o.planned()))
	}
}

func (o *Options) checkSteps(f *finding) {
	if len(o.Steps) == 0 {
		return
	}
	if o.Rate != 0 || o.Ramp != nil {
		f.wrong("steps", "cannot be given beside rate or ramp: they have rates of their own")
	}
	var all time.Duration
	for i, s := range o.Steps {
		path := "steps[" + strconv.Itoa(i) + "]"
		last := i == len(o.Steps)-1
		switch {
		case last && !inside(s.Rate, rateMin, rateMax):
			f.wrong(path+".rate", "must be between %s requests a second, not %v: the last rate goes on after the steps", bounds(rateMin, rateMax), s.Rate)
		case s.Rate != 0 && !inside(s.Rate, rateMin, rateMax):
			f.wrong(path+".rate", "must be 0 or between %s requests a second, not %v", bounds(rateMin, rateMax), s.Rate)
		}
		if last && s.For == 0 {
			break
		}
		f.length(path+".for", s.For)
		if all += min(s.For, lengthMax); all > lengthMax {
			f.wrong("steps", "must be at most %s in all", conf.Duration(lengthMax))
			break
		}
	}
}

func (o *Options) checkBurst(f *finding) {
	b := o.Burst
	switch {
	case b == nil || !isOpen(f.kind):
		return
	case o.hasPlan():
		f.wrong("burst", "cannot be given beside ramp or steps: it is a burst on a base rate")
	case !inside(b.Rate, rateMin, rateMax):
		f.wrong("burst.rate", "must be between %s requests a second, not %v", bounds(rateMin, rateMax), b.Rate)
	case b.Rate <= o.Rate:
		f.wrong("burst.rate", "must be more than the base rate of %v: it is the whole rate while a burst lasts, not %v", o.Rate, b.Rate)
	}
	f.length("burst.every", b.Every)
	f.length("burst.for", b.For)
	if b.For > 0 && b.Every > 0 && b.For >= b.Every {
		f.wrong("burst.for", "must be less than every, the time from start to start, which is %s, not %s", conf.Duration(b.Every), conf.Duration(b.For))
	}
}

func (o *Options) checkGaps(f *finding) {
	for _, g := range []struct {
		path, kind string
		value      float64
		min, max   float64
	}{{"burstiness", Gamma, o.Burstiness, burstinessMin, burstinessMax}, {"shape", Weibull, o.Shape, shapeMin, shapeMax}} {
		switch {
		case f.kind != g.kind && g.value != 0:
			f.wrong(g.path, "is for kind %s, not for kind %s", g.kind, f.kind)
		case f.kind == g.kind && g.value == 0:
			f.wrong(g.path, "must be given for kind %s: 1 is Poisson, less comes in clumps, more is more even", g.kind)
		case f.kind == g.kind && !inside(g.value, g.min, g.max):
			f.wrong(g.path, "must be between %s, not %v; 1 is Poisson", bounds(g.min, g.max), g.value)
		}
	}
}

func (o *Options) checkUsers(f *finding) {
	switch {
	case f.kind == Closed && o.Concurrency < 1:
		f.wrong("concurrency", "must be 1 or more users in a closed loop, not %d", o.Concurrency)
	case f.kind == Closed && o.Concurrency > usersMax:
		f.wrong("concurrency", "must be %d users at most, not %d: no machine has so many connections", usersMax, o.Concurrency)
	case f.kind != Closed && o.Concurrency != 0:
		f.wrong("concurrency", "is for closed loops, not for kind %s; max_in_flight limits requests in flight", f.kind)
	}
	switch {
	case o.Streams < 0 || o.Streams > streamsMax:
		f.wrong("streams", "must be between 1 and %d requests at once, not %d", streamsMax, o.Streams)
	case o.Streams > 1 && f.kind != Closed:
		f.wrong("streams", "is for closed loops, not for kind %s: a user's next query waits for all of its last", f.kind)
	}
	if _, err := parseThink(o.Think); err != nil {
		f.wrong("think", "%v", err)
	}
}

func (o *Options) checkPhases(f *finding) {
	switch {
	case o.Requests < 0:
		f.wrong("requests", "must not be negative, not %d", o.Requests)
	case o.Requests > 0 && o.Duration > 0:
		f.wrong("requests", "cannot be given beside duration: each sets the length of the measured phase")
	}
	switch {
	case o.Duration < 0:
		f.wrong("duration", "must not be negative, not %s", conf.Duration(o.Duration))
	case o.Duration > 0 && f.kind == All:
		f.wrong("duration", "cannot be given where all requests are due at once; give requests")
	}
	switch {
	case o.AtLeast < 0 || o.AtLeast > lengthMax:
		f.wrong("at_least", "must be between 0 and %s, not %s", conf.Duration(lengthMax), conf.Duration(o.AtLeast))
	case o.AtLeast > 0 && o.Duration > 0:
		f.wrong("at_least", "cannot be given beside duration, which says how long the measured phase is")
	case o.AtLeast > 0 && (f.kind == All || f.kind == Given || o.hasPlan()):
		f.wrong("at_least", "is for load that goes on at one rate or in a closed loop; here the times are set")
	}
	_, err := parseWarmup(o.Warmup)
	switch {
	case err != nil:
		f.wrong("warmup", "%v", err)
	case f.kind == All && o.Warmup != "" && o.Warmup != "0":
		f.wrong("warmup", "must be 0 where all requests are due at once: a phase is a stretch of time")
	}
	switch {
	case o.Drain != "" && o.Drain != "load" && o.Drain != "quiet":
		f.wrong("drain", "must be load or quiet, not %q", o.Drain)
	case o.Drain == "load" && (f.kind == Given || f.kind == All):
		f.wrong("drain", "must be quiet: nothing goes on after the last request of kind %s", f.kind)
	}
}

// length finds a stretch of time that is none.
func (f *finding) length(path string, d time.Duration) {
	if d <= 0 || d > lengthMax {
		f.wrong(path, "must be more than 0 and at most %s, not %s", conf.Duration(lengthMax), conf.Duration(d))
	}
}

// inside is false for what is not a number.
func inside(v, low, high float64) bool { return v >= low && v <= high }

func bounds(low, high float64) string {
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return text(low) + " and " + text(high)
}

// check is Check as one error.
func (o *Options) check() error {
	var lines []string
	for _, p := range o.Check() {
		lines = append(lines, p.Path+": "+p.Text)
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("making a schedule: %s", strings.Join(lines, "; "))
}
