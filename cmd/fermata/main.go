// Fermata measures how large-language-model servers feel to the people who read
// from them: it offers a load to a streaming endpoint, records when every token
// arrived, and says what can be claimed.
//
// What goes where: standard output carries results and nothing else; progress,
// notices and errors go to standard error. Colour and the live view appear on a
// terminal only, and NO_COLOR is respected. Errors are one sentence each,
// followed by a line that says what to do where there is something to do.
//
// Exit codes: 0 fine; 1 the tool or its first request failed; 2 wrong usage;
// 3 an objective was missed, or no request succeeded; 4 the measurement cannot
// carry the claim; 130 interrupted, with the recording intact. Where several
// hold: 130, 1, 4, 3.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/recording"
)

const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitUnclear     = 4
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// streams are where a command speaks.
type streams struct {
	out, err io.Writer
	progress string // how it is told; empty is auto
	quiet    bool   // nothing but warnings and errors, and where results are that nobody could know
}

// say prints a notice.
func (s streams) say(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

// tell prints what nobody has to know.
func (s streams) tell(format string, args ...any) {
	if !s.quiet {
		s.say(format, args...)
	}
}

// above are say and tell where progress is drawn at the end, which clear takes away.
func (s streams) above(clear func()) (say, tell func(format string, args ...any)) {
	of := func(speak func(string, ...any)) func(string, ...any) {
		return func(format string, args ...any) {
			clear()
			speak(format, args...)
		}
	}
	return of(s.say), of(s.tell)
}

// recordedIn says where a recording is. Quietly that goes without saying where --out
// says it.
func (s streams) recordedIn(what, dir, out string) {
	if out == "" || !s.quiet {
		s.say("%srecorded in %s", what, dir)
	}
}

// options are those of runs that speak here.
func (s streams) options(out string, stop <-chan struct{}) experiment.Options {
	return experiment.Options{Out: out, Version: version(), Stop: stop, Say: s.say, Step: s.tell}
}

// A status is how a command ended, where that is not an error of its own.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A usageError is a command that was written wrong.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func run(args []string, stdout, stderr io.Writer) int {
	s := streams{out: stdout, err: &notices{out: stderr}}
	root := newRoot(s)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unquote(root)
	}
	root.SetArgs(args)
	c, err := root.ExecuteContextC(context.Background())
	return s.exit(err, c.CommandPath())
}

// unquote takes the marks of values out of what flags say, which help reads and a
// shell would show.
func unquote(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, sub := range c.Commands() {
		unquote(sub)
	}
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "fermata",
		Short: "Measure how LLM servers feel to the people who read from them",
		Long: `Fermata offers a load to a streaming LLM endpoint, records when every token
arrived, and says what can be claimed: TTFT, TBT, TPOT, stalls, the fluidity
index, goodput and objectives, all from one recording.

Try it without a server of your own:

    fermata demo

Measure one:

    fermata run http://127.0.0.1:8000 --rate 4 --requests 200`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return usagef("a command is missing, such as `fermata demo`") },
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	// Flags are folded to what fits an old terminal; the texts of commands are written so.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetVersionTemplate("fermata {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDemo(s), newRun(s), newServe(s), newSim(s), newStudy(s), newReport(s), newCompare(s), newCapacity(s), newProfile(s), newRecover(s), newWorkload(s), newSelftest(s), newPlan(s), newSweep(s), newTune(s))
	for _, c := range root.Commands() {
		for _, c := range append(c.Commands(), c) {
			c.Flags().SortFlags = false // what matters first stands first, in every help
		}
	}
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.Args, c.RunE = cobra.ArbitraryArgs, func(_ *cobra.Command, args []string) error { return noShell(args) }
	}
	return root
}

// newHelp is cobra's help, which would not say that a command does not exist.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return names(root), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q", strings.Join(args, " "))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// names are the commands that help tells of.
func names(root *cobra.Command) []string {
	var all []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, c.Name())
		}
	}
	return all
}

func noShell(args []string) error {
	if len(args) == 0 {
		return usagef("name a shell: bash, fish, powershell or zsh")
	}
	return usagef("there is no completion for %q: name one of bash, fish, powershell, zsh", args[0])
}

// takes says how many arguments a command takes; most is -1 for any number.
func takes(fewest, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch n := len(args); {
		case n >= fewest && (most < 0 || n <= most):
			return nil
		case most == 0:
			return usagef("`%s` takes no arguments, not %q", c.CommandPath(), args[0])
		case most < 0:
			return usagef("`%s` takes %s", c.CommandPath(), what)
		default:
			return usagef("`%s` takes %s, not %d", c.CommandPath(), what, n)
		}
	}
}

// exit says what went wrong with the command and gives the process its code.
func (s streams) exit(err error, command string) int {
	var code status
	var mistakes conf.Mistakes
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &mistakes):
		for _, m := range mistakes {
			s.say("fermata: %s", m.Error())
		}
		if len(mistakes) > 1 {
			s.say("%d mistakes; nothing was run", len(mistakes))
		}
		return exitUsage
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"):
		s.say("fermata: %s", strings.Join(strings.Fields(err.Error()), " ")) // cobra's has several lines
		s.say("See `%s --help`.", command)
		return exitUsage
	case errors.Is(err, experiment.ErrInterrupted):
		s.say("fermata: %s", err)
		return exitInterrupted
	}
	s.say("fermata: %s", err)
	var hint interface{ Hint() string }
	if errors.As(err, &hint) && hint.Hint() != "" {
		s.say("%s", hint.Hint())
	}
	var misuse *experiment.Misuse
	if errors.As(err, &misuse) || errors.Is(err, recording.ErrNone) {
		return exitUsage
	}
	return exitFailed
}
