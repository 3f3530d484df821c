package load

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the processor time that this process has used.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// idleCores is the time that the machine's cores have been idle, added up;
// negative where the system does not say.
func idleCores() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait …, in hundredths of a second
	if len(f) < 5 {
		return -1
	}
	idle, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return -1
	}
	return time.Duration(idle) * 10 * time.Millisecond
}
