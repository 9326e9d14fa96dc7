package docker

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// neighbours is an uplink with the proxies of two invocations on it, made by hand: nothing is on their
// way but what a test puts there.
type neighbours struct {
	e       *Engine
	s       planner.Scope
	uplink  planner.Resource
	network string // its ID
	image   string
	proxies []string
}

func newNeighbours(t *testing.T, e *Engine, number int) *neighbours {
	t.Helper()
	n := &neighbours{e: e, s: testScope(t, e)}
	img := withProgram(t, e, "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n")
	if err := img.load(t.Context(), e.cli); err != nil {
		t.Fatal(err)
	}
	up := testUplink(n.s, number)
	n.uplink, n.image = resourceOf(t, e, planner.KindUplink, planner.AddrUplink, up), img.ID
	n.network = created(t, e, n.s, n.uplink, up).ID
	for _, a := range []planner.Address{"invocation.a.proxy", "invocation.b.proxy"} {
		n.proxies = append(n.proxies, n.proxy(t, a))
	}
	return n
}

// proxy makes the proxy of an invocation, as far as this look is concerned.
func (n *neighbours) proxy(t *testing.T, a planner.Address) string {
	t.Helper()
	return n.make(t, objectName(n.s, a), labelsFor(n.s, "test:/here", planner.Resource{Addr: a, Kind: planner.KindProxy}))
}

func (n *neighbours) make(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	made, err := n.e.cli.ContainerCreate(t.Context(), &container.Config{Image: n.image, User: "65532", Labels: labels},
		&container.HostConfig{NetworkMode: container.NetworkMode(n.network)}, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeContainer(context.Background(), n.e, planner.Object{ID: made.ID}) })
	return made.ID
}

// looks are both kinds of look, by what they show of the uplink that differs from what is wanted.
func (n *neighbours) looks(ctx context.Context) map[string]func() (string, error) {
	differs := func(snap planner.Snapshot, err error) (string, error) {
		o, ok := snap.Object(planner.AddrUplink)
		if err != nil || !ok {
			return "", fmt.Errorf("uplink seen: %v, %w", ok, err)
		}
		var out []string
		for _, m := range planner.Compare(n.uplink.Fields, o.Observed) {
			out = append(out, m.Field.Path+" "+m.Got.Text())
		}
		return strings.Join(out, "; "), nil
	}
	return map[string]func() (string, error){
		"plan": func() (string, error) { return differs(n.e.Observe(ctx, n.s)) },
		"gate": func() (string, error) { return differs(n.e.Recheck(ctx, n.s, []planner.Address{planner.AddrUplink})) },
	}
}

// TestNeighboursComeAndGo starts and ends proxies on an uplink again and again, each under its lease as runs
// do, while others look: no look may take them for strangers.
func TestNeighboursComeAndGo(t *testing.T) {
	e := openEngine(t)
	n := newNeighbours(t, e, 4)
	for _, inv := range []planner.Address{"invocation.a", "invocation.b", "invocation.c"} {
		lease, err := e.LockInvocation(t.Context(), n.s, inv, "run")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lease.Release(context.Background()) })
	}
	ctx, over := context.WithCancel(t.Context())
	var moving, looking sync.WaitGroup
	const rounds = 40 // after some hundred of them, engine 20.10 may lose count of the endpoints
	for _, id := range n.proxies {
		moving.Go(func() {
			for i := 0; i < rounds && ctx.Err() == nil; i++ {
				if err := e.cli.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
					t.Error(err)
					return
				}
				if err := e.Kill(t.Context(), id); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	moving.Go(func() { // one that is made anew each time
		for i := 0; i < rounds && ctx.Err() == nil; i++ {
			id := n.proxy(t, "invocation.c.proxy")
			if err := e.cli.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
				t.Error(err)
			}
			if err := removeContainer(t.Context(), e, planner.Object{ID: id}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	// A look that asks for the network again has met somebody on the way. Five of each kind are enough, and
	// eight where nobody is in a hurry.
	const enough, most = 5, 8
	for depth := range n.looks(t.Context()) {
		p := dockertest.NewProxy(t, dockertest.Socket(t))
		look := (&neighbours{e: openSocket(t, p.Socket), s: n.s, uplink: n.uplink}).looks(t.Context())[depth]
		looking.Go(func() {
			looks, met := 0, 0
			for ; looks < most && met < enough; looks++ {
				before := p.Count("^GET /networks/[0-9a-f]{64}$")
				if got, err := look(); got != "" || err != nil {
					t.Errorf("%s: %s %v", depth, got, err)
				}
				if p.Count("^GET /networks/[0-9a-f]{64}$")-before > 1 {
					met++
				}
			}
			t.Logf("%s: %d of %d looks met somebody on the way", depth, met, looks)
		})
	}
	looking.Wait()
	over()
	moving.Wait()
}

// TestEndpointOnItsWay: an endpoint without a namespace is waited for if it has the name of one of the
// scope's containers, and told if it stays; any other is told.
func TestEndpointOnItsWay(t *testing.T) {
	const proxy = "sandplan-SCOPE-gone-proxy-61514eed"
	for _, tc := range []struct {
		reason, name string // of the container, given a scope
		key          string // what the engine lists it as
		times        int    // the engine shows it; 0 is for ever
		told         bool
	}{
		{"a neighbour's proxy that starts or ends", proxy, "ep-b6db", 2, false},
		{"one that stays has no business there", proxy, "ep-b6db", 0, true},
		{"somebody else's container", "web", "ep-b6db", 0, true},
		{"another scope's proxy", "sandplan-other-w-job-proxy-61514eed", "ep-b6db", 0, true},
		{"a name that only begins like ours", "sandplan-SCOPE-gone-proxy", "ep-b6db", 0, true},
		{"a container that is gone by the time it is looked up", proxy, "c0ffee", 0, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			scope := planner.Scope{} // known before the first answer is edited
			p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /networks/[0-9a-f]{64}$", After: 1, Times: tc.times, Edit: func(b any) any {
				b.(map[string]any)["Containers"] = map[string]any{tc.key: map[string]any{"EndpointID": "b6db", "IPv4Address": "10.0.0.9/22",
					"Name": strings.ReplaceAll(tc.name, "SCOPE", plainWords(scope.Project+"-"+scope.Workspace))}}
				return b
			}})
			e := openSocket(t, p.Socket)
			e.passing = 200 * time.Millisecond
			scope = testScope(t, e)
			up := testUplink(scope, 5)
			want := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, up)
			created(t, e, scope, want, up)
			got, err := (&neighbours{e: e, s: scope, uplink: want}).looks(t.Context())["gate"]()
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(got, tc.key); told != tc.told {
				t.Errorf("seen: %q", got)
			}
		})
	}
}

