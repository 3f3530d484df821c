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
	Gamma    = "gamma"    // gamma gaps of a given burstiness
	Weibull  = "weibull"  // Weibull gaps of a given shape
	Constant = "constant" // request k at k/rate
	Closed   = "closed"   // each user asks again when the answer has ended
	All      = "all"      // every request at time zero
	Given    = "given"    // times from a file or a data set
)

var kinds = []string{Poisson, Gamma, Weibull, Constant, Closed, All, Given}

// Rates and shapes outside these bounds are slips of the pen; within them, due
// times of any run fit 64 bits of nanoseconds.
const (
	rateMin       = 1e-6
	rateMax       = 1e6
	burstinessMin = 0.01 // a coefficient of variation of 10
	burstinessMax = 1e4
	shapeMin      = 0.2 // one of 15.8
	shapeMax      = 100
	lengthMax     = 10_000 * time.Hour
	usersMax      = 100_000
	streamsMax    = 10_000
)

const (
	defaultRequests    = 100
	defaultWarmup      = 200 // requests, or
	defaultWarmupShare = 10  // % of the measured phase, whichever is smaller
)

// Unset says whether o leaves open when to ask, so that a data set's own times
// may decide.
func (o *Options) Unset() bool {
	return o.Kind == "" && o.File == "" && o.Rate == 0 && !o.hasPlan() && o.Burst == nil &&
		o.Burstiness == 0 && o.Shape == 0 && o.Concurrency == 0
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
		o.Duration = o.plannedMeasured()
		if !o.hasPlan() {
			o.Duration, o.Requests = 0, defaultRequests
		}
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
	case o.Burstiness != 0:
		return Gamma
	case o.Shape != 0:
		return Weibull
	default:
		return Poisson
	}
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
	byDefault := !w.given && o.kind() != Given && o.kind() != All && !o.hasPlan()
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
