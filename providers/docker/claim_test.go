package docker

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

const lockCreate = "^POST /containers/create "

// locksOf are the IDs of the containers that an engine in memory lists: in these tests, locks.
func locksOf(t *testing.T, e *Engine) []string {
	t.Helper()
	all, err := e.list(t.Context(), listContainers, map[string][]string{"all": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, v := range all {
		ids = append(ids, treeID(v))
	}
	return ids
}

// TestLockClaim takes a lock from an engine whose answers are lost: afterwards either the lock is there
// and known, or there is none. One that nobody knows of would lock everybody out.
func TestLockClaim(t *testing.T) {
	t.Parallel()
	s := planner.Scope{Project: "claim", Workspace: "w"}
	for _, tt := range []struct {
		reason string
		fault  dockertest.Fault
		taken  bool
	}{
		{"made, and the answer is lost", dockertest.Fault{Times: 1, Cut: true, Obeyed: true}, true},
		{"made, and half of the answer is lost", dockertest.Fault{Times: 1, Half: true}, true},
		{"never asked for", dockertest.Fault{Times: 1, Cut: true}, true},
		{"made, and every answer is lost", dockertest.Fault{Cut: true, Obeyed: true}, false},
		{"never asked for, again and again", dockertest.Fault{Cut: true}, false},
		{"refused", dockertest.Fault{Status: 500, Message: "no space left on device"}, false},
	} {
		tt.fault.Call = lockCreate
		f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"})
		e := openSocket(t, f.Socket)
		if lock, err := e.LockScope(t.Context(), s, "apply"); err != nil { // brings the image
			t.Fatal(err)
		} else if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.AddFault(tt.fault)
		lock, err := e.LockScope(t.Context(), s, "apply")
		there := locksOf(t, e)
		if tt.taken {
			if err != nil || len(there) != 1 || there[0] != lock.Info().ID {
				t.Errorf("%s: %v, and the engine has %q", tt.reason, err, there)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: the lock counts as taken", tt.reason)
		}
		if len(there) != 0 {
			t.Errorf("%s: %v, and %q is left", tt.reason, err, there)
		}
	}
}

// TestLockClaimsAtOnce takes one lock many times at once, while answers are lost: one has it.
func TestLockClaimsAtOnce(t *testing.T) {
	t.Parallel()
	f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10",
		Faults: []dockertest.Fault{{Call: lockCreate, After: 1, Times: 6, Cut: true, Obeyed: true}}})
	e := openSocket(t, f.Socket)
	var mu sync.Mutex
	var won []*Lock
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			lock, err := e.LockScope(t.Context(), planner.Scope{Project: "claim", Workspace: "w"}, "apply")
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, lock)
			}
		})
	}
	wg.Wait()
	if there := locksOf(t, e); len(won) != 1 || len(there) != 1 || there[0] != won[0].Info().ID {
		t.Errorf("%d of 12 have the lock, and the engine has %q", len(won), there)
	}
}

// TestLockOfTheDeadGoesLate takes a lock over while somebody else has begun to remove what a dead holder left, and the
// engine takes longer for that than for any lock.
func TestLockOfTheDeadGoesLate(t *testing.T) {
	t.Parallel()
	f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"})
	e := openSocket(t, f.Socket)
	s := planner.Scope{Project: "late", Workspace: "w"}
	by, err := thisProcess("/proc", e.options)
	if err != nil {
		t.Fatal(err)
	}
	by.StartTime = 1 // this process's number belonged to another one then
	dead, err := e.claim(t.Context(), objectName(s, "lock"), lockLabels(s, "", kindLock, by))
	if err != nil {
		t.Fatal(err)
	}
	const turns = 60 // which was too long for a lock
	f.AddFault(dockertest.Fault{Call: "^DELETE /containers/", Times: turns, Status: 409, Message: "removal of container 0123 is already in progress"})
	lock, err := e.LockScope(t.Context(), s, "apply")
	if err != nil {
		t.Fatal(err)
	}
	if lock.Info().ID == dead {
		t.Error("the dead holder's lock was taken for this one's")
	}
	// Whoever unlocks by force what is just being removed has unlocked it.
	f.AddFault(dockertest.Fault{Call: "^GET /containers/.*/json$", Times: 1, Edit: func(body any) any {
		body.(map[string]any)["State"].(map[string]any)["Status"] = "removing"
		return body
	}})
	if err := e.ForceUnlock(t.Context(), lock.Info().ID); err != nil {
		t.Error(err)
	}
}

