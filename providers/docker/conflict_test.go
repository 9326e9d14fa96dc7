package docker

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
)

func TestNetworkConflicts(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 16)
	want := resourceOf(t, e, planner.KindNetwork, a, d)

	t.Run("a foreign network has the name", func(t *testing.T) {
		made, err := e.cli.NetworkCreate(t.Context(), d.Name, network.CreateOptions{Driver: "bridge", Internal: true})
		if err != nil {
			t.Fatal(err)
		}
		defer removeByID(t, e, made.ID)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Name, ID: made.ID}, "another one of this name")
	})
	t.Run("a foreign network has the bridge", func(t *testing.T) {
		made, err := e.cli.NetworkCreate(t.Context(), unique("dc-other"), network.CreateOptions{Driver: "bridge", Internal: true,
			Options: map[string]string{optionBridge: d.Bridge}})
		if err != nil {
			t.Fatal(err)
		}
		defer removeByID(t, e, made.ID)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Bridge, ID: made.ID}, "an interface named "+d.Bridge)
	})
	t.Run("an interface without a network has the name of the bridge", func(t *testing.T) {
		ip(t, "link", "add", d.Bridge, "type", "bridge")
		defer ip(t, "link", "delete", d.Bridge)
		expectConflict(t, e, s, want, d, planner.Conflict{Name: d.Bridge}, "an interface named "+d.Bridge)
	})
	// And nothing of ours was left behind, nothing foreign was touched.
	if snap, err := e.Observe(t.Context(), s); err != nil || len(scoped(snap))+len(e.conflictsFor(snap.Foreign, []planner.Resource{want})) != 0 {
		t.Errorf("left behind: %+v %+v (%v)", snap.Objects, snap.Foreign, err)
	}
}

func expectConflict(t *testing.T, e *Engine, s planner.Scope, want planner.Resource, d desired, c planner.Conflict, refusal string) {
	t.Helper()
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := e.conflictsFor(snap.Foreign, []planner.Resource{want})
	if len(got) != 1 || got[0].Addr != want.Addr || got[0].Name != c.Name || got[0].ID != c.ID || got[0].Detail == "" {
		t.Errorf("conflicts %+v, want one at %s with %s %s", got, want.Addr, c.Name, c.ID)
	}
	if len(scoped(snap)) != 0 {
		t.Errorf("the foreign object is taken for ours: %+v", snap.Objects)
	}
	if other := want; len(e.conflictsFor(snap.Foreign, []planner.Resource{withName(other, "sandplan-other-00000000")})) != 0 {
		t.Error("the foreign object is in the way of an object with another name and bridge")
	}
	if o, err := e.create(t.Context(), s, want, d, nil); err == nil || !strings.Contains(err.Error(), refusal) || o.ID != "" {
		t.Errorf("create went on to %q with %v, want a refusal that says %q", o.ID, err, refusal)
	}
}

func withName(r planner.Resource, name string) planner.Resource {
	r.Fields = append([]planner.Field(nil), r.Fields...)
	for i := range r.Fields {
		if p := r.Fields[i].Path; p == pathName || p == pathBridge {
			r.Fields[i].Value = planner.JSON(name)
		}
	}
	return r
}

func removeByID(t *testing.T, e *Engine, id string) {
	t.Helper()
	if err := e.cli.NetworkRemove(context.Background(), id); err != nil {
		t.Error(err)
	}
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func TestDuplicateIsNotTheObject(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 24)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	o := created(t, e, s, want, d)
	r := network.CreateOptions{Driver: "bridge", Labels: labelsFor(s, "test:/here", want)}
	made, err := e.cli.NetworkCreate(t.Context(), unique("a-copy"), r)
	if err != nil {
		t.Fatal(err)
	}
	odd := network.CreateOptions{Driver: "bridge", Labels: labelsFor(s, "test:/here", planner.Resource{Addr: "\x1b[31mnonsense", Kind: "weird"})}
	nonsense, err := e.cli.NetworkCreate(t.Context(), unique("a-stray"), odd)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if objects := scoped(snap); len(objects) != 1 || objects[0].ID != o.ID {
		t.Errorf("objects %+v, want only %s", objects, o.ID)
	}
	var got []string
	for _, dup := range snap.Duplicates {
		got = append(got, fmt.Sprintf("%s %s", dup.Addr, dup.ID))
		if err := e.Delete(t.Context(), dup); err != nil {
			t.Errorf("a duplicate cannot be removed: %v", err)
		}
	}
	if want := fmt.Sprintf("sandplan.unknown %s, %s %s", nonsense.ID, a, made.ID); strings.Join(got, ", ") != want {
		t.Errorf("duplicates %q, want %q", got, want)
	}
}
