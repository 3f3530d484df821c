package main

import (
	"github.com/spf13/cobra"

	"fermata/experiment"
)

func newRecover(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "recover RUN",
		Short: "Finish a recording whose process died",
		Long: `Recover turns the journal that a killed run left behind into its recording.
Every arrival that had been recorded is kept; requests that were under way count
as incomplete. It can be repeated, and does nothing to a recording that is
whole.`,
		Example: "  fermata recover runs/20261129-120000",
		Args:    takes(1, 1, "one RUN"),
		RunE: func(_ *cobra.Command, args []string) error {
			told, err := experiment.Recover(args[0], version())
			if err != nil {
				return err
			}
			for _, line := range told {
				s.say("%s", line)
			}
			return nil
		},
	}
}
