//go:build unix

package place

import (
	"os/exec"
	"syscall"
)

// Group gives a command a process group of its own, before it starts, so that what
// it starts can be ended with it.
func Group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// EndGroup asks the group of a started command to end, or with force ends it.
func EndGroup(cmd *exec.Cmd, force bool) error {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	return syscall.Kill(-cmd.Process.Pid, signal)
}
