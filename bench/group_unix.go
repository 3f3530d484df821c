//go:build unix

package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// group makes cmd the leader of a group of processes.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends cmd and all that it started.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// mostKiB is the most memory that a process had at once, which has ended, or 0 where
// the system does not say it in KiB.
func mostKiB(p *os.ProcessState) float64 {
	if use, ok := p.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
		return float64(use.Maxrss)
	}
	return 0
}
