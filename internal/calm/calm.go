// Package calm is for tests of what happens in real time. On a machine that stood still
// meanwhile they see the machine and not what they test, and are tried again.
package calm

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	attempts = 8
	// A machine that does not run a process for so long at a time disturbs its timers.
	held = 10 * time.Millisecond
	look = time.Millisecond

	pause = 10 * time.Millisecond // after a first attempt, 4 times as long after a second, 9 times …
)

// Try makes an attempt at a test. One that fails although the machine let this process
// run has failed. One that fails while the process was held up says nothing and is made
// again, up to 8 times in all; the last one counts, whatever the machine did. What an
// attempt asserts is the same each time.
//
// The t of an attempt ends with it: its context and its clean-ups are of that attempt.
func Try(t *testing.T, attempt func(t testing.TB)) {
	t.Helper()
	TryWithin(t, held, attempt)
}

// TryWithin is Try for what being held up for less than 10 ms disturbs.
func TryWithin(t *testing.T, held time.Duration, attempt func(t testing.TB)) {
	t.Helper()
	try(t, held, func() func() time.Duration { return watch(look) }, attempt)
}

// try is TryWithin with a watch of the caller's.
func try(t testing.TB, held time.Duration, watch func() func() time.Duration, attempt func(t testing.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		stop := watch()
		a := begin(t, attempt)
		longest := stop()
		if a.skipped {
			t.Skip(strings.Join(a.said, "\n"))
		}
		if !a.failed {
			return
		}
		if n == attempts || longest < held {
			t.Fatalf("attempt %d, during which the machine stood still for %v at most:\n%s", n, longest, strings.Join(a.said, "\n"))
		}
		t.Logf("attempt %d failed while the machine stood still for up to %v; it is made again:\n%s", n, longest, strings.Join(a.said, "\n"))
		time.Sleep(time.Duration(n*n) * pause) // for what disturbs to pass
	}
}

// watch looks at the clock again and again until it is told to stop, and then says for
// how long, at most, it could not.
func watch(every time.Duration) (stop func() time.Duration) {
	over, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		wake := time.NewTimer(every) // one for all looks: what is tested may count allocations
		defer wake.Stop()
		most, last := time.Duration(0), time.Now()
		for {
			var end bool
			select {
			case <-over:
				end = true
			case <-wake.C:
				wake.Reset(every)
			}
			now := time.Now()
			most, last = max(most, now.Sub(last)-every), now
			if end {
				longest <- most
				return
			}
		}
	}()
	return func() time.Duration {
		close(over)
		return <-longest
	}
}

// An attempt is a test whose failure does not yet count.
type attempt struct {
	testing.TB // of the test

	ctx context.Context

	mu              sync.Mutex
	said            []string
	failed, skipped bool
	cleanups        []func()
}

// begin carries out an attempt to its end.
func begin(t testing.TB, do func(t testing.TB)) *attempt {
	ctx, cancel := context.WithCancel(t.Context())
	a := &attempt{TB: t, ctx: ctx}
	var crash any
	done := make(chan struct{})
	go func() { // of its own, which FailNow can end
		defer close(done)
		defer func() { crash = recover() }()
		defer a.clean()
		defer cancel()
		do(a)
	}()
	<-done
	if crash != nil {
		panic(crash)
	}
	return a
}

func (a *attempt) clean() {
	for {
		a.mu.Lock()
		n := len(a.cleanups)
		if n == 0 {
			a.mu.Unlock()
			return
		}
		last := a.cleanups[n-1]
		a.cleanups = a.cleanups[:n-1]
		a.mu.Unlock()
		last()
	}
}

func (a *attempt) say(text string, fail bool) {
	where := ""
	if _, file, line, ok := runtime.Caller(2); ok {
		where = fmt.Sprintf("%s:%d: ", filepath.Base(file), line)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, "    "+where+strings.TrimSuffix(text, "\n"))
	a.failed = a.failed || fail
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Error(args ...any)                 { a.say(fmt.Sprintln(args...), true) }
func (a *attempt) Errorf(format string, args ...any) { a.say(fmt.Sprintf(format, args...), true) }
func (a *attempt) Log(args ...any)                   { a.say(fmt.Sprintln(args...), false) }
func (a *attempt) Logf(format string, args ...any)   { a.say(fmt.Sprintf(format, args...), false) }

func (a *attempt) Fatal(args ...any) {
	a.say(fmt.Sprintln(args...), true)
	runtime.Goexit()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.say(fmt.Sprintf(format, args...), true)
	runtime.Goexit()
}

func (a *attempt) Fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
}

func (a *attempt) FailNow() {
	a.Fail()
	runtime.Goexit()
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempt) Skip(args ...any) {
	a.say(fmt.Sprintln(args...), false)
	a.SkipNow()
}

func (a *attempt) Skipf(format string, args ...any) {
	a.say(fmt.Sprintf(format, args...), false)
	a.SkipNow()
}

func (a *attempt) SkipNow() {
	a.mu.Lock()
	a.skipped = true
	a.mu.Unlock()
	runtime.Goexit()
}

func (a *attempt) Skipped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.skipped
}
