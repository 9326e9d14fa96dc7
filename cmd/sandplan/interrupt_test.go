package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"
)

// TestInterrupts: the first signal lets work finish, the second breaks it off; where there is nothing to
// finish, the first one does.
func TestInterrupts(t *testing.T) {
	within := func(c <-chan struct{}, d time.Duration) bool {
		select {
		case <-c:
			return true
		case <-time.After(d):
			return false
		}
	}
	closes := func(c <-chan struct{}) bool { return within(c, time.Minute) } // it comes, however busy the machine is
	closed := func(c <-chan struct{}) bool { return within(c, 50*time.Millisecond) }
	for _, graceful := range []bool{true, false} {
		ta := newTestApp(t)
		var said []int
		in := ta.watch(context.Background(), graceful, func(n int) { said = append(said, n) })
		first := in.firstContext()
		if closed(in.first) || closed(first.Done()) {
			t.Fatal("interrupted before any signal")
		}
		ta.signal <- os.Interrupt
		if !closes(in.first) || !closes(first.Done()) || closed(in.second) {
			t.Errorf("graceful %v: the first signal must close first, end the waiting, and leave second open", graceful)
		}
		over := closed
		if !graceful {
			over = closes
		}
		if got := over(in.ctx.Done()); got == graceful {
			t.Errorf("graceful %v: the context is over after the first signal: %v", graceful, got)
		}
		ta.signal <- os.Interrupt
		if !closes(in.second) || !closes(in.ctx.Done()) {
			t.Errorf("graceful %v: the second signal must end everything", graceful)
		}
		in.done()
		if !slices.Equal(said, []int{1, 2}) {
			t.Errorf("graceful %v: said %v", graceful, said)
		}
	}
}
