package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/report"
)

func newReport(s streams) *cobra.Command {
	var as told
	var show []int64
	why := int64(-1)
	c := &cobra.Command{
		Use:   "report RUN…",
		Short: "Tables, a page with pictures and other formats from recordings",
		Long: `Report judges recordings again, as they were judged when they were made or under
other objectives, deadlines, paces and target gaps. Several runs are shown side
by side. RUN is a run's folder, or a requests.parquet.

With -o junit each objective is a test case of a CI system: missed is a failure,
open an error. With -o prometheus the figures are in its text format.
docs/formats.md has both.

--html writes a page with pictures beside that: one file that needs no network
and opens in any browser. docs/report.md describes it.

Exit codes as of run: 3 an objective was missed or no request succeeded, 4 the
measurement cannot carry the claim.`,
		Example: `  fermata report runs/20261129-120000
  fermata report runs/a runs/b --slo "ttft<=1s @99%" --target-gap 33ms
  fermata report runs/a --prices prices.yaml --capacity capacity.json
  fermata report runs/a runs/b --html report.html
  fermata report runs/a -o json > result.json`,
		Args: takes(1, -1, "one RUN or more"),
	}
	flags := addSpecFlags(c, isReported)
	c.Flags().Lookup("scenario").Usage = judgedScenario
	addTold(c, &as, report.ResultFormats)
	c.Flags().Int64SliceVar(&show, "request", nil, "put every arrival of `REQUEST` on the page too, where it holds a sample only")
	c.Flags().Int64Var(&why, "why", -1, "tell only why `REQUEST` of a simulated run was silent for longest")
	for _, name := range []string{"request", "why"} {
		c.Flags().Lookup(name).DefValue = "0" // help shows no zero: what stands for none is nobody's to give
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.ResultFormats); err != nil {
			return err
		}
		if c.Flags().Changed("why") {
			return s.why(args, why, as.format)
		}
		if len(show) > 0 && as.html == "" {
			return usagef("--request is about the page: give --html PATH too")
		}
		sets, err := flags.settings(c, nil)
		if err != nil {
			return err
		}
		var results []*metrics.Result
		for _, dir := range args {
			r, err := experiment.Judge(dir, sets, version())
			if err != nil {
				return err
			}
			results = append(results, r)
		}
		metrics.Contrasts(results)
		var drawn []report.Portrayed
		if as.html != "" { // before anything is printed, since there may be no such request
			if drawn, err = experiment.Portray(args, sets, results, show); err != nil {
				return err
			}
			if err := drawable(drawn, show); err != nil {
				return err
			}
		}
		if err := s.report(as.format, results); err != nil {
			return err
		}
		if as.html != "" {
			if err := s.writePage(as.html, drawn, nil); err != nil {
				return err
			}
		}
		return worst(results)
	}
	return c
}

// why tells one story.
func (s streams) why(args []string, request int64, format string) error {
	if len(args) != 1 {
		return usagef("--why is about a request of one run, not of %d", len(args))
	}
	if format != "terminal" && format != "json" {
		return usagef("--why is told as a sentence, or with -o json, not as %s", format)
	}
	silence, err := experiment.Why(args[0], request)
	if err != nil {
		return err
	}
	if format == "json" {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(silence)
	}
	lines := []string{silence.Story}
	if width := look(s.out).Width; width > 0 {
		lines = term.Wrap(silence.Story, width)
	}
	_, err = fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	return err
}

// worst is the exit code of several results: 4 before 3.
func worst(results []*metrics.Result) error {
	var missed error
	for _, r := range results {
		switch err := judged(r); err {
		case status(exitUnclear):
			return err
		case nil:
		default:
			missed = err
		}
	}
	return missed
}
