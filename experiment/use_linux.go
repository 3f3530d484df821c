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
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		cpuNs = u.Utime.Nano() + u.Stime.Nano()
	}
	return cpuNs, ownStatus("RssAnon:")
}

// ownStatus is a number of kibibytes that the system tells of this process, in
// bytes; -1 if it does not.
func ownStatus(name string) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	_, after, ok := bytes.Cut(b, []byte(name))
	if !ok {
		return -1
	}
	kib := int64(0)
	for _, c := range bytes.TrimLeft(after, " \t") {
		if c < '0' || c > '9' {
			break
		}
		kib = 10*kib + int64(c-'0')
	}
	return kib << 10
}

// peakMemory is the most memory that this process had, in bytes. Getrusage would
// count what was there before exec, which is its parent's.
func peakMemory() int64 { return ownStatus("VmHWM:") }

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
