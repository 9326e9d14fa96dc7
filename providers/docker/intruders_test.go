package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// intruding are what a look says of foreign containers on the object at an address.
func intruding(t *testing.T, s planner.Snapshot, a planner.Address) string {
	t.Helper()
	o, ok := s.Object(a)
	if !ok {
		t.Fatalf("%s is not among the %d objects", a, len(s.Objects))
	}
	var out []string
	for _, x := range o.Extra {
		if strings.HasPrefix(x.Path, "Foreign") {
			out = append(out, x.Detail)
		}
	}
	return strings.Join(out, "; ")
}

// sleeping starts a container that sleeps, and removes it at the end.
func sleeping(t *testing.T, e *Engine, image, name string, labels map[string]string, host container.HostConfig) string {
	t.Helper()
	made, err := e.cli.ContainerCreate(t.Context(), &container.Config{Image: image, User: "65532", Labels: labels}, &host, nil, nil, unique(name))
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
	return made.ID
}

func TestIntruders(t *testing.T) {
	p := dockertest.NewProxy(t, dockertest.Socket(t))
	e := openSocket(t, p.Socket)
	s := testScope(t, e)
	img := withProgram(t, e, "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n")
	if err := img.load(t.Context(), e.cli); err != nil {
		t.Fatal(err)
	}
	const agentAddr = planner.Address("invocation.a.agent")
	shim := planner.Resource{Addr: planner.AddrShim, Kind: planner.KindShim}
	vol, err := e.cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: objectName(s, planner.AddrShim), Labels: labelsFor(s, "test:/here", shim)})
	if err != nil {
		t.Fatal(err)
	}
	agent := sleeping(t, e, img.ID, "dc-agent", labelsFor(s, "test:/here", planner.Resource{Addr: agentAddr, Kind: planner.KindAgent}),
		container.HostConfig{NetworkMode: "none"})

	looks := map[string]func() (planner.Snapshot, error){
		"plan": func() (planner.Snapshot, error) { return e.Observe(t.Context(), s) },
		"gate": func() (planner.Snapshot, error) {
			return e.Recheck(t.Context(), s, []planner.Address{agentAddr, planner.AddrShim})
		},
	}
	expect := func(reason string, a planner.Address, want string) {
		t.Helper()
		for depth, look := range looks {
			snap, err := look()
			if err != nil {
				t.Fatal(err)
			}
			if got := intruding(t, snap, a); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s, %s: %q, want %q in it", reason, depth, got, want)
			}
		}
	}
	expect("nobody", agentAddr, "")
	expect("nobody", planner.AddrShim, "")
	sleeping(t, e, img.ID, "dc-mounts", nil, container.HostConfig{NetworkMode: "none",
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: vol.Name, Target: "/v"}}})
	expect("a volume by its name", planner.AddrShim, "mounts the volume, writable, at /v")
	sleeping(t, e, img.ID, "dc-binds", nil, container.HostConfig{NetworkMode: "none",
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: vol.Mountpoint, Target: "/b", ReadOnly: true}}})
	expect("a volume by its directory", planner.AddrShim, "mounts the volume, read-only, at /b")
	sleeping(t, e, img.ID, "dc-net", nil, container.HostConfig{NetworkMode: container.NetworkMode("container:" + unique("dc-agent"))})
	expect("its network, by name", agentAddr, "joins it by HostConfig.NetworkMode")
	pid := sleeping(t, e, img.ID, "dc-pid", nil, container.HostConfig{NetworkMode: "none", PidMode: container.PidMode("container:" + agent)})
	expect("its processes", agentAddr, "joins it by HostConfig.PidMode")
	if n := p.Count("^GET /containers/" + pid + "/json$"); n != 1 {
		t.Errorf("a foreign container was inspected %d times in several looks", n)
	}
}

// TestLatecomerThatIsGone: another run's agent that was made after the gate had listed the scope's containers, ran when
// it listed those that run, and is gone by the time it is asked for, has not reached into anything.
func TestLatecomerThatIsGone(t *testing.T) {
	t.Parallel()
	direct := openEngine(t)
	s := testScope(t, direct)
	img := withProgram(t, direct, "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n")
	shim := shimOf(t, direct, s)
	const own, other = planner.Address("invocation.a.agent"), planner.Address("invocation.b.agent")
	labels := func(a planner.Address) map[string]string {
		return labelsFor(s, "test:/here", planner.Resource{Addr: a, Kind: planner.KindAgent})
	}
	sleeping(t, direct, img.ID, "dc-own", labels(own), container.HostConfig{NetworkMode: "none"})
	was := map[string]any{"Id": strings.Repeat("0f", 32), "Names": []any{"/" + objectName(s, other)}, "State": "running", "Labels": toTree(labels(other)),
		"Mounts": []any{map[string]any{"Type": "volume", "Name": shim.ID, "Destination": toolDir, "RW": false}}}
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^GET /containers/json$", After: 1, Times: 1,
		Edit: func(running any) any { return append(running.([]any), was) }})
	snap, err := openSocket(t, p.Socket).Recheck(t.Context(), s, []planner.Address{own, planner.AddrShim})
	if err != nil {
		t.Fatal(err)
	}
	if got := intruding(t, snap, planner.AddrShim); got != "" || p.Count("^GET /containers/json$") < 3 {
		t.Errorf("an agent that came and went %s; lists: %d", got, p.Count("^GET /containers/json$"))
	}
}

func TestJoinsOf(t *testing.T) {
	for _, tc := range []struct{ tree, want string }{
		{`{"HostConfig":{"NetworkMode":"default","PidMode":"","IpcMode":"private"}}`, ""},
		{`{"HostConfig":{"PidMode":"host","IpcMode":"container:abc"}}`, "HostConfig.IpcMode abc"},
		{`{"HostConfig":{"NetworkMode":"container:x","VolumesFrom":["y:ro","z"]}}`, "HostConfig.NetworkMode x, HostConfig.VolumesFrom y, HostConfig.VolumesFrom z"},
		{`{}`, ""},
	} {
		var got []string
		for _, j := range joinsOf(parse(t, tc.tree)) {
			got = append(got, j.setting+" "+j.target)
		}
		if s := strings.Join(got, ", "); s != tc.want {
			t.Errorf("%s: %q, want %q", tc.tree, s, tc.want)
		}
	}
}
