package docker

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"
	"github.com/vishvananda/netlink"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// bridgesByTurns is this machine with a bridge more each time somebody looks: one that is there for one look, and then
// another one.
type bridgesByTurns struct {
	Kernel
	looks *atomic.Int32
}

func (k bridgesByTurns) Links() ([]netlink.Link, error) {
	all, err := k.Kernel.Links()
	n := min(int(k.looks.Add(1)), 2)
	return append(all, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("sp-0123456789a%d", n), Index: 1<<30 + n}}), err
}

// TestOneBridgeAfterTheOther looks while somebody makes or removes one network after the other: there is always a
// bridge without a network, and none was there each time. (What stays is told, see TestWhatStaysIsWaitedForOnce.)
func TestOneBridgeAfterTheOther(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	e.options.Kernel = bridgesByTurns{e.options.Kernel, new(atomic.Int32)}
	snap, err := e.Observe(t.Context(), testScope(t, e))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range snap.Foreign {
		if strings.HasPrefix(c.Name, "sp-0123456789a") {
			t.Errorf("%s %s", c.Name, c.Detail)
		}
	}
}

// TestListsReadApart makes the shim volume and an agent when the list of volumes was read, and before that of containers
// is: nobody sees an agent whose shim somebody has taken away. (A network that is not listed yet shows by its bridge.)
func TestListsReadApart(t *testing.T) {
	t.Parallel()
	direct := openEngine(t)
	s := testScope(t, direct)
	img := bareImage(t, direct)
	read, made := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(read) })
	p := dockertest.NewProxy(t, dockertest.Socket(t),
		dockertest.Fault{Call: "^GET /volumes$", Edit: func(body any) any { once(); return body }},
		dockertest.Fault{Call: "^GET /containers/json$", Times: 1, Until: made})
	e := openSocket(t, p.Socket)
	looked := observing(t, e, s)
	<-read
	const agent = planner.Address("invocation.a.agent")
	_, err := direct.cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: objectName(s, planner.AddrShim, img.ID), Driver: "local",
		Labels: labelsFor(s, "test:/here", planner.Resource{Addr: planner.AddrShim, Kind: planner.KindShim})})
	if err != nil {
		t.Fatal(err)
	}
	bareAgent(t, direct, s, img, agent)
	close(made)
	snap := looked()
	for _, a := range []planner.Address{agent, planner.AddrShim} {
		if _, ok := snap.Object(a); !ok {
			t.Errorf("there is no %s", a)
		}
	}
}

// TestSharedGoesBetweenLooks takes the uplink away between two looks at invocations that are worked on by turns: what
// was in peace beside the uplink is not shown beside none.
func TestSharedGoesBetweenLooks(t *testing.T) {
	t.Parallel()
	direct := openEngine(t)
	s := testScope(t, direct)
	img := bareImage(t, direct)
	d := testUplink(s, 2)
	created(t, direct, s, resourceOf(t, direct, planner.KindUplink, planner.AddrUplink, d), d)
	var looks [2]atomic.Int32
	var faults []dockertest.Fault
	for i, a := range []planner.Address{"invocation.a.agent", "invocation.b.agent"} {
		id := bareAgent(t, direct, s, img, a)
		faults = append(faults, dockertest.Fault{Call: "^GET /containers/" + id + "/json$", Edit: func(body any) any {
			if n := int(looks[i].Add(1)); n+i == 2 { // the first look meets b, the second one a
				body.(map[string]any)["State"].(map[string]any)["Status"] = "removing"
			}
			return body
		}})
	}
	faults = append(faults, dockertest.Fault{Call: "^GET /networks$", Edit: func(body any) any {
		if looks[0].Load() == 0 {
			return body
		}
		var others []any
		for _, n := range body.([]any) {
			if n.(map[string]any)["Name"] != d.Name {
				others = append(others, n)
			}
		}
		return others
	}})
	p := dockertest.NewProxy(t, dockertest.Socket(t), faults...)
	e := openSocket(t, p.Socket)
	e.passing = time.Minute
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := snap.Object(planner.AddrUplink); ok || looks[0].Load() != 3 {
		t.Errorf("the uplink is there: %v, after %d looks; want none after 3", ok, looks[0].Load())
	}
}
