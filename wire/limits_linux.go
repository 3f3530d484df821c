package wire

import (
	"fmt"
	"os"
)

// MachineLimits looks at this machine.
func MachineLimits() Limits {
	l := Limits{Files: openFiles()}
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return l
	}
	var first, last int64
	if n, err := fmt.Sscan(string(text), &first, &last); err == nil && n == 2 {
		l.Ports = max(0, last-first+1)
	}
	return l
}
