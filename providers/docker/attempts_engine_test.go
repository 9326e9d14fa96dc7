package docker

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

// attempt is one way to make something else of a scope without a look noticing it.
type attempt struct {
	reason string
	// want is a part of what an audit says and the gate refuses for; "" is for what makes no difference.
	want string
	// do makes the difference and says how it is taken back. An error is the engine's refusal.
	do func() (undo func(), err error)
	// refused: engines may refuse the attempt, which is as good.
	refused bool
	// last: the look immediately before a start, which lists nothing but the scope's, sees it too.
	last bool
}

// TestFreshAttacks is what was tried with the source at hand, to be told as no difference.
func TestFreshAttacks(t *testing.T) {
	t.Parallel()
	v := newVictim(t, "10.231.224.0/20")
	if said, code := v.audit(t); code != drift.CodeClean {
		t.Fatalf("as it was made, it differs: %s", said)
	}
	for _, some := range [][]attempt{v.labelAttempts(), v.networkAttempts(), v.volumeAttempts(), v.hostAttempts()} {
		for _, a := range some {
			v.try(t, a)
		}
	}
}

// victim is an applied scope, with the IDs and names that an attacker finds.
type victim struct {
	*world
	c              *Compiled
	network, agent string // IDs
	bridge, uplink string // names of interfaces
	shim, shimDir  string // the volume, and where it is
	layer          string // of the agent
	second         string // a network that has the name of the agent's
}

func newVictim(t *testing.T, pool string) *victim {
	t.Helper()
	w := newWorld(t)
	c, ids := w.makeOne(pool)
	v := &victim{world: w, c: c, network: ids["invocation.one.network"], agent: ids["invocation.one.agent"], shim: ids[planner.AddrShim],
		bridge: bridgeName(w.scope(), "invocation.one.network"), uplink: bridgeName(w.scope(), planner.AddrUplink)}
	vol, err := w.engine.cli.VolumeInspect(t.Context(), v.shim)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := w.engine.inspect(t.Context(), "/containers/"+v.agent+"/json")
	if err != nil {
		t.Fatal(err)
	}
	v.shimDir = vol.Mountpoint
	v.layer, _ = lookup(agent, mustParsePath("GraphDriver.Data.UpperDir")).(string)
	return v
}

func (v *victim) try(t *testing.T, a attempt) {
	t.Helper()
	undo, err := a.do()
	if err != nil {
		if !a.refused {
			t.Errorf("%s: %v", a.reason, err)
		}
		t.Logf("%s: refused by the engine: %v", a.reason, err)
		return
	}
	said, code := v.audit(t)
	refusals, atLast := v.gate(t)
	undo()
	switch {
	case a.want == "" && (code != drift.CodeClean || len(refusals)+len(atLast) > 0):
		t.Errorf("%s makes no difference, and is told as one: %s; the gate: %+v %+v", a.reason, said, refusals, atLast)
	case a.want == "":
	case code != drift.CodeDrift || !strings.Contains(said, a.want):
		t.Errorf("%s: an audit ends with %d and says %q, want %q in it", a.reason, code, said, a.want)
	case len(refusals) == 0 || a.last && len(atLast) == 0:
		t.Errorf("%s: the gate refuses for %+v, and immediately before the start for %+v", a.reason, refusals, atLast)
	}
	if said, code := v.audit(t); code != drift.CodeClean {
		t.Fatalf("%s is taken back, and what is left differs: %s", a.reason, said)
	}
}

// audit is what drift says and ends with.
func (v *victim) audit(t *testing.T) (string, int) {
	t.Helper()
	s := v.c.Complete(v.observe(t.Context()))
	r := drift.Audit(planner.Diff(v.c.Resources(), s, planner.Options{}))
	var said []string
	for _, f := range r.Findings {
		said = append(said, fmt.Sprintf("%s %s %s", f.Addr, f.Path(), f.Text))
		if f.Mismatch != nil {
			said = append(said, show(f.Mismatch.Got))
		}
	}
	for _, o := range s.Objects {
		for _, x := range o.Extra {
			said = append(said, x.Detail)
		}
	}
	return strings.Join(said, "; "), r.Code()
}

// gate is what forbids a start: the look before anything is started, and the one immediately before the agent is.
func (v *victim) gate(t *testing.T) (first, last []planner.Finding) {
	t.Helper()
	run := []planner.Address{"invocation.one"}
	first = drift.Gate(v.c.Resources(), v.c.Complete(v.observe(t.Context())), drift.Look{Run: run}).Refusals
	parts := []planner.Address{"invocation.one", planner.AddrUplink, planner.AddrShim}
	s, err := v.engine.Recheck(t.Context(), v.scope(), parts)
	if err != nil {
		t.Fatal(err)
	}
	return first, drift.Gate(v.c.Resources(), v.c.Complete(s), drift.Look{Run: run, Only: parts}).Refusals
}

// labels are those of the scope and more.
func (v *victim) labels(more ...string) map[string]string {
	out := map[string]string{labelProject: v.scope().Project, labelWorkspace: v.scope().Workspace}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return maps.Clone(out)
}

// container makes one of somebody's, on no network unless told.
func (v *victim) container(name string, labels map[string]string, host container.HostConfig, start bool) func() (func(), error) {
	return func() (func(), error) {
		if host.NetworkMode == "" {
			host.NetworkMode = "none"
		}
		made, err := v.engine.cli.ContainerCreate(v.t.Context(), &container.Config{Image: v.world.agent, Entrypoint: []string{"/agent"}, Labels: labels},
			&host, nil, nil, name)
		if err != nil {
			return nil, err
		}
		undo := func() {
			if err := removeContainer(context.Background(), v.engine, planner.Object{ID: made.ID, Name: name}); err != nil {
				v.t.Error(err) // whatever is seen next follows from it
			}
		}
		if start {
			if err := v.engine.cli.ContainerStart(v.t.Context(), made.ID, container.StartOptions{}); err != nil {
				undo()
				return nil, err
			}
		}
		return undo, nil
	}
}

func (v *victim) net(name, subnet string, o network.CreateOptions) func() (func(), error) {
	return func() (func(), error) {
		if subnet != "" {
			o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
		}
		made, err := v.engine.cli.NetworkCreate(v.t.Context(), name, o)
		return func() { _ = v.engine.cli.NetworkRemove(context.Background(), made.ID) }, err
	}
}

func (v *victim) volume(name string, labels, options map[string]string) func() (func(), error) {
	return func() (func(), error) {
		_, err := v.engine.cli.VolumeCreate(v.t.Context(), volume.CreateOptions{Name: name, Driver: "local", Labels: labels, DriverOpts: options})
		return func() { _ = v.engine.cli.VolumeRemove(context.Background(), name, true) }, err
	}
}

// host runs a command of the machine.
func (v *victim) host(do, undo string) func() (func(), error) {
	run := func(line string) error {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	}
	return func() (func(), error) {
		if err := run(do); err != nil {
			return nil, err
		}
		return func() {
			if err := run(undo); err != nil {
				v.t.Error(err)
			}
		}, nil
	}
}

// both makes the first, then the second, and takes them back in the other order.
func both(first, second func() (func(), error)) func() (func(), error) {
	return func() (func(), error) {
		undo, err := first()
		if err != nil {
			return nil, err
		}
		more, err := second()
		if err != nil {
			undo()
			return nil, err
		}
		return func() { more(); undo() }, nil
	}
}
