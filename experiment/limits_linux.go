package experiment

import (
	"fmt"
	"os"
)

// machineLimits looks at this machine.
func machineLimits() limits {
	l := limits{files: openFiles()}
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return l
	}
	var first, last int64
	if n, err := fmt.Sscan(string(text), &first, &last); err == nil && n == 2 {
		l.ports = max(0, last-first+1)
	}
	return l
}
