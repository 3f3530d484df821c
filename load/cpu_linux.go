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

// cpuPressure is the time in which some task of the machine waited for a core, as
// pressure stall information counts it; negative where the system does not say.
func cpuPressure() time.Duration {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return -1
	}
	return pressureOf(string(b))
}

// pressureOf reads such as "some avg10=1.17 avg60=2.00 avg300=3.11 total=2908574496",
// whose total is in µs.
func pressureOf(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	_, total, ok := strings.Cut(line, "total=")
	us, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
	if !ok || err != nil || !strings.HasPrefix(line, "some ") {
		return -1
	}
	return time.Duration(us) * time.Microsecond
}
