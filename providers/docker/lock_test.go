package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
)

// TestLockHolder is no test: it is the other process of the tests below. It takes a lock, says so, and
// holds it until its standard input ends.
func TestLockHolder(t *testing.T) {
	project := os.Getenv("LOCK_HOLDER_PROJECT")
	if project == "" {
		return
	}
	e := openEngine(t)
	s := planner.Scope{Project: project, Workspace: "w"}
	var lock *Lock
	var err error
	if a := planner.Address(os.Getenv("LOCK_HOLDER_INVOCATION")); a != "" {
		lock, err = e.LockInvocation(t.Context(), s, a, "run")
	} else {
		lock, err = e.LockScope(t.Context(), s, "apply")
	}
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	fmt.Println("holding", lock.Info().ID)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := lock.Release(t.Context()); err != nil {
		fmt.Println("release:", err)
	}
}

// holder starts another process that takes a lock, and returns what it said and the end of its life.
func holder(t *testing.T, s planner.Scope, inv planner.Address) (said string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHolder$")
	cmd.Env = append(os.Environ(), "LOCK_HOLDER_PROJECT="+s.Project, "LOCK_HOLDER_INVOCATION="+string(inv))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = stdin.Close()
		})
	}
	t.Cleanup(kill)
	said, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the other process said %q: %v", said, err)
	}
	return strings.TrimSpace(said), kill
}

func TestLockExcludesOtherProcesses(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	for _, tc := range []struct {
		what string
		inv  planner.Address
		lock func() (*Lock, error)
	}{
		{"the scope " + s.String(), "", func() (*Lock, error) { return e.LockScope(t.Context(), s, "apply") }},
		{"invocation.a[0]", "invocation.a[0]", func() (*Lock, error) { return e.LockInvocation(t.Context(), s, "invocation.a[0]", "run") }},
	} {
		said, kill := holder(t, s, tc.inv)
		id, ok := strings.CutPrefix(said, "holding ")
		if !ok {
			t.Fatalf("%s: the other process %s", tc.what, said)
		}
		_, err := tc.lock()
		var locked *planner.LockedError
		if !errors.As(err, &locked) || locked.What != tc.what || locked.Info.ID != id || locked.Info.Who != "tester@test" ||
			locked.Info.PID == os.Getpid() || locked.Info.PID == 0 || locked.Info.Created.IsZero() {
			t.Errorf("%s: %v (%+v), want that it is locked by the other process", tc.what, err, locked)
		}
		kill()
		lock, err := tc.lock()
		if err != nil {
			t.Fatalf("%s: the dead holder's lock is not taken over: %v", tc.what, err)
		}
		if lock.Info().ID == id || lock.Info().PID != os.Getpid() {
			t.Errorf("%s: the lock taken over is %+v", tc.what, lock.Info())
		}
		if said, _ := holder(t, s, tc.inv); !strings.HasPrefix(said, "refused:") {
			t.Errorf("%s: the other process %s while this one has the lock", tc.what, said)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if said, _ := holder(t, s, tc.inv); !strings.HasPrefix(said, "holding") {
			t.Errorf("%s: after the release the other process %s", tc.what, said)
		}
	}
}

func TestLockManyAtOnce(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	_, kill := holder(t, s, "")
	kill() // all of them find the lock of a dead holder first
	var mu sync.Mutex
	var won []*Lock
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			lock, err := e.LockScope(t.Context(), s, "apply")
			var locked *planner.LockedError
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, lock)
			} else if !errors.As(err, &locked) {
				t.Errorf("neither the lock nor its holder: %v", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d of 12 have the lock", len(won))
	}
	if err := won[0].Check(t.Context()); err != nil {
		t.Errorf("the winner lost the lock: %v", err)
	}
}

func TestLockLost(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	for _, tc := range []struct {
		reason, want string
		lose         func(id string) error
	}{
		{"pruned", "was removed while apply worked", func(id string) error {
			return e.cli.ContainerRemove(t.Context(), id, container.RemoveOptions{})
		}},
		{"renamed, so that somebody else can have the name", "was renamed to dc-renamed", func(id string) error {
			return e.cli.ContainerRename(t.Context(), id, unique("dc-renamed"))
		}},
	} {
		lock, err := e.LockScope(t.Context(), s, "apply")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Check(t.Context()); err != nil {
			t.Errorf("%s: before: %v", tc.reason, err)
		}
		if err := tc.lose(lock.Info().ID); err != nil {
			t.Fatal(err)
		}
		if err := lock.Check(t.Context()); !errors.Is(err, planner.ErrLockLost) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("%s: releasing what is lost: %v", tc.reason, err)
		}
	}
}

