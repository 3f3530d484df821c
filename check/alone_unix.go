//go:build unix

package check

import (
	"os/exec"
	"syscall"
)

// alone puts a command into a process group of its own: ^C is for the run, which
// still wants its checks, and what ends the command ends what it started.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
