package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/report"
	"fermata/wire"
)

func newSelftest(s streams) *cobra.Command {
	var format, transport string
	var quick bool
	c := &cobra.Command{
		Use:   "selftest",
		Short: "How good is this instrument on this machine",
		Long: `Selftest starts a server of its own on 127.0.0.1 whose events carry the times of
their sending, offers it rising loads, and says how far the recorded stamps are
from the truth, what an event costs, and up to how many streams this machine's
figures can be quoted. It takes less than a minute; --quick takes some seconds.
docs/instrument.md says what the columns mean.

The server has a core of its own where there are two, and runs ahead of
everything else there if this user may. A load that it could not keep up with is
void: it says nothing about the client.

Exit codes: 0 fine; 1 the self-test failed; 2 wrong usage; 4 this machine's
figures cannot be quoted; 130 interrupted.`,
		Example: `  fermata selftest
  fermata selftest --quick -o json`,
		Args: takes(0, 0, ""),
	}
	c.Flags().BoolVar(&quick, "quick", false, "fewer and shorter loads")
	c.Flags().StringVar(&transport, "transport", "", "`NAME`: fast or compatible; by default what a run would choose")
	completes(c, "transport", wire.FastName, wire.CompatibleName)
	addFormat(c, &format, report.DocumentFormats)
	addQuiet(c, &s.quiet)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format, report.DocumentFormats); err != nil {
			return err
		}
		if !slices.Contains([]string{"", wire.FastName, wire.CompatibleName}, transport) {
			return usagef("--transport is fast or compatible, not %q", transport)
		}
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this executable: %w", err)
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		found, err := experiment.Selftest(ctx, experiment.SelftestOptions{
			Quick: quick, Transport: transport, Version: version(), Say: s.tell,
			Command: func(role ...string) *exec.Cmd {
				cmd := exec.Command(exe, append([]string{"selftest"}, role...)...)
				cmd.Args[0] = os.Args[0] // by which name it runs may matter
				cmd.Stderr = os.Stderr
				return cmd
			},
		})
		if err != nil {
			return err
		}
		if err := report.WriteSelftest(format, s.out, found, look(s.out)); err != nil {
			return err
		}
		if found.Verdict.ErrorNs == nil {
			return status(exitUnclear)
		}
		return nil
	}
	c.AddCommand(newRole("beacon", 1, func(args []string) error { return experiment.BeaconMain(args[0], os.Stdin, os.Stdout) }))
	c.AddCommand(newRole("trial", 0, func([]string) error { return experiment.TrialMain(os.Stdin, os.Stdout) }))
	return c
}

// newRole is a part of the self-test as a process of its own. Nobody types it.
func newRole(name string, n int, main func(args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "A part of the self-test", Hidden: true, Args: takes(n, n, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			// ^C at a terminal goes to all, and so does its end: who started this one ends it.
			signal.Ignore(os.Interrupt, syscall.SIGHUP)
			return main(args)
		},
	}
}
