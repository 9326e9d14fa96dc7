package docker

import (
	"net"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestCreateAfterAKilledCommand: what a dead command's call made after this one had looked is ours by its
// labels, and must neither be adopted nor stop the work.
func TestCreateAfterAKilledCommand(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 104)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	r := d.request()
	r.Labels = labelsFor(s, "test:/here", want)
	late, err := e.cli.NetworkCreate(t.Context(), d.Name, r)
	if err != nil {
		t.Fatal(err)
	}
	o := created(t, e, s, want, d)
	if o.ID == late.ID {
		t.Error("the network of a dead command was adopted")
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil || len(scoped(snap)) != 1 || scoped(snap)[0].ID != o.ID || len(snap.Duplicates) != 0 {
		t.Errorf("objects %+v, duplicates %+v, %v", scoped(snap), snap.Duplicates, err)
	}
}

// goingBridge is this machine with a bridge that is there for a few looks only.
type goingBridge struct {
	Kernel
	name string
	left *atomic.Int32 // looks that find it there
}

func (k goingBridge) Links() ([]netlink.Link, error) {
	all, err := k.Kernel.Links()
	if k.left.Add(-1) >= 0 {
		all = append(all, k.link())
	}
	return all, err
}

func (k goingBridge) Link(name string) (netlink.Link, error) {
	if name == k.name && k.left.Add(-1) >= 0 {
		return k.link(), nil
	}
	return k.Kernel.Link(name)
}

func (k goingBridge) link() netlink.Link {
	return &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: k.name, Index: 1 << 30}}
}

func TestWhatIsInTheWayMayGoAway(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 112)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	const looks = 3 // that find it there, of the 16 that patience has
	left := new(atomic.Int32)
	e.options.Kernel = goingBridge{e.options.Kernel, d.Bridge, left}
	left.Store(looks)
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.conflictsFor(snap.Foreign, []planner.Resource{want}); len(got) != 0 || left.Load() >= 0 {
		t.Errorf("an interface that is gone a moment later is called a conflict, or not seen at all: %+v, %d", got, left.Load())
	}
	left.Store(looks)
	created(t, e, s, want, d)
	if left.Load() >= 0 {
		t.Errorf("the interface was not seen before the network was made: %d", left.Load())
	}
}

// TestWhatStaysIsWaitedForOnce: a bridge that an engine has left for good does not cost each look of a process
// its patience. It is told each time, and another one of its name is waited for anew.
func TestWhatStaysIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	p := dockertest.NewProxy(t, dockertest.Socket(t))
	e := openSocket(t, p.Socket)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 107)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	remove := func() { _ = exec.Command("ip", "link", "delete", d.Bridge).Run() }
	t.Cleanup(remove)
	const lists = "^GET /networks$"
	looked := func() int {
		t.Helper()
		before := p.Count(lists)
		snap, err := e.Observe(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.conflictsFor(snap.Foreign, []planner.Resource{want}); len(got) != 1 || got[0].Name != d.Bridge {
			t.Errorf("a bridge without a network is told as %+v", got)
		}
		return p.Count(lists) - before
	}
	ip(t, "link", "add", d.Bridge, "type", "bridge")
	if n := looked(); n < 2 {
		t.Errorf("the first look reads the lists %d times and waits for nothing", n)
	}
	// Bridges of other tests come and go and are waited for, so that reads say nothing of the next look.
	if !e.vain.has(d.Bridge, interfaceNumber(t, d.Bridge)) {
		t.Error("it is not known that the bridge was waited for")
	}
	l := &look{engine: e, scope: s}
	if err := l.load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.bridges, err = l.hostBridges(); err != nil {
		t.Fatal(err)
	}
	if l.unfit(nil)[unfitBridge+d.Bridge] {
		t.Error("the second look waits for the bridge again")
	}
	if e.vain.has(d.Bridge, interfaceNumber(t, d.Bridge)+1) {
		t.Error("another bridge of that name would not be waited for")
	}
}

func interfaceNumber(t *testing.T, name string) int {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return i.Index
}

// TestStartedTwinIsLeftAlone: what runs at the address was not left by a dead create.
func TestStartedTwinIsLeftAlone(t *testing.T) {
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /containers/json$", Edit: func(b any) any {
		for _, c := range b.([]any) {
			c.(map[string]any)["State"] = "running"
		}
		return b
	}})
	e := openSocket(t, p.Socket)
	s := testScope(t, e)
	lock, err := e.LockInvocation(t.Context(), s, "invocation.a", "run") // stands for any container of ours
	if err != nil {
		t.Fatal(err)
	}
	k := kind{name: kindLease, list: listContainers, remove: removeContainer}
	if err := e.removeTwins(t.Context(), &k, s, "invocation.a"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(t.Context()); err != nil {
		t.Errorf("a running container was removed as a twin: %v", err)
	}
	real := openEngine(t)
	if err := real.removeTwins(t.Context(), &k, s, "invocation.b"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(t.Context()); err != nil {
		t.Errorf("the container of another address was removed: %v", err)
	}
	if err := real.removeTwins(t.Context(), &k, s, "invocation.a"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(t.Context()); err == nil {
		t.Error("a twin that never started is still there")
	}
}
