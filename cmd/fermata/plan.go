package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/report"
	"fermata/spec"
)

func newPlan(s streams) *cobra.Command {
	var format string
	var q experiment.Question
	texts := map[string]*string{}
	c := &cobra.Command{
		Use:   "plan",
		Short: "How many requests a claim needs",
		Long: `Plan says how many requests a claim needs, before a run: by MLPerf's formula and
its early stopping, by the bursts of a load near saturation, for a capacity, and
for a comparison of runs. With --have it says what so many requests can support.
Nothing is sent. docs/plan.md has the formulas.

A percentile is written p99, 99% or 0.99; shares 5% or 0.05.

Exit codes: 0 fine; 1 the tool failed; 2 wrong usage.`,
		Example: `  fermata plan --percentile p99
  fermata plan --percentile p99 --rate 9 --saturation 13.4
  fermata plan --have 500
  fermata plan --percentile p99 --capacity 5% --rate 9
  fermata plan --sd 1.9% --runs 10 --difference 1%`,
		Args: takes(0, 0, ""),
	}
	text := func(name, usage string) {
		texts[name] = c.Flags().String(name, "", usage)
	}
	text("percentile", "`WHICH` percentile the claim is about, p99 unless said")
	text("confidence", "`SHARE` of cases in which the claim is to hold, 99% unless said")
	text("margin", "`SHARE` to which the share beyond the percentile is to be known, a twentieth of it unless said")
	text("capacity", "`SHARE` to which a capacity is to be known, such as 5%")
	text("sd", "standard deviation of the differences of pilot pairs, a `SHARE`")
	text("difference", "difference that a comparison is to find, a `SHARE`")
	text("rate", "`REQUESTS` a second, for the time that it takes")
	text("saturation", "highest rate that the system serves, requests a second, or a capacity result that has it: `RATE|FILE`, for the bursts at the rate")
	text("tau", "`REQUESTS` in a row that are worth one, instead of a saturation")
	text("have", "what `N` requests can support")
	text("runs", "`PAIRS` of runs of a comparison, 10 unless said")
	addFormat(c, &format, report.PlanFormats)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format, report.PlanFormats); err != nil {
			return err
		}
		for name, to := range map[string]*float64{
			"confidence": &q.Confidence, "margin": &q.Margin, "capacity": &q.Capacity, "sd": &q.SD, "difference": &q.Difference,
		} {
			if c.Flags().Changed(name) {
				v, err := shareOf("--"+name, *texts[name])
				if err != nil {
					return err
				}
				*to = v
			}
		}
		if c.Flags().Changed("percentile") {
			v, err := percentileOf(*texts["percentile"])
			if err != nil {
				return usagef("--percentile: %w", err)
			}
			q.Percentile = v
		}
		for name, to := range map[string]*float64{"rate": &q.Rate, "tau": &q.Tau} {
			if c.Flags().Changed(name) {
				v, err := strconv.ParseFloat(strings.TrimSpace(*texts[name]), 64)
				if err != nil {
					return usagef("--%s must be a number, not %q", name, *texts[name])
				}
				if !(v > 0) {
					return usagef("--%s must be more than 0, not %s", name, *texts[name])
				}
				*to = v
			}
		}
		for name, to := range map[string]*int64{"have": &q.Have, "runs": &q.Runs} {
			if c.Flags().Changed(name) {
				v, err := wholeOf("--"+name, *texts[name])
				if err != nil {
					return err
				}
				*to = v
			}
		}
		if c.Flags().Changed("saturation") {
			var known spec.Saturation
			err := known.UnmarshalText([]byte(*texts["saturation"]))
			if err == nil {
				err = known.Load()
			}
			if err != nil {
				return usagef("--saturation: %w", err)
			}
			if !(known.RPS > 0) {
				return usagef("--saturation must be more than 0, not %s", *texts["saturation"])
			}
			q.Saturation, q.Doubts = known.RPS, known.Doubts
		}
		p, err := q.Answer()
		if err != nil {
			return usageError{err}
		}
		return report.WritePlan(format, s.out, p, look(s.out))
	}
	return c
}

// wholeOf reads a whole number above 0; 1e6 is one too.
func wholeOf(flag, text string) (int64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53:
		return 0, usagef("%s must be a whole number, not %q", flag, text)
	case !(v > 0):
		return 0, usagef("%s must be more than 0, not %s", flag, text)
	}
	return int64(v), nil
}

// percentileOf reads p99, 99%, 99 or 0.99 as 0.99.
func percentileOf(text string) (float64, error) {
	t := strings.TrimSpace(text)
	number, named := strings.CutPrefix(strings.ToLower(t), "p")
	number, percent := strings.CutSuffix(strings.TrimSpace(number), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no percentile: write p99, 99%% or 0.99", t)
	case (named || percent) && v > 0 && v < 100:
		return hundredth(number), nil
	case !named && !percent && v > 0 && v < 1:
		return v, nil
	case !named && !percent && v >= 50 && v < 100:
		return hundredth(number), nil
	case !named && !percent && v >= 1 && v < 50:
		return 0, fmt.Errorf("%s is neither a share, which lies below 1, nor a percentile that is usual: write p%s for the value that %s %% of requests stay below, or a share such as 0.99", t, t, t)
	}
	return 0, fmt.Errorf("a percentile lies between p0 and p100, both excluded, so there is none of %s: write p99, 99%% or 0.99", t)
}

// hundredth is a hundredth of a number, rounded once: 99.9 gives 0.999.
func hundredth(number string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(number)+"e-2", 64)
	if err != nil { // it has an exponent already
		v, _ = strconv.ParseFloat(strings.TrimSpace(number), 64)
		v /= 100
	}
	return v
}
