package docker

import (
	"context"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

func TestLookSurvivesOneBrokenObject(t *testing.T) {
	real := openEngine(t)
	s := testScope(t, real)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 56)
	want := resourceOf(t, real, planner.KindNetwork, a, d)
	made := created(t, real, s, want, d)

	inspect := "^GET /networks/" + made.ID + "$"
	for _, tc := range []struct {
		reason string
		fault  dockertest.Fault
		// what: the object's extra; or the error of the whole look
		extra, fails string
	}{
		{"the engine cannot show it", dockertest.Fault{Call: inspect, Status: 500, Message: "layer not known"}, "it cannot be looked at", ""},
		{"what it shows is no object", dockertest.Fault{Call: inspect, Edit: func(any) any { return []any{} }}, "not a JSON object", ""},
		{"it is gone since it was listed", dockertest.Fault{Call: inspect, Status: 404, Message: "no such network"}, "", ""},
		{"the connection is lost", dockertest.Fault{Call: inspect, Cut: true}, "", "look again at"},
		{"a list cannot be read", dockertest.Fault{Call: "^GET /networks$", Status: 500, Message: "busy"}, "", "list network"},
		{"a list is null", dockertest.Fault{Call: "^GET /containers/json$", Edit: func(any) any { return nil }}, "none", ""},
		{"a list holds null", dockertest.Fault{Call: "^GET /networks$", Edit: func(any) any { return []any{nil} }}, "", "null in a list"},
	} {
		p := dockertest.NewProxy(t, dockertest.Socket(t), tc.fault)
		e := openSocket(t, p.Socket)
		snap, err := e.Recheck(t.Context(), s, []planner.Address{a})
		if tc.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		o, ok := snap.Object(a)
		switch {
		case tc.extra == "none":
			if !ok || len(o.Extra) != 0 {
				t.Errorf("%s: %v, extra %+v", tc.reason, ok, o.Extra)
			}
		case tc.extra == "":
			if ok {
				t.Errorf("%s: the object is still there: %+v", tc.reason, o)
			}
		case !ok || len(o.Extra) != 1 || !strings.Contains(o.Extra[0].Detail, tc.extra) || o.Declared != nil || o.ID != made.ID:
			t.Errorf("%s: %+v, want an extra that says %q", tc.reason, o, tc.extra)
		}
	}
	if err := real.Delete(t.Context(), planner.Object{Kind: planner.KindNetwork, ID: made.ID}); err != nil {
		t.Error(err)
	}
	if err := real.Delete(t.Context(), planner.Object{Kind: planner.KindNetwork, ID: made.ID}); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestForeignEndpoint(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 64)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	made := created(t, e, s, want, d)
	id := startedStranger(t, e, made.ID)
	for range 3 { // the look at bridges and endpoints is not atomic, and must not flicker
		if got := differsAt(t, e, s, want); got != "Containers" {
			t.Errorf("a foreign container on the network is seen at %q", got)
		}
	}
	armed := ofLockImage(t, e, &container.HostConfig{NetworkMode: "none"}, unique("dc-armed"))
	if err := e.cli.NetworkDisconnect(t.Context(), made.ID, id, true); err != nil {
		t.Fatal(err)
	}
	if got := differsAt(t, e, s, want); got != "" {
		t.Errorf("after it left, seen at %q", got)
	}
	if err := e.cli.NetworkDisconnect(t.Context(), "none", armed, true); err != nil {
		t.Fatal(err)
	}
	if err := e.cli.NetworkConnect(t.Context(), made.ID, armed, nil); err != nil {
		t.Fatal(err)
	}
	if got := differsAt(t, e, s, want); got != "Containers" {
		t.Errorf("a foreign container that will join when it starts is seen at %q", got)
	}
	if err := e.cli.NetworkConnect(t.Context(), made.ID, id, nil); err != nil {
		t.Fatal(err)
	}
	// A destroy must not be stopped by it, and must not touch the container itself.
	if err := e.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	v, err := e.inspect(t.Context(), "/containers/"+id+"/json")
	if err != nil || treeStatus(v) != planner.StatusRunning {
		t.Errorf("the foreign container was touched: %v %v", treeStatus(v), err)
	}
}

// helperProgram stands for sandplan in an image of its own: it knows the subcommand "bridge", and
// sleeps when it is told anything else.
const helperProgram = `package main

import (
	"os"
	"time"

	"github.com/sandplan/sandplan/providers/docker"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "bridge" {
		os.Exit(docker.BridgeMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	time.Sleep(time.Hour)
}
`

