package docker

import (
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestShimIsSeededForGood makes a shim while the engine still removes the seed of a destroy that was killed, and while
// somebody prunes volumes that nobody uses: what is there in the end is what was asked for, with its labels.
func TestShimIsSeededForGood(t *testing.T) {
	t.Parallel()
	const create = "^POST /containers/create$"
	for _, tt := range []struct {
		reason string
		fault  dockertest.Fault
		prunes bool
	}{
		{"the seed's name is still that of the one before", dockertest.Fault{Call: create, Times: 1, Status: 409, Message: "Conflict. The container name is already in use"}, false},
		{"the volume is pruned before the seed uses it", dockertest.Fault{Call: create, Times: 1}, true},
	} {
		direct := openEngine(t)
		s := testScope(t, direct)
		img := withProgram(t, direct, "package main\n\nfunc main() {}\n")
		d := desiredShim{scope: s, image: img.ID, content: shimContent(img.binary)}
		pruned := make(chan struct{})
		if tt.prunes {
			tt.fault.Until = pruned
		}
		p := dockertest.NewProxy(t, dockertest.Socket(t), tt.fault)
		e := openSocket(t, p.Socket)
		e.own = direct.own
		want := resourceOf(t, e, planner.KindShim, planner.AddrShim, d)
		if tt.prunes {
			go func() {
				defer close(pruned)
				for p.Count(create) == 0 && t.Context().Err() == nil {
					_ = pause(t.Context(), settleTime/10)
				}
				if err := direct.cli.VolumeRemove(t.Context(), d.name(), false); err != nil {
					t.Error(err)
				}
			}()
		}
		created(t, e, s, want, d)
		snap, err := direct.Observe(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		o, there := snap.Object(planner.AddrShim)
		if diff := planner.Compare(want.Fields, o.Observed); !there || len(diff) > 0 || o.Digest != want.Digest || len(snap.Duplicates) > 0 {
			t.Errorf("%s: there: %v, it differs at %+v, duplicates: %+v", tt.reason, there, diff, snap.Duplicates)
		}
	}
}
