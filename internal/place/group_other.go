//go:build !unix

package place

import "os/exec"

// Group does nothing where there are no process groups.
func Group(*exec.Cmd) {}

// EndGroup ends the command alone.
func EndGroup(cmd *exec.Cmd, _ bool) error { return cmd.Process.Kill() }