// TestLockCancelled cancels the taking of a lock or a lease while the engine makes it: none is left, and
// the next one gets it.
func TestLockCancelled(t *testing.T) {
	t.Parallel()
	s := planner.Scope{Project: "claim", Workspace: "w"}
	for name, take := range map[string]func(context.Context, *Engine) (*Lock, error){
		"scope": func(ctx context.Context, e *Engine) (*Lock, error) { return e.LockScope(ctx, s, "run") },
		"lease": func(ctx context.Context, e *Engine) (*Lock, error) {
			return e.LockInvocation(ctx, s, "invocation.a", "run")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"})
			var made int
			f.SetAfter(func(call string, _ int) {
				if strings.HasPrefix(call, "POST /containers/create ") {
					made++
					cancel()                           // the lock is there, and nobody was told
					time.Sleep(100 * time.Millisecond) // so that the client has left, if it does leave
				}
			})
			e := openSocket(t, f.Socket)
			lock, err := take(ctx, e)
			if !errors.Is(err, context.Canceled) || lock != nil {
				t.Errorf("lock %v, error %v, want that it was cancelled", lock, err)
			}
			f.SetAfter(nil)
			if there := locksOf(t, e); len(there) != 0 || made == 0 {
				t.Errorf("of %d locks %q are left", made, there)
			}
			if _, err := take(t.Context(), e); err != nil {
				t.Errorf("the next one does not get it: %v", err)
			}
		})
	}
}

// TestLockOnASilentEngine: whoever gives up while the engine says nothing gets away, and is told.
func TestLockOnASilentEngine(t *testing.T) {
	t.Parallel()
	f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"})
	e := openSocket(t, f.Socket)
	f.AddFault(dockertest.Fault{Call: "^", Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	gaveUp := make(chan error, 1)
	go func() {
		_, err := e.LockScope(ctx, planner.Scope{Project: "claim", Workspace: "w"}, "run")
		gaveUp <- err
	}()
	select {
	case err := <-gaveUp:
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may make the lock all the same") {
			t.Errorf("%v, want that it was cancelled, and what may be left", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for an answer that does not come")
	}
}

// TestLockAwaited waits on the real engine for the end of a lock: it is told of it, of one that is gone
// already at once, and of one that stays not at all.
func TestLockAwaited(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	s := testScope(t, e)
	lock, err := e.LockScope(t.Context(), s, "apply")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if e.AwaitUnlock(short, lock.Info().ID) {
		t.Error("a lock that is held counts as gone")
	}
	told := make(chan bool, 1)
	go func() { told <- e.AwaitUnlock(t.Context(), lock.Info().ID) }()
	time.Sleep(200 * time.Millisecond) // it may as well come too late: then the lock is gone, and it is told so
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case gone := <-told:
		if !gone {
			t.Error("the end of the lock is no end")
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody tells that the lock is gone")
	}
	if !e.AwaitUnlock(t.Context(), lock.Info().ID) {
		t.Error("a lock that is gone counts as held")
	}
}

// TestLockOfThisProcessIsNamed: a lock that this process holds is named like anybody's.
func TestLockOfThisProcessIsNamed(t *testing.T) {
	t.Parallel()
	e := openSocket(t, dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10"}).Socket)
	s := planner.Scope{Project: "claim", Workspace: "w"}
	if _, err := e.LockScope(t.Context(), s, "apply"); err != nil {
		t.Fatal(err)
	}
	_, err := e.LockScope(t.Context(), s, "apply")
	var locked *planner.LockedError
	if !errors.As(err, &locked) || locked.Info.PID != os.Getpid() {
		t.Errorf("%v, want that this process's own lock is named", err)
	}
}
