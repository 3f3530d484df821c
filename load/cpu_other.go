//go:build !linux

package load

import "time"

// processCPU is the processor time that this process has used; this system is
// not asked.
func processCPU() time.Duration { return 0 }

// idleCores is negative where the system does not say.
func idleCores() time.Duration { return -1 }

// cpuPressure is negative where the system does not say.
func cpuPressure() time.Duration { return -1 }
