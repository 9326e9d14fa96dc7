package docker

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestMadeAnewMeanwhile makes an agent anew while a look is under way that has listed the old one: what
// is seen in the end is the new one, and not that there is none.
func TestMadeAnewMeanwhile(t *testing.T) {
	replaced := make(chan struct{})
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /containers/[0-9a-f]{64}/json$", Times: 1, Until: replaced})
	e, direct := openSocket(t, p.Socket), openEngine(t)
	s := testScope(t, direct)
	img := withProgram(t, direct, "package main\n\nfunc main() {}\n")
	if err := img.load(t.Context(), direct.cli); err != nil {
		t.Fatal(err)
	}
	const a = planner.Address("invocation.a.agent")
	labels := labelsFor(s, "test:/here", planner.Resource{Addr: a, Kind: planner.KindAgent})
	arm := func() string {
		made, err := direct.cli.ContainerCreate(t.Context(), &container.Config{Image: img.ID, User: "65532", Labels: labels},
			&container.HostConfig{NetworkMode: "none"}, nil, nil, objectName(s, a))
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	old := arm()
	type answer struct {
		snap planner.Snapshot
		err  error
	}
	looked := make(chan answer, 1)
	go func() {
		snap, err := e.Observe(t.Context(), s)
		looked <- answer{snap, err}
	}()
	asked := "^GET /containers/" + old + "/json$"
	for p.Count(asked) == 0 { // it has the list, and waits for the container
		time.Sleep(5 * time.Millisecond)
	}
	if err := removeContainer(t.Context(), direct, planner.Object{ID: old}); err != nil {
		t.Fatal(err)
	}
	anew := arm()
	close(replaced)
	got := <-looked
	if o, ok := got.snap.Object(a); got.err != nil || !ok || o.ID != anew {
		t.Errorf("seen: %v, as %.12s and not %.12s, %v", ok, o.ID, anew, got.err)
	}
	// One that is and stays odd is not looked at for ever.
	const enough = 12
	if calls := leastCalls(t, p, "", enough, func() {
		if _, err := e.Observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}); calls > enough {
		t.Errorf("%d calls", calls)
	}
}