func TestForceUnlock(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	lock, err := e.LockInvocation(t.Context(), s, "invocation.a", "run")
	if err != nil {
		t.Fatal(err)
	}
	other := ofLockImage(t, e, nil, unique("dc-no-lock"))
	for _, tc := range []struct{ reason, id, want string }{
		{"a container that is no lock", other, "is not a lock of sandplan's"},
		{"a name", unique("dc-no-lock"), "is a name and not the ID"},
		{"too short", lock.Info().ID[:11], "at least its first 12 digits"},
		{"nothing there", strings.Repeat("0", 64), "there is no lock"},
	} {
		if err := e.ForceUnlock(t.Context(), tc.id); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	if err := e.ForceUnlock(t.Context(), lock.Info().ID[:12]); err != nil {
		t.Error(err)
	}
	if err := lock.Check(t.Context()); err == nil {
		t.Error("the lock is still held after force-unlock")
	}
}

// ofLockImage makes a container of the lock image that is no lock, for as long as the test runs. The image
// belongs to the engine: another scope's destroy may take it away whenever nothing uses it.
func ofLockImage(t *testing.T, e *Engine, host *container.HostConfig, name string) string {
	t.Helper()
	img, err := newLockImage(e.info.Arch)
	if err != nil {
		t.Fatal(err)
	}
	id, err := createFrom(t.Context(), e.cli, img, func() (string, error) {
		made, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: img.ID}, host, nil, nil, name)
		return made.ID, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.removeLock(context.Background(), id) })
	return id
}

func TestForeignContainerHasTheLocksName(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	lock, err := e.LockScope(t.Context(), s, "apply")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := ofLockImage(t, e, nil, lock.name)
	if _, err := e.LockScope(t.Context(), s, "apply"); err == nil || !strings.Contains(err.Error(), "no lock of sandplan's") {
		t.Errorf("%v, want that a foreign container is in the way", err)
	}
	if _, err := e.inspect(t.Context(), "/containers/"+made+"/json"); err != nil {
		t.Errorf("the foreign container was touched: %v", err)
	}
}

func TestLeasesOfASnapshot(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	_, kill := holder(t, s, "invocation.dead")
	kill()
	if said, _ := holder(t, s, "invocation.live"); !strings.HasPrefix(said, "holding") {
		t.Fatal(said)
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	live := map[planner.Address]bool{}
	for _, l := range snap.Leases {
		live[l.Invocation] = l.Live
	}
	if len(live) != 2 || live["invocation.dead"] || !live["invocation.live"] || len(scoped(snap))+len(snap.Duplicates) != 0 {
		t.Errorf("leases %v, objects %d, duplicates %d", live, len(scoped(snap)), len(snap.Duplicates))
	}
	// A destroy takes the dead one along, and only that.
	lock, err := e.LockScope(t.Context(), s, operationDestroy)
	if err != nil {
		t.Fatal(err)
	}
	if snap, err = e.Observe(t.Context(), s); err != nil || len(snap.Leases) != 1 || snap.Leases[0].Invocation != "invocation.live" {
		t.Errorf("leases after a destroy %+v, %v", snap.Leases, err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIsDead(t *testing.T) {
	self, err := thisProcess("/proc", Options{})
	if err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	zombieStart := waitForZombie(t, zombie.Process.Pid)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*planner.LockInfo)) planner.LockInfo { i := self; change(&i); return i }
	for _, tc := range []struct {
		reason string
		holder planner.LockInfo
		want   bool
	}{
		{"this very process", self, false},
		{"another process got the number", with(func(i *planner.LockInfo) { i.StartTime++ }), true},
		{"no such process", with(func(i *planner.LockInfo) { i.PID = gone.Process.Pid }), true},
		{"over and not collected", with(func(i *planner.LockInfo) { i.PID, i.StartTime = zombie.Process.Pid, zombieStart }), true},
		{"another boot or machine", with(func(i *planner.LockInfo) { i.BootID = "x"; i.StartTime++ }), false},
		{"another pid namespace", with(func(i *planner.LockInfo) { i.PIDNS = "pid:[1]"; i.StartTime++ }), false},
		{"labels that say nothing", planner.LockInfo{}, false},
		{"a number that is none", with(func(i *planner.LockInfo) { i.PID = -1 }), false},
		{"no start time", with(func(i *planner.LockInfo) { i.StartTime = 0 }), false},
	} {
		if got := isDead("/proc", self, tc.holder); got != tc.want {
			t.Errorf("%s: dead = %v", tc.reason, got)
		}
	}
	if isDead("/nonexistent", self, with(func(i *planner.LockInfo) { i.StartTime++ })) {
		t.Error("a process that runs and of which nothing can be read counts as dead")
	}
	if isDead("/proc", planner.LockInfo{}, planner.LockInfo{PID: gone.Process.Pid, StartTime: 1}) {
		t.Error("two holders that know no machine are taken to be on the same")
	}
}

func waitForZombie(t *testing.T, pid int) uint64 {
	t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if start, over, err := processStart("/proc", strconv.Itoa(pid)); err == nil && over {
			return start
		}
	}
	t.Fatal("the process does not end")
	return 0
}