// withProgram gives the engine a sandplan.image of the test's own, which is removed at the end with all containers of it.
func withProgram(t *testing.T, e *Engine, source string) *ownImage {
	t.Helper()
	o := e.options
	o.Self = buildProgram(t, source)
	e.own = lazyOwnImage(o)
	img, err := e.own()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		users, err := e.list(ctx, listContainers, url.Values{"all": {"1"},
			"filters": {planner.JSON(map[string][]string{"ancestor": {img.ID}}).Text()}})
		if err != nil {
			t.Logf("clean up: %v", err) // a fake that is over, or an engine without the image
		}
		for _, v := range users { // those of the test's scope would go too late
			_ = removeContainer(ctx, e, planner.Object{ID: treeID(v)})
		}
		_ = removeOwnImage(ctx, e.cli, img.ID)
	})
	return img
}

// startedStranger runs a container of nobody's on a network.
func startedStranger(t *testing.T, e *Engine, network string) string {
	t.Helper()
	img := withProgram(t, e, "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n")
	if err := img.load(t.Context(), e.cli); err != nil {
		t.Fatal(err)
	}
	made, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: img.ID, User: "65532"},
		&container.HostConfig{NetworkMode: "bridge"}, nil, nil, unique("dc-stranger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeContainer(context.Background(), e, planner.Object{ID: made.ID}); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := e.cli.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.cli.NetworkConnect(t.Context(), network, made.ID, nil); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func TestTreeStatus(t *testing.T) {
	for _, tc := range []struct {
		tree string
		want planner.Status
	}{
		{`{"State":{"Status":"created","StartedAt":"0001-01-01T00:00:00Z"}}`, planner.StatusCreated},
		{`{"State":{"Status":"created","StartedAt":"2026-01-01T00:00:00Z"}}`, planner.StatusExited},
		{`{"State":{"Status":"running"}}`, planner.StatusRunning},
		{`{"State":{"Status":"paused"}}`, planner.StatusRunning},
		{`{"State":{"Status":"exited"}}`, planner.StatusExited},
		{`{"State":{"Status":"dead"}}`, planner.StatusExited},
		{`{"State":{"Status":"of tomorrow"}}`, planner.StatusRunning},
		{`{"State":"created"}`, planner.StatusCreated},
		{`{"State":"restarting"}`, planner.StatusRunning},
		{`{"Driver":"bridge"}`, planner.StatusNone},
	} {
		if got := treeStatus(parse(t, tc.tree)); got != tc.want {
			t.Errorf("%s is %q, want %q", tc.tree, got, tc.want)
		}
	}
}

func TestObserveCallsTheEngineSparingly(t *testing.T) {
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "json$", Delay: time.Millisecond})
	e := openSocket(t, p.Socket)
	s := testScope(t, e)
	for i := range 3 {
		a := inv("n" + string(rune('a'+i))).With(planner.PartNetwork)
		d := testNetwork(s, a, 72+i)
		created(t, e, s, resourceOf(t, e, planner.KindNetwork, a, d), d)
	}
	const enough = 5
	if calls := leastCalls(t, p, "", enough, func() {
		if _, err := e.Observe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}); p.Count("^GET /networks$") == 0 || calls > enough {
		t.Errorf("an Observe of three idle networks needs the three lists, one of images and one of seeds, not %d calls: %q", calls, p.Calls())
	}
}

// leastCalls is how many calls of a kind a look makes when nobody else works on the engine: while others
// make and remove networks, a look reads its lists until they fit together. So the least of several looks
// counts; one with few enough of them ends the search.
func leastCalls(t *testing.T, p *dockertest.Proxy, kind string, enough int, look func()) int {
	t.Helper()
	least := math.MaxInt
	for tries := 0; tries < 30 && least > enough; tries++ {
		before := p.Count(kind)
		look()
		least = min(least, p.Count(kind)-before)
	}
	return least
}

func TestOtherScopesOfTheSameOrigin(t *testing.T) {
	e := openEngine(t)
	mine := testScope(t, e)
	lock, err := e.LockScope(t.Context(), mine, "apply")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release(context.Background()) }()
	for i, origin := range []string{"test:/here", "other:/there"} {
		s := planner.Scope{Project: mine.Project, Workspace: "w" + origin[:4]}
		d := testNetwork(s, "invocation.a.network", 88+i)
		want := resourceOf(t, e, planner.KindNetwork, "invocation.a.network", d)
		r := d.request()
		r.Labels = labelsFor(s, origin, want)
		made, err := e.cli.NetworkCreate(t.Context(), d.Name, r)
		if err != nil {
			t.Fatal(err)
		}
		defer removeByID(t, e, made.ID)
	}
	snap, err := e.Observe(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	var here []planner.Scope // other tests have the same origin
	for _, s := range snap.Elsewhere {
		if s.Project == mine.Project {
			here = append(here, s)
		}
	}
	if len(here) != 1 || here[0].Workspace != "wtest" || len(scoped(snap)) != 0 {
		t.Errorf("elsewhere %v, objects %v", here, scoped(snap))
	}
	all, err := e.Scopes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		if s.Project == mine.Project {
			names = append(names, s.Workspace)
		}
	}
	if strings.Join(names, " ") != "w wothe wtest" {
		t.Errorf("all scopes of the project: %q", names)
	}
}
