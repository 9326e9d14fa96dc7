package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

func TestProveShared(t *testing.T) {
	e := openEngine(t)
	if !e.apart.known || len(e.apart.names) != 0 {
		t.Errorf("root and the engine on one machine: %+v", e.apart)
	}
	s := testScope(t, e)
	for _, tc := range []struct {
		reason string
		apart  apart
		faults []dockertest.Fault
		want   string
	}{
		{reason: "the namespaces tell"},
		{reason: "another mount namespace", apart: apart{known: true, names: []string{"mount"}}, want: "another mount namespace"},
		{reason: "they cannot be looked at, and the word comes back", apart: apart{}},
		{reason: "the directory is not there for the engine", faults: []dockertest.Fault{{Call: "^POST /containers/create$", Status: 400,
			Message: `invalid mount config for type "bind": bind source path does not exist: /x`}}, want: "does not see this machine's files"},
		{reason: "another failure is told as it is", faults: []dockertest.Fault{{Call: "archive$", Status: 500, Message: "no space left"}}, want: "no space left"},
	} {
		p := dockertest.NewProxy(t, dockertest.Socket(t), tc.faults...)
		e := openSocket(t, p.Socket)
		if tc.reason != "the namespaces tell" {
			e.apart = tc.apart
		} else {
			e.apart = namespacesOf(dockertest.Socket(t), "/proc")
		}
		e.options.DataDir = filepath.Join(t.TempDir(), "data")
		err := e.ProveShared(t.Context(), s)
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if left, _ := os.ReadDir(e.options.DataDir); len(left) != 0 {
			t.Errorf("%s: %v is left behind", tc.reason, left)
		}
	}
	if snap, err := e.Observe(t.Context(), s); err != nil || len(snap.Duplicates) != 0 {
		t.Errorf("left behind on the engine: %+v, %v", snap.Duplicates, err)
	}
}

func TestNothingIsMadeUnproven(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	e.apart = apart{known: true, names: []string{"network"}}
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 96)
	if o, err := e.create(t.Context(), s, resourceOf(t, e, planner.KindNetwork, a, d), d, nil); err == nil || o.ID != "" || !strings.Contains(err.Error(), "another network namespace") {
		t.Errorf("made %q with %v", o.ID, err)
	}
	if snap, err := e.Observe(t.Context(), s); err != nil || len(scoped(snap)) != 0 {
		t.Errorf("%+v, %v", scoped(snap), err)
	}
}

func TestNamespacesOfNobody(t *testing.T) {
	for reason, got := range map[string]apart{
		"no socket":               namespacesOf(filepath.Join(t.TempDir(), "none"), "/proc"),
		"no process to look into": namespacesOf(dockertest.Socket(t), t.TempDir()),
	} {
		if got.known {
			t.Errorf("%s: %+v is taken for knowledge", reason, got)
		}
	}
}
