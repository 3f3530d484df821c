// Fermata measures how large-language-model servers feel to the people who read
// from them: it offers a load to a streaming endpoint, records when every token
// arrived, and says what can be claimed.
//
// What goes where: standard output carries results and nothing else; progress,
// notices and errors go to standard error. Colour and the live line appear on a
// terminal only, and NO_COLOR is respected. Errors are one sentence each,
// followed by a line that says what to do where there is something to do.
//
// Exit codes: 0 fine; 1 the tool failed, or nothing was measured; 2 wrong usage;
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

	"fermata/internal/conf"
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
}

// say prints a notice.
func (s streams) say(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

// A status is how a command ended, where that is not an error of its own.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A usageError is a command that was written wrong.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func run(args []string, stdout, stderr io.Writer) int {
	s := streams{stdout, stderr}
	root := newRoot(s)
	root.SetArgs(args)
	return s.exit(root.ExecuteContext(context.Background()))
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
		RunE: func(c *cobra.Command, _ []string) error {
			_ = c.Usage()
			return usagef("a command is missing, such as `fermata demo`")
		},
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("fermata {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDemo(s), newRun(s), newServe(s), newReport(s), newRecover(s))
	for _, c := range root.Commands() {
		args := c.Args
		c.Args = func(c *cobra.Command, list []string) error {
			if args == nil {
				return nil
			}
			if err := args(c, list); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	return root
}

// exit says what went wrong and gives the process its code.
func (s streams) exit(err error) int {
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
		s.say("fermata: %s", err)
		s.say("See `fermata --help`.")
		return exitUsage
	}
	s.say("fermata: %s", err)
	var hint interface{ Hint() string }
	if errors.As(err, &hint) && hint.Hint() != "" {
		s.say("%s", hint.Hint())
	}
	return exitFailed
}
