//go:build linux || darwin

package wire

import "golang.org/x/sys/unix"

// openFiles is how many files this process may have open, after asking for as
// many as it can get.
func openFiles() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	if l.Cur < l.Max {
		more := unix.Rlimit{Cur: l.Max, Max: l.Max}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &more) == nil {
			l = more
		}
	}
	return int64(min(l.Cur, 1<<40)) // unlimited is a very large number
}
