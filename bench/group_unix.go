//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a group of processes.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends cmd and all that it started.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// peakKiB is the most memory that cmd had, in the unit of Linux.
func peakKiB(cmd *exec.Cmd) float64 {
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return float64(u.Maxrss)
	}
	return 0
}
