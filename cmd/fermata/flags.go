package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fermata/internal/conf"
	"fermata/report"
	"fermata/spec"
)

// specFlags are flags that stand for keys of the run file.
type specFlags map[string]spec.Flag

// addSpecFlags gives c the flags that wanted chooses, all of them texts: the run
// file's reader checks them, so that a flag and its key have one meaning and
// one error.
func addSpecFlags(c *cobra.Command, wanted func(spec.Flag) bool) specFlags {
	all := specFlags{}
	c.Flags().SortFlags = false
	for _, f := range spec.Flags() {
		if !wanted(f) {
			continue
		}
		all[f.Name] = f
		switch f.Kind {
		case spec.Once:
			c.Flags().StringArray(f.Name, nil, f.Usage)
		case spec.Switch:
			c.Flags().Bool(f.Name, false, f.Usage)
		case spec.Many:
			c.Flags().StringArray(f.Name, nil, f.Usage)
		default:
			c.Flags().String(f.Name, "", f.Usage)
		}
		if values := f.Values(); values != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return all
}

// settings are the flags that were given, and those of --set, in order.
func (all specFlags) settings(c *cobra.Command, set []string) ([]conf.Setting, error) {
	var sets []conf.Setting
	var mistake error
	c.Flags().Visit(func(f *pflag.Flag) {
		def, ok := all[f.Name]
		if !ok {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if values := list.GetSlice(); def.Kind == spec.Once && len(values) > 1 {
				mistake = usagef("--%s is given %d times; give it once", f.Name, len(values))
			}
			for _, v := range list.GetSlice() {
				if def.Path == "target.headers" && !strings.ContainsAny(v, ":=") {
					mistake = usagef("--header takes \"Name: value\", and one that was given has no colon") // it may be a key: not repeated
				}
				sets = append(sets, def.Setting(v))
			}
			return
		}
		sets = append(sets, def.Setting(f.Value.String()))
	})
	if mistake != nil {
		return nil, mistake
	}
	for _, text := range set {
		one, err := spec.Set(text)
		if err != nil {
			return nil, usageError{err}
		}
		sets = append(sets, one)
	}
	return sets, nil
}

// judgedScenario is the usage of --scenario where nothing is offered any more.
const judgedScenario = "MLPerf `SCENARIO` to judge by: single-stream, multi-stream, server, offline or interactive"

// isPricing says that a flag is about money.
func isPricing(f spec.Flag) bool {
	return slices.Contains([]string{"prices", "provider", "capacity", "utilisation", "billed-failures"}, f.Name)
}

// isReported says that a flag means something to a report or a comparison of recordings.
func isReported(f spec.Flag) bool { return isJudging(f) || isPricing(f) }

// isJudging says that a flag is about judging, not about running.
func isJudging(f spec.Flag) bool {
	return f.Path == "slo" || f.Path == "expect" || strings.HasPrefix(f.Path, "judge.") || strings.HasPrefix(f.Path, "mlperf.")
}

// addFormat gives c the flag for the format of its report.
func addFormat(c *cobra.Command, format *string, all report.Formats) {
	c.Flags().StringVarP(format, "output-format", "o", "terminal", "`FORMAT` of the report: "+strings.Join(all.Names(), ", "))
	_ = c.RegisterFlagCompletionFunc("output-format", cobra.FixedCompletions(all.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// completes are the values that a shell offers for a flag.
func completes(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// checkFormat refuses an unknown format, before anything is measured.
func checkFormat(format string, all report.Formats) error {
	if err := all.Check(format); err != nil {
		return usageError{err}
	}
	return nil
}

// told is how a report is given: as what on standard output, and where its page goes,
// if anywhere.
type told struct{ format, html string }

// addTold gives c the flags for it.
func addTold(c *cobra.Command, as *told, all report.Formats) {
	addFormat(c, &as.format, all)
	c.Flags().StringVar(&as.html, "html", "", "also write one self-contained page with pictures to `PATH`")
	_ = c.MarkFlagFilename("html", "html")
}

// check refuses what no report can be given as, before anything is measured.
func (as *told) check(c *cobra.Command, all report.Formats) error {
	if err := checkFormat(as.format, all); err != nil {
		return err
	}
	return checkHTML(c, &as.html)
}

func addQuiet(c *cobra.Command, quiet *bool) {
	c.Flags().BoolVar(quiet, "quiet", false, "no progress: nothing but warnings and errors beside the report")
}
