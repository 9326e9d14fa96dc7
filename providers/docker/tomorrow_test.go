package docker

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// A field that a newer engine shows is told of before anything is made.
func TestNothingIsMadeOnAnEngineOfTomorrow(t *testing.T) {
	socket := dockertest.Socket(t)
	add := func(at ...string) func(any) any {
		return func(b any) any {
			v := b.(map[string]any)
			for _, key := range at {
				v = v[key].(map[string]any)
			}
			v["FieldOfTomorrow"] = "on"
			return b
		}
	}
	const lock = "^GET /containers/sandplan-[^/]*/json$"
	for _, tc := range []struct {
		reason string
		faults []dockertest.Fault
		want   string
	}{
		{reason: "an engine of today"},
		{"a network has it", []dockertest.Fault{{Call: "^GET /networks/none$", Edit: add()}}, "FieldOfTomorrow of a network"},
		{"a container has it", []dockertest.Fault{{Call: lock, Edit: add("HostConfig")}}, "HostConfig.FieldOfTomorrow of a container"},
		{"its configuration has it", []dockertest.Fault{{Call: lock, Edit: add("Config")}}, "Config.FieldOfTomorrow of a container"},
		{"its endpoint has it", []dockertest.Fault{{Call: lock, Edit: add("NetworkSettings", "Networks", "none")}}, "NetworkSettings.Networks.none.FieldOfTomorrow of a container"},
		{"where it decides over nothing it stops nothing", []dockertest.Fault{{Call: lock, Edit: add()}}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			e := openSocket(t, dockertest.NewProxy(t, socket, tc.faults...).Socket)
			s := testScope(t, e)
			l, err := e.LockScope(t.Context(), s, "apply")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Release(t.Context()) }()
			a := testInv.With(planner.PartNetwork)
			d := testNetwork(s, a, 112)
			o, err := e.create(t.Context(), s, resourceOf(t, e, planner.KindNetwork, a, d), d, nil)
			if tc.want == "" {
				if err != nil || o.ID == "" {
					t.Errorf("made %q, %v", o.ID, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "20.10 to 28.5") || o.ID != "" {
				t.Errorf("made %q with %v, want %q", o.ID, err, tc.want)
			}
			if snap, err := e.Observe(t.Context(), s); err != nil || len(scoped(snap)) != 0 {
				t.Errorf("there are %+v, %v", scoped(snap), err)
			}
		})
	}
}
