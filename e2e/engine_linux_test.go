package e2e

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithUs kills the command if the test process ends without its clean-ups, as
// it does when go test's time-out strikes.
func dieWithUs(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// keepTo keeps a process that has just begun to some of the machine's cores; none are
// all of them.
func keepTo(pid int, cores []int) {
	if len(cores) == 0 {
		return
	}
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	_ = unix.SchedSetaffinity(pid, &set) // where this machine has no such core it runs on any
}
