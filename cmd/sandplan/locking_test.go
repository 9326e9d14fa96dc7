package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandplan/sandplan/planner"
)

func TestWaitForLock(t *testing.T) {
	held := &planner.LockedError{What: "the scope p/default", Info: planner.LockInfo{Who: "other@host"}}
	broken := errors.New("engine is gone")
	for _, tt := range []struct {
		limit    time.Duration
		free     time.Duration // when the lock becomes free; -1 never
		err      error         // of every try while it is not
		want     error
		tries    int
		told     int
		most     time.Duration
		reason   string
		canceled bool
	}{
		{0, -1, held, held, 1, 0, 0, "without time it is tried once", false},
		{time.Minute, 0, held, nil, 1, 0, 0, "a free lock is not waited for", false},
		{time.Minute, 2 * time.Second, held, nil, 5, 1, 4 * time.Second, "it is taken soon after it is free", false},
		{10 * time.Second, -1, held, held, 6, 1, 10 * time.Second, "the time runs out, and the error says who holds it", false},
		{time.Minute, -1, broken, broken, 1, 0, 0, "only a held lock is waited for", false},
		{time.Minute, -1, held, context.Canceled, 3, 1, time.Second, "Ctrl-C ends the waiting", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.canceled {
				time.AfterFunc(time.Second, cancel)
			}
			start, tries, told := time.Now(), 0, 0
			_, err := waitForLock(ctx, tt.limit, func(planner.LockInfo) { told++ }, func(context.Context) (int, error) {
				tries++
				if tt.free >= 0 && time.Since(start) >= tt.free {
					return 1, nil
				}
				return 0, tt.err
			})
			if !errors.Is(err, tt.want) || tries != tt.tries || told != tt.told || time.Since(start) > tt.most {
				t.Errorf("%s: error %v after %v, %d tries, told %d times; want %v, %d, %d", tt.reason, err, time.Since(start), tries, told, tt.want, tt.tries, tt.told)
			}
		})
	}
}
