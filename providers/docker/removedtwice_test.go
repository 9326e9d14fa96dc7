package docker

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// shimOf makes the shim of a scope from a program of the test's own.
func shimOf(t *testing.T, e *Engine, s planner.Scope) planner.Object {
	t.Helper()
	own, err := e.own()
	if err != nil {
		t.Fatal(err)
	}
	d := desiredShim{scope: s, image: own.ID, content: shimContent(own.binary)}
	id, err := d.create(t.Context(), e, labelsFor(s, "test:/here", planner.Resource{Addr: planner.AddrShim, Kind: planner.KindShim}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return planner.Object{Addr: planner.AddrShim, Kind: planner.KindShim, ID: id, Name: id}
}

// TestRemovedByTwoAtOnce is a destroy beside what a killed one left the engine to do, or beside somebody who prunes:
// what the other one removes is removed.
func TestRemovedByTwoAtOnce(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	s := testScope(t, e)
	withProgram(t, e, "package main\n\nfunc main() {}\n")
	const rounds = 3 // in each of 12 the engine told one of them that the container is being removed
	for range rounds {
		shim := shimOf(t, e, s)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := e.Delete(t.Context(), shim); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if _, err := e.inspect(t.Context(), "/volumes/"+shim.ID); err == nil {
			t.Error("the volume is still there")
		}
	}
}

// TestVolumeLetGoLate: an engine that has forgotten a container, and not yet that it used the volume, is asked again.
// Whom it names is not waited for.
func TestVolumeLetGoLate(t *testing.T) {
	t.Parallel()
	const removal = "^DELETE /volumes/"
	direct := openEngine(t)
	s := testScope(t, direct)
	img := withProgram(t, direct, "package main\n\nfunc main() {}\n")
	shim := shimOf(t, direct, s)
	if err := direct.Delete(t.Context(), planner.Object{Kind: strayName(listContainers), ID: seedName(s, img.ID)}); err != nil {
		t.Fatal(err)
	}
	made, err := direct.cli.ContainerCreate(t.Context(), &container.Config{Image: img.ID, User: "65532"}, &container.HostConfig{NetworkMode: "none",
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: shim.ID, Target: "/foreign"}}}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	p := dockertest.NewProxy(t, dockertest.Socket(t))
	e := openSocket(t, p.Socket)
	if err := removeVolume(t.Context(), e, shim); err == nil || !strings.Contains(err.Error(), "in use") || p.Count(removal) != 1 {
		t.Errorf("what a foreign container uses: %v, after %d removals", err, p.Count(removal))
	}
	if err := removeContainer(t.Context(), direct, planner.Object{ID: made.ID}); err != nil {
		t.Fatal(err)
	}
	p = dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: removal, Times: 2, Status: 409, Message: "remove: volume is in use - [0123]"})
	if err := removeVolume(t.Context(), openSocket(t, p.Socket), shim); err != nil || p.Count(removal) < 3 {
		t.Errorf("what nobody uses any more: %v, after %d removals", err, p.Count(removal))
	}
	if _, err := direct.inspect(t.Context(), "/volumes/"+shim.ID); err == nil {
		t.Error("the volume is still there")
	}
}

// TestEndIsHeardLate: a container that an engine has killed and not seen ending is killed, and is removed when it is
// asked for again.
func TestEndIsHeardLate(t *testing.T) {
	t.Parallel()
	const said, kill, removal = "tried to kill container, but did not receive an exit event", "^POST /containers/.*/kill$", "^DELETE /containers/"
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: kill, Status: 500, Message: "Cannot kill container: x: " + said},
		dockertest.Fault{Call: removal, Times: 2, Status: 500, Message: "Could not kill running container x, cannot remove - " + said})
	e := openSocket(t, p.Socket)
	id := armed(t, e, stepsImage(t, e), "sleep=1h")
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := e.Kill(t.Context(), id); err != nil || p.Count(kill) != 1 {
		t.Errorf("it is not killed: %v, after %d calls", err, p.Count(kill))
	}
	if err := removeContainer(t.Context(), e, planner.Object{ID: id}); err != nil || p.Count(removal) != 3 {
		t.Errorf("it is not removed: %v, after %d calls", err, p.Count(removal))
	}
}

// TestRemovalOfAnotherFails: a container that somebody else was removing, and could not, is removed.
func TestRemovalOfAnotherFails(t *testing.T) {
	t.Parallel()
	const removal = "^DELETE /containers/"
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: removal, Times: 1, Status: 409, Message: "removal of container x is already in progress"})
	e := openSocket(t, p.Socket)
	id := armed(t, e, stepsImage(t, e), "say=x")
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := removeContainer(ctx, e, planner.Object{ID: id}); err != nil || p.Count(removal) != 2 {
		t.Errorf("it is not removed: %v, after %d calls", err, p.Count(removal))
	}
}
