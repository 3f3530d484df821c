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
	errHungUp     = errors.New("the terminal hung up (SIGHUP)")
)

// interrupts turns ^C into stop (no more arrivals), and a second one, SIGTERM or
// SIGHUP into the end of the context (answers are cut). Where SIGHUP is ignored, as
// under nohup, it stays so.
func interrupts(parent context.Context, s streams) (ctx context.Context, stop <-chan struct{}, release func()) {
	ctx, cut := context.WithCancelCause(parent)
	soft := make(chan struct{})
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		stopped := false
		for {
			select {
			case sig := <-signals:
				switch sig {
				case syscall.SIGTERM:
					cut(errTerminated)
					return
				case syscall.SIGHUP:
					cut(errHungUp)
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
