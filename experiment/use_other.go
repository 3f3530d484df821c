//go:build !linux

package experiment

// ownUse is what the system says only on Linux.
func ownUse() (cpuNs, memory int64) { return 0, -1 }

func peakMemory() int64 { return -1 }

func kernelVersion() string { return "" }

func processorName() string { return "" }