// TestForeignOnTheUplink: a container of somebody else is told by the first look, with the scope's
// labels copied to it or without.
func TestForeignOnTheUplink(t *testing.T) {
	p := dockertest.NewProxy(t, dockertest.Socket(t))
	e := openSocket(t, p.Socket)
	n := newNeighbours(t, e, 6)
	for _, tc := range []struct {
		reason string
		labels map[string]string
	}{
		{"no labels", nil},
		{"the labels of a proxy that is there already", labelsFor(n.s, "test:/here", planner.Resource{Addr: "invocation.a.proxy", Kind: planner.KindProxy})},
		{"the labels of an agent", labelsFor(n.s, "test:/here", planner.Resource{Addr: "invocation.a.agent", Kind: planner.KindAgent})},
	} {
		id := n.make(t, unique("dc-foreign"), tc.labels)
		if err := e.cli.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
			t.Fatal(err)
		}
		for depth, look := range n.looks(t.Context()) {
			const enough = 3
			lists := leastCalls(t, p, "^GET /containers/json$", enough, func() {
				if got, err := look(); err != nil || !strings.Contains(got, id) {
					t.Errorf("%s, %s: seen %q, %v", tc.reason, depth, got, err)
				}
			})
			if lists > enough {
				t.Errorf("%s, %s: it took several looks (%d lists)", tc.reason, depth, lists)
			}
		}
		if err := removeContainer(t.Context(), e, planner.Object{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignPort: an interface on the bridge that belongs to no endpoint is told once it is no endpoint
// on its way, and on an invocation's own network at once.
func TestForeignPort(t *testing.T) {
	e := openEngine(t)
	e.passing = 500 * time.Millisecond
	n := newNeighbours(t, e, 7)
	bridge := bridgeName(n.s, planner.AddrUplink)
	veth := fmt.Sprintf("dcv%d", time.Now().UnixNano()%1e8)
	ip(t, "link", "add", veth, "type", "veth", "peer", "name", veth+"p")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", veth).Run() })
	ip(t, "link", "set", veth, "master", bridge)
	for depth, look := range n.looks(t.Context()) {
		if got, err := look(); err != nil || got != "Bridge.foreign_ports 1" {
			t.Errorf("%s: seen %q, %v", depth, got, err)
		}
	}
}

// TestAllLeaveTheUplinkAtOnce: who was on the uplink when it was looked at, and whose interface is gone when it is
// looked at again, is not on it any more, even when nobody else is.
func TestAllLeaveTheUplinkAtOnce(t *testing.T) {
	veth := fmt.Sprintf("dcl%d", time.Now().UnixNano()%1e8)
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /networks/[0-9a-f]{64}$", After: 1, Times: 1, Edit: func(b any) any {
		// One of two has no interface on the bridge any more, and the other one's goes now.
		_ = exec.Command("ip", "link", "delete", veth).Run()
		b.(map[string]any)["Containers"] = map[string]any{
			"c0ffee": map[string]any{"EndpointID": "b6db", "IPv4Address": "10.0.0.9/22", "Name": "one"},
			"c0ffef": map[string]any{"EndpointID": "b6dc", "IPv4Address": "10.0.0.10/22", "Name": "two"}}
		return b
	}})
	e := openSocket(t, p.Socket)
	scope := testScope(t, e)
	up := testUplink(scope, 5)
	want := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, up)
	created(t, e, scope, want, up)
	ip(t, "link", "add", veth, "type", "veth", "peer", "name", veth+"p")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", veth).Run() })
	ip(t, "link", "set", veth, "master", bridgeName(scope, planner.AddrUplink))
	if got, err := (&neighbours{e: e, s: scope, uplink: want}).looks(t.Context())["plan"](); err != nil || got != "" {
		t.Errorf("seen: %q, %v", got, err)
	}
	if _, there := exec.Command("ip", "link", "show", veth).Output(); there == nil {
		t.Error("the engine was not asked who is on the uplink")
	}
}
