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

// standBack has whatever else wants the calling thread's core go first.
func standBack() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }
