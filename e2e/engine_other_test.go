//go:build !linux

package e2e

import "os/exec"

func dieWithUs(*exec.Cmd) {}

func keepTo(int, []int) {}
