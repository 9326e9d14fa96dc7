package main

import "context"

// interrupts turns signals into the two steps that people expect of Ctrl-C.
type interrupts struct {
	// ctx is cancelled by the second signal, or by the first one of a command that has nothing to finish.
	ctx context.Context
	// first is closed by the first signal, second by the second.
	first, second <-chan struct{}
	done          func()
}

// watch begins to listen. said is called at each signal with its number, for a line to the user.
// With graceful set, the first signal only closes first, and what is under way can finish.
func (a *app) watch(parent context.Context, graceful bool, said func(n int)) interrupts {
	ctx, cancel := context.WithCancel(parent)
	first, second, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	finished := make(chan struct{})
	signals, stop := a.listen()
	go func() {
		defer close(finished)
		for n := 1; n <= 2; n++ {
			select {
			case <-end:
				return
			case <-signals:
			}
			a.log.Info("signal", "number", n)
			// The line first: whatever the signal sets off may print, too.
			if said != nil {
				said(n)
			}
			if n == 1 {
				close(first)
			} else {
				close(second)
			}
			if n == 2 || !graceful {
				cancel()
			}
		}
	}()
	return interrupts{ctx: ctx, first: first, second: second, done: func() {
		close(end)
		<-finished
		stop()
		cancel()
	}}
}

// firstContext ends with the first signal: for waiting and asking, where a graceful end is an end at once.
func (i interrupts) firstContext() context.Context {
	ctx, cancel := context.WithCancel(i.ctx)
	go func() {
		select {
		case <-i.first:
		case <-i.ctx.Done():
		}
		cancel()
	}()
	return ctx
}

// watchWork is watch for commands that change the engine. At a question nothing is under way that could finish,
// and what follows says all.
func (a *app) watchWork(ctx context.Context, u *ui) interrupts {
	return a.watch(ctx, true, func(n int) {
		if n > 1 || !u.asking.Load() {
			u.printErr(u.err.Interrupted(n))
		}
	})
}
