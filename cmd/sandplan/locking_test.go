package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// silent is an engine that does not tell when a lock is gone.
func silent(ctx context.Context, _ string) bool { <-ctx.Done(); return false }

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
			wait := lockWait{limit: tt.limit, waiting: func(planner.LockInfo) { told++ }, gone: silent}
			_, err := waitForLock(ctx, wait, func(context.Context) (int, error) {
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

// TestWaitForLockIsTold: the end of a lock is told by the engine, and then it is taken at once, however
// long it was waited for.
func TestWaitForLockIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = 90*time.Second + 123*time.Millisecond
		start, free := time.Now(), make(chan struct{})
		time.AfterFunc(busy, func() { close(free) })
		wait := lockWait{limit: 5 * time.Minute, gone: func(ctx context.Context, id string) bool {
			if id != "lock" {
				t.Errorf("it waits for the end of %q", id)
			}
			select {
			case <-free:
				return true
			case <-ctx.Done():
				return false
			}
		}}
		_, err := waitForLock(t.Context(), wait, func(context.Context) (int, error) {
			if time.Since(start) < busy {
				return 0, &planner.LockedError{Info: planner.LockInfo{ID: "lock"}}
			}
			return 1, nil
		})
		if err != nil || time.Since(start) != busy {
			t.Errorf("%v after %s, want the lock after %s", err, time.Since(start), busy)
		}
	})
}

// TestWaitForLockInTurn: of twenty who want the same lock at once, and hold it for a second each, each gets
// it in its turn, one asks at a time, and no time is lost in between. The one for whom there is not enough
// time is told who holds it.
func TestWaitForLockInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, hold = 20, time.Second
		start, order := time.Now(), newTurn()
		lock, asking := make(chan struct{}, 1), 0
		var got []int
		var all sync.WaitGroup
		gone := func(ctx context.Context, _ string) bool {
			if asking++; asking > 1 {
				t.Errorf("%d ask the engine at once", asking)
			}
			defer func() { asking-- }()
			select {
			case lock <- struct{}{}:
				<-lock
				return true
			case <-ctx.Done():
				return false
			}
		}
		want := func(limit time.Duration) error {
			_, err := waitForLock(t.Context(), lockWait{limit: limit, turn: order, gone: gone}, func(context.Context) (int, error) {
				select {
				case lock <- struct{}{}:
					return 1, nil
				default:
					return 0, &planner.LockedError{}
				}
			})
			return err
		}
		for i := range many {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := want(5 * time.Minute); err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				got = append(got, i)
				time.Sleep(hold)
				<-lock
			})
		}
		time.Sleep(500 * time.Millisecond)
		if err := want(2 * time.Second); !errors.As(err, new(*planner.LockedError)) || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("without enough time: %v after %s, want the holder after 2.5 s", err, time.Since(start))
		}
		all.Wait()
		if !slices.IsSorted(got) || len(got) != many || time.Since(start) > many*hold+10*time.Millisecond {
			t.Errorf("they had it in the order %v, in %s", got, time.Since(start))
		}
	})
}

// TestWaitForLockGivesUpOnSilence: an engine that does not answer a try is not waited for without end.
func TestWaitForLockGivesUpOnSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := waitForLock(t.Context(), lockWait{limit: 5 * time.Minute, gone: silent}, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer within 1m0s") || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestOwnLock: whoever runs several at once is not told that one waits for another.
func TestOwnLock(t *testing.T) {
	a := newTestApp(t).app
	own := planner.LockInfo{PID: os.Getpid(), Who: a.who}
	other, elsewhere := own, own
	other.PID++
	elsewhere.Who = "tester@elsewhere"
	if !a.isOurs(own) || a.isOurs(other) || a.isOurs(elsewhere) {
		t.Error("a lock is of this command when process and host are")
	}
}
