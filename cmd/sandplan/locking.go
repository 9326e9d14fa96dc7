package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Waiting for a lock: its end is told by the engine, so that it is never free for long while somebody
// waits. It is tried again all the same, because a holder may die and leave it behind; those pauses double
// up to the longest one.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 4 * time.Second
	// tryLimit is how long the engine may take to answer one try.
	tryLimit = time.Minute
)

// lockWait is how a lock is waited for.
type lockWait struct {
	limit time.Duration // 0 tries once
	// turn lets those of one command who want the same lock ask the engine one after another, in the order
	// in which they came; nil where there is only one.
	turn turn
	// waiting is called once, when the first try finds it held.
	waiting func(planner.LockInfo)
	// gone returns when the lock with an ID is gone, or its context has ended; then false.
	gone func(ctx context.Context, id string) bool
}

// waitForLock tries to take a lock until it is free or the time for it has passed.
func waitForLock[L any](ctx context.Context, w lockWait, take func(context.Context) (L, error)) (L, error) {
	var none L
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	if w.turn != nil && w.limit > 0 { // those who try once disturb nobody
		select {
		case w.turn <- struct{}{}:
			defer func() { <-w.turn }()
		case <-limited.Done():
			if ctx.Err() != nil {
				return none, ctx.Err()
			}
			return tryLock(ctx, take) // for the name of whoever holds it
		}
	}
	for pause, told := firstPause, false; ; pause = min(2*pause, longestPause) {
		// The limit of all tries does not cut the last one short: the holder's name is what it is made for.
		l, err := tryLock(ctx, take)
		var held *planner.LockedError
		if err == nil || !errors.As(err, &held) || w.limit <= 0 {
			return l, err
		}
		if !told && w.waiting != nil {
			w.waiting(held.Info)
		}
		told = true
		paused, end := context.WithTimeout(limited, pause)
		if !w.gone(paused, held.Info.ID) {
			<-paused.Done() // it may have failed early
		}
		end()
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		if limited.Err() != nil {
			return none, err
		}
	}
}

// tryLock is one try. An engine that does not answer it for long is not waited for.
func tryLock[L any](ctx context.Context, take func(context.Context) (L, error)) (L, error) {
	try, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	l, err := take(try)
	if err != nil && try.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the engine did not answer within %s: %w", tryLimit, err)
	}
	return l, err
}

// turn is full while it is somebody's. Whoever waits for it gets it in the order of coming.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }
