// Package place starts processes on processor cores of their own, so that what
// stands in for another machine is not slowed by this one's work.
package place

import (
	"os/exec"
	"runtime"
)

// A Place is where a process runs. The zero value is anywhere.
type Place struct {
	Cores    []int // it is kept to these
	Realtime bool  // ahead of everything else (SCHED_RR), where this user may
}

// Start starts cmd at p and says whether it has what p asks for: some systems have
// no such places, and most users no right to real time. The process runs all the
// same.
func Start(cmd *exec.Cmd, p Place) (cores, realtime bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends, and its place with it
		cores, realtime = p.enter()
		err = cmd.Start() // a child begins where the thread is that makes it
	}()
	<-done
	return cores, realtime, err
}
