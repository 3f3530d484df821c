package experiment

import "golang.org/x/sys/unix"

// machineLimits looks at this machine.
func machineLimits() limits {
	l := limits{files: openFiles()}
	first, err := unix.SysctlUint32("net.inet.ip.portrange.first")
	if err != nil {
		return l
	}
	if last, err := unix.SysctlUint32("net.inet.ip.portrange.last"); err == nil && last >= first {
		l.ports = int64(last-first) + 1
	}
	return l
}
