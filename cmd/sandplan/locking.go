package main

import (
	"context"
	"errors"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Waiting for a lock: the pauses double up to the longest one.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 16 * time.Second
)

// waitForLock tries to take a lock until it is free or limit has passed; 0 tries once. waiting is called
// once, when the first try finds it held.
func waitForLock[L any](ctx context.Context, limit time.Duration, waiting func(planner.LockInfo), take func(context.Context) (L, error)) (L, error) {
	var none L
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for pause, told := firstPause, false; ; pause = min(2*pause, longestPause) {
		// The try itself is not cut short by the limit: a lock that was taken must not be forgotten.
		l, err := take(ctx)
		var held *planner.LockedError
		if err == nil || !errors.As(err, &held) || limit <= 0 {
			return l, err
		}
		if !told && waiting != nil {
			waiting(held.Info)
		}
		told = true
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return none, ctx.Err()
			}
			return none, err
		case <-time.After(pause):
		}
	}
}
