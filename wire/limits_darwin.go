package wire

import "golang.org/x/sys/unix"

// MachineLimits looks at this machine.
func MachineLimits() Limits {
	l := Limits{Files: openFiles()}
	first, err := unix.SysctlUint32("net.inet.ip.portrange.first")
	if err != nil {
		return l
	}
	if last, err := unix.SysctlUint32("net.inet.ip.portrange.last"); err == nil && last >= first {
		l.Ports = int64(last-first) + 1
	}
	return l
}
