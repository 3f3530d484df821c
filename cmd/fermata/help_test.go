package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fermata/internal/term"
)

// The help of every command fits 80 columns.
func TestHelpIsNarrow(t *testing.T) {
	var all func(c *cobra.Command)
	seen := 0
	all = func(c *cobra.Command) {
		seen++
		var b bytes.Buffer
		c.SetOut(&b)
		c.InitDefaultHelpFlag()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "\nUsage:") {
			t.Errorf("%s has no usage: %s", c.CommandPath(), &b)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimRight(line, "\n"); term.Cells(line) > 80 {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), term.Cells(line), line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "completion" { // its texts are cobra's
				all(sub)
			}
		}
	}
	all(newRoot(streams{out: io.Discard, err: io.Discard}))
	if seen < 16 {
		t.Errorf("only %d commands", seen)
	}
}
