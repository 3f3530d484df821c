package schedule

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/internal/conf"
)

// The kinds of schedule. Any other Kind that looks like a path is a file of
// given times.
const (
	Poisson  = "poisson"  // exponential gaps
	Constant = "constant" // request k at k/rate
	Closed   = "closed"   // each user asks again when the answer has ended
	All      = "all"      // every request at time zero
	Given    = "given"    // times from a file or a data set
)

var kinds = []string{Poisson, Constant, Closed, All, Given}

// Rates outside these bounds are slips of the pen; within them, due times of
// any run fit 64 bits of nanoseconds.
const (
	rateMin = 1e-6
	rateMax = 1e6
)

const (
	defaultRequests    = 100
	defaultWarmup      = 200 // requests, or
	defaultWarmupShare = 10  // % of the measured phase, whichever is smaller
)

// Unset says whether o leaves open when to ask, so that a data set's own times
// may decide.
func (o *Options) Unset() bool {
	return o.Kind == "" && o.File == "" && o.Rate == 0 && o.Concurrency == 0
}

// Filled is o with its defaults written out, except for Warmup, whose default
// is not always one of the values that Warmup takes: see Schedule.WarmupText.
func (o Options) Filled() Options {
	kind := o.kind()
	if kind == Given && o.File == "" && o.Kind != Given {
		o.File = o.Kind
	}
	o.Kind = kind
	if o.Requests == 0 && o.Duration == 0 && kind != Given {
		o.Requests = defaultRequests
	}
	if o.Drain == "" {
		o.Drain = "load"
		if kind == Given || kind == All {
			o.Drain = "quiet"
		}
	}
	return o
}

// kind is the kind that o means, or o.Kind itself where it means none.
func (o *Options) kind() string {
	switch {
	case slices.Contains(kinds, o.Kind):
		return o.Kind
	case o.Kind != "":
		if filepath.Ext(o.Kind) != "" || strings.ContainsRune(o.Kind, os.PathSeparator) {
			return Given
		}
		return o.Kind
	case o.File != "":
		return Given
	case o.Concurrency != 0:
		return Closed
	default:
		return Poisson
	}
}

// Check finds everything that is wrong with o, without opening its file.
// Options that are Unset are a Poisson schedule without a rate.
func (o *Options) Check() []conf.Problem {
	kind := o.kind()
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(kinds, kind) {
		wrong("kind", "must be poisson, constant, closed, all or a file of given times, not %q", o.Kind)
		return found
	}
	if o.File != "" && kind != Given {
		wrong("file", "cannot be combined with kind %s", kind)
	} else if o.File != "" && o.Kind != "" && o.Kind != Given {
		wrong("file", "cannot be given beside the file %s", o.Kind)
	}
	open := kind == Poisson || kind == Constant
	switch {
	case open && o.Rate == 0:
		wrong("rate", "must be given: requests a second (or give concurrency, or a file of times)")
	case !open && o.Rate != 0:
		wrong("rate", "cannot be given: %s", noRate[kind])
	case open && !(o.Rate >= rateMin && o.Rate <= rateMax):
		wrong("rate", "must be between 0.000001 and 1000000 requests a second, not %v", o.Rate)
	}
	switch {
	case kind == Closed && o.Concurrency < 1:
		wrong("concurrency", "must be 1 or more users in a closed loop, not %d", o.Concurrency)
	case kind != Closed && o.Concurrency != 0:
		wrong("concurrency", "is for closed loops, not for kind %s; max_in_flight limits requests in flight", kind)
	}
	switch {
	case o.Requests < 0:
		wrong("requests", "must not be negative, not %d", o.Requests)
	case o.Requests > 0 && o.Duration > 0:
		wrong("requests", "cannot be given beside duration: each sets the length of the measured phase")
	}
	switch {
	case o.Duration < 0:
		wrong("duration", "must not be negative, not %s", conf.Duration(o.Duration))
	case o.Duration > 0 && kind == All:
		wrong("duration", "cannot be given where all requests are due at once; give requests")
	}
	w, err := parseWarmup(o.Warmup)
	switch {
	case err != nil:
		wrong("warmup", "%v", err)
	case kind == All && w.time > 0:
		wrong("warmup", "must be requests or %% where all requests are due at once, not %s", o.Warmup)
	}
	switch {
	case o.Drain != "" && o.Drain != "load" && o.Drain != "quiet":
		wrong("drain", "must be load or quiet, not %q", o.Drain)
	case o.Drain == "load" && (kind == Given || kind == All):
		wrong("drain", "must be quiet: nothing goes on after the last request of kind %s", kind)
	}
	return found
}

