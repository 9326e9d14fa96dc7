package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
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

// TestInterruptedQuestion: Ctrl-C at a question is its answer, and about nothing that would be under way. The
// question is seen wherever stdout leads.
func TestInterruptedQuestion(t *testing.T) {
	for _, tt := range []struct {
		stdout, stderr int
		seen           func(*testApp) string
		reason         string
	}{
		{80, 80, func(ta *testApp) string { return ta.out.String() }, "a terminal"},
		{0, 80, func(ta *testApp) string { return ta.err.String() }, "stdout is a pipe"},
		{0, 0, func(ta *testApp) string { return ta.out.String() }, "nobody is there"},
	} {
		ta := newTestApp(t)
		in, out := io.Pipe()
		defer out.Close()
		ta.stdin(in)
		ta.stdout.columns, ta.stderr.columns = tt.stdout, tt.stderr
		u := ta.ui()
		w := ta.watchWork(context.Background(), u)
		answer := make(chan string)
		go func() { answer <- u.ask(w.firstContext(), "Shall it?") }()
		for !u.asking.Load() {
			time.Sleep(time.Millisecond)
		}
		ta.signal <- os.Interrupt
		if got := <-answer; got != "" {
			t.Errorf("%s: the answer is %q", tt.reason, got)
		}
		ta.signal <- os.Interrupt
		<-w.second
		w.done()
		if text := tt.seen(ta); !strings.HasPrefix(text, "Shall it?\n") || strings.Contains(ta.err.String(), "Interrupted:") {
			t.Errorf("%s: the question is not where it is seen, or more is said: stdout %q, stderr %q", tt.reason, ta.out.String(), ta.err.String())
		}
		if !strings.Contains(ta.err.String(), "Interrupted twice") {
			t.Errorf("%s: the second one is not told: %q", tt.reason, ta.err.String())
		}
	}
}
