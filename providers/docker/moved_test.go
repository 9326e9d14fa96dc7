package docker

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// bareImage loads an image for bareAgent.
func bareImage(t *testing.T, e *Engine) *ownImage {
	t.Helper()
	img := withProgram(t, e, "package main\n\nfunc main() {}\n")
	if err := img.load(t.Context(), e.cli); err != nil {
		t.Fatal(err)
	}
	return img
}

// observing begins with a look, whose end is waited for by what is returned.
func observing(t *testing.T, e *Engine, s planner.Scope) func() planner.Snapshot {
	t.Helper()
	type answer struct {
		snap planner.Snapshot
		err  error
	}
	looked := make(chan answer, 1)
	go func() {
		snap, err := e.Observe(t.Context(), s)
		looked <- answer{snap, err}
	}()
	return func() planner.Snapshot {
		t.Helper()
		got := <-looked
		if got.err != nil {
			t.Fatal(got.err)
		}
		return got.snap
	}
}

// bareAgent creates a container with the labels of an agent, and nothing else of one.
func bareAgent(t *testing.T, e *Engine, s planner.Scope, img *ownImage, a planner.Address) string {
	t.Helper()
	labels := labelsFor(s, "test:/here", planner.Resource{Addr: a, Kind: planner.KindAgent})
	made, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: img.ID, User: "65532", Labels: labels},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, objectName(s, a))
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// TestMadeAnewMeanwhile makes an agent anew while a look is under way that has listed the old one: what
// is seen in the end is the new one, and not that there is none.
func TestMadeAnewMeanwhile(t *testing.T) {
	replaced := make(chan struct{})
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /containers/[0-9a-f]{64}/json$", Times: 1, Until: replaced})
	e, direct := openSocket(t, p.Socket), openEngine(t)
	s := testScope(t, direct)
	img := bareImage(t, direct)
	const a = planner.Address("invocation.a.agent")
	arm := func() string { return bareAgent(t, direct, s, img, a) }
	old := arm()
	looked := observing(t, e, s)
	asked := "^GET /containers/" + old + "/json$"
	for p.Count(asked) == 0 { // it has the list, and waits for the container
		time.Sleep(5 * time.Millisecond)
	}
	if err := removeContainer(t.Context(), direct, planner.Object{ID: old}); err != nil {
		t.Fatal(err)
	}
	anew := arm()
	close(replaced)
	snap := looked()
	if o, ok := snap.Object(a); !ok || o.ID != anew {
		t.Errorf("seen: %v, as %.12s and not %.12s", ok, o.ID, anew)
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

// TestWorkedOnOneAfterTheOther looks at two invocations whose containers are being removed, by turns, and have no layer
// any more when they are: each is shown as it was in peace. One that is on its way out whenever it is looked at is told
// in the end.
func TestWorkedOnOneAfterTheOther(t *testing.T) {
	direct := openEngine(t)
	s := testScope(t, direct)
	img := bareImage(t, direct)
	invs := []planner.Address{"invocation.a.agent", "invocation.b.agent"}
	ids := map[planner.Address]string{}
	for _, a := range invs {
		ids[a] = bareAgent(t, direct, s, img, a)
	}
	for _, tc := range []struct {
		reason string
		// leaving says of each container in which looks, from 0, it is being removed
		leaving map[planner.Address]func(int) bool
		passing time.Duration
		looks   int
		unread  []planner.Address
	}{
		{"both are at peace", nil, time.Minute, 1, nil},
		{"one is being removed, and is there again", map[planner.Address]func(int) bool{
			invs[0]: func(n int) bool { return n == 0 }}, time.Minute, 2, nil},
		{"always one of them is being removed", map[planner.Address]func(int) bool{
			invs[0]: func(n int) bool { return n%2 == 0 }, invs[1]: func(n int) bool { return n%2 == 1 }}, time.Minute, 2, nil},
		{"one is being removed for ever", map[planner.Address]func(int) bool{
			invs[0]: func(int) bool { return true }}, time.Millisecond, leastLooks, invs[:1]},
	} {
		faults := []dockertest.Fault{{Call: "^GET /containers/[0-9a-f]{64}/changes$", Status: 500, Message: "stat /layer: no such file or directory"}}
		for a, leaving := range tc.leaving {
			var looks atomic.Int32
			faults = append(faults, dockertest.Fault{Call: "^GET /containers/" + ids[a] + "/json$", Edit: func(body any) any {
				if leaving(int(looks.Add(1)) - 1) {
					body.(map[string]any)["State"].(map[string]any)["Status"] = "removing"
				}
				return body
			}})
		}
		p := dockertest.NewProxy(t, dockertest.Socket(t), faults...)
		e := openSocket(t, p.Socket)
		e.passing = tc.passing
		snap, err := e.Observe(t.Context(), s)
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		var unread []planner.Address
		for _, a := range invs {
			o, ok := snap.Object(a)
			if !ok {
				t.Errorf("%s: no %s", tc.reason, a)
			}
			if slices.ContainsFunc(o.Extra, func(x planner.Extra) bool { return x.Path == planner.PathUnreadable }) {
				unread = append(unread, a)
			}
		}
		if !slices.Equal(unread, tc.unread) {
			t.Errorf("%s: unreadable are %v, want %v", tc.reason, unread, tc.unread)
		}
		if looks := p.Count("^GET /containers/" + ids[invs[0]] + "/json$"); looks != tc.looks {
			t.Errorf("%s: %d looks, want %d", tc.reason, looks, tc.looks)
		}
	}
}