// noRate says why a kind takes no rate.
var noRate = map[string]string{
	Closed: "in a closed loop the answers set the rate",
	All:    "all requests are due at once",
	Given:  "given times have a rate of their own",
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

// A warmup is what Options.Warmup says: at most one of the fields is not 0.
type warmup struct {
	given bool
	count int64
	share float64 // per cent
	time  time.Duration
}

func parseWarmup(text string) (warmup, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return warmup{}, nil
	}
	w := warmup{given: true}
	var err error
	if share, ok := strings.CutSuffix(text, "%"); ok {
		w.share, err = strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err == nil && !(w.share >= 0 && w.share <= 100) {
			return w, fmt.Errorf("must be between 0%% and 100%%, not %s", text)
		}
	} else if w.count, err = strconv.ParseInt(text, 10, 64); err != nil {
		w.time, err = time.ParseDuration(text)
	}
	if err != nil {
		return w, fmt.Errorf("must be requests, a share or a time, such as 200, 10%% or 30s, not %q", text)
	}
	if w.count < 0 || w.time < 0 {
		return w, fmt.Errorf("must not be negative, not %s", text)
	}
	return w, nil
}

// A warmupEnd says when warm-up ends: with a number of requests, at a time, or
// at the earlier of the two. Negative means that this one does not end it.
type warmupEnd struct {
	count int64
	at    int64 // ns
	text  string
}

// warmupEnd works out what o.Warmup or its default means for a measured phase
// of so many requests, or of o.Duration where requests is 0.
func (o *Options) warmupEnd(requests int64) (warmupEnd, error) {
	w, err := parseWarmup(o.Warmup)
	if err != nil {
		return warmupEnd{}, fmt.Errorf("reading warmup: it %w", err)
	}
	byDefault := !w.given && o.kind() != Given && o.kind() != All
	share := w.share
	if byDefault {
		share = defaultWarmupShare
	}
	percent := strconv.FormatFloat(share, 'g', -1, 64) + " %"
	switch {
	case w.time > 0:
		return warmupEnd{count: -1, at: int64(w.time), text: conf.Duration(w.time)}, nil
	case w.count > 0:
		return warmupEnd{count: w.count, at: -1, text: requestsText(w.count)}, nil
	case share > 0 && requests > 0:
		n := int64(math.Round(share * float64(requests) / 100))
		if byDefault && n > defaultWarmup {
			return warmupEnd{count: defaultWarmup, at: -1, text: requestsText(defaultWarmup)}, nil
		}
		if n > 0 {
			return warmupEnd{count: n, at: -1, text: requestsText(n) + " (" + percent + ")"}, nil
		}
	case share > 0:
		at := time.Duration(math.Round(share * float64(o.Duration) / 100))
		end := warmupEnd{count: -1, at: int64(at), text: conf.Duration(at) + " (" + percent + ")"}
		if byDefault {
			end.count = defaultWarmup
			end.text += " or " + requestsText(defaultWarmup) + ", whichever comes first"
		}
		return end, nil
	}
	return warmupEnd{count: 0, at: -1, text: "none"}, nil
}

func requestsText(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return strconv.FormatInt(n, 10) + " requests"
}
