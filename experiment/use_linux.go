package experiment

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ownUse is the processor time that this process has used, in ns, and the memory
// that is its own, in bytes; -1 where the system does not say.
func ownUse() (cpuNs, memory int64) {
	memory = -1
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		cpuNs = u.Utime.Nano() + u.Stime.Nano()
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return cpuNs, memory
	}
	if _, after, ok := bytes.Cut(b, []byte("RssAnon:")); ok {
		memory = 0
		for _, c := range bytes.TrimLeft(after, " \t") {
			if c < '0' || c > '9' {
				break
			}
			memory = 10*memory + int64(c-'0')
		}
		memory <<= 10
	}
	return cpuNs, memory
}

// peakMemory is the most memory that this process had, in bytes.
func peakMemory() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return u.Maxrss << 10
}

func kernelVersion() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func processorName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(b), "model name")
	_, after, _ = strings.Cut(after, ":")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}
