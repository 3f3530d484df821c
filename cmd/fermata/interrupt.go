package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var (
	errCut        = errors.New("interrupted")
	errTerminated = errors.New("terminated (SIGTERM)")
)

// interrupts turns ^C into stop (no more arrivals), and a second one or SIGTERM
// into the end of the context (answers are cut).
func interrupts(parent context.Context, s streams) (ctx context.Context, stop <-chan struct{}, release func()) {
	ctx, cut := context.WithCancelCause(parent)
	soft := make(chan struct{})
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		stopped := false
		for {
			select {
			case sig := <-signals:
				if sig == syscall.SIGTERM {
					cut(errTerminated)
					return
				}
				if stopped {
					cut(errCut)
					return
				}
				stopped = true
				close(soft)
				s.say("\nstopping: waiting up to 30 s for answers; ^C again cuts them")
			case <-done:
				return
			}
		}
	}()
	return ctx, soft, func() {
		signal.Stop(signals)
		close(done)
		cut(nil)
	}
}
