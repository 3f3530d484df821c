package e2e

import (
	"os/exec"
	"syscall"
)

// dieWithUs kills the command if the test process ends without its clean-ups, as
// it does when go test's time-out strikes.
func dieWithUs(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
