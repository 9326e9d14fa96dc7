package docker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/planner"
)

// shimMutant is a shim volume with its seed. Everything in it is asked for in the request: what stands
// below Seed is the request of the seed's container.
func shimMutant(t *testing.T, w *world, c *Compiled) *mutant {
	t.Helper()
	e := w.engine
	want := c.resource(planner.AddrShim)
	d := c.desired[planner.AddrShim].(desiredShim)
	k, err := e.kind(planner.KindShim)
	if err != nil {
		t.Fatal(err)
	}
	labels := labelsFor(w.scope(), e.options.Origin, want)
	seedLabels := map[string]any{}
	for name, value := range labels {
		if name != labelDeclared && name != labelDigest {
			seedLabels[name] = value
		}
	}
	seedLabels[labelKind] = string(kindSeed)
	m := &mutant{engine: e, kind: k, want: want, all: []planner.Resource{c.resource(planner.AddrImage), want}, replaced: []planner.Address{want.Addr}, run: testInv,
		request: tree{"Name": d.name(), "Driver": "local", "Labels": toTree(labels), "Seed": map[string]any{
			"Name": d.seedSpec().name, "Image": d.image, "Mounts": []any{map[string]any(treeOf(seedMount(d.name())))}}},
		shape: reflect.TypeFor[struct {
			volume.Volume
			Seed container.HostConfig
		}]()}
	m.remake = func(t *testing.T, request tree) error {
		t.Helper()
		if m.id != "" {
			if err := e.Delete(t.Context(), planner.Object{Kind: want.Kind, ID: m.id, Addr: want.Addr}); err != nil {
				t.Fatal(err)
			}
		}
		m.id = ""
		body := maps.Clone(request)
		seed := body["Seed"].(map[string]any)
		delete(body, "Seed")
		body["DriverOpts"] = body["Options"]
		made, err := e.post(t.Context(), "/volumes/create", nil, body)
		if err != nil {
			return err
		}
		m.id = treeID(made)
		spec := d.seedSpec()
		host, config := treeOf(spec.host), treeOf(spec.config)
		for _, part := range []string{"Mounts", "Binds", "VolumesFrom", "Tmpfs"} {
			if v, ok := seed[part]; ok {
				host[part] = v
			}
		}
		if mounts, ok := host["Mounts"].([]any); ok && request["Name"] != d.name() {
			host["Mounts"] = putAt(mounts, mustParsePath("[0].Source"), func(any) any { return request["Name"] })
		}
		config["Image"], config["Labels"], config["HostConfig"], config["Volumes"] = seed["Image"], seedLabels, host, seed["Resolved"]
		if other, ok := seed["Config"].(string); ok {
			config["StopSignal"] = other
		}
		_, err = e.post(t.Context(), "/containers/create", map[string][]string{"name": {seed["Name"].(string)}}, config)
		return err
	}
	m.look = func(t *testing.T) planner.Object {
		t.Helper()
		s, err := e.Recheck(t.Context(), w.scope(), []planner.Address{planner.AddrShim})
		if err != nil {
			t.Fatal(err)
		}
		o, ok := s.Object(planner.AddrShim)
		if !ok {
			t.Fatal("the volume is not seen")
		}
		return o
	}
	m.show = func(t *testing.T, edit func(tree) tree) planner.Object {
		t.Helper()
		raw, err := k.inspect(t.Context(), e, m.id)
		if err != nil {
			t.Fatal(err)
		}
		l := &look{engine: e, scope: w.scope(), gate: true}
		if err := l.load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := k.complete(t.Context(), l, raw); err != nil {
			t.Fatal(err)
		}
		raw = edit(raw)
		return planner.Object{Addr: want.Addr, Kind: k.name, ID: m.id, Observed: k.table.observed(raw, nil)}
	}
	if err := m.remake(t, m.request); err != nil {
		t.Fatal(err)
	}
	if m.base, err = e.Observe(t.Context(), w.scope()); err != nil {
		t.Fatal(err)
	}
	return m
}

func toTree(words map[string]string) map[string]any {
	out := map[string]any{}
	for name, value := range words {
		out[name] = value
	}
	return out
}

func (m *mutant) seed(t *testing.T) string {
	t.Helper()
	l := &look{engine: m.engine, scope: m.base.Scope}
	seeds, err := l.seedsOf(t.Context(), m.id)
	if err != nil || len(seeds) != 1 {
		t.Fatalf("%d seeds, %v", len(seeds), err)
	}
	return treeID(seeds[0])
}

func TestCensusOfVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.compile(w.load(w.config("10.231.128.0/20", w.one("review"))))
	if _, err := c.Create(t.Context(), c.resource(planner.AddrImage), nil); err != nil {
		t.Fatal(err)
	}
	m := shimMutant(t, w, c)
	if got := m.paths(m.look(t)); len(got) != 0 {
		t.Fatalf("made by hand, as it should be, it differs at %q", got)
	}
	const written = "the engine writes it, and takes it from nobody"
	const emptied = "Content* Seed.Resolved Seed.Mounts"
	all := m.census(t, map[string]recipe{
		"Name":          {fields: "Seed.Mounts"}, // the seed mounts what is there
		"Driver":        {to: as(`"other"`), refused: "plugin"},
		"Scope":         {to: as(`"global"`), unheeded: written},
		"Options":       {to: as(`{"type":"tmpfs","device":"tmpfs"}`), fields: "Content*"},
		"Status":        {to: as(`{"a":"b"}`), unheeded: written},
		"Mountpoint":    {to: as(`"/etc"`), unheeded: written},
		"ClusterVolume": {to: as(`{"ID":"x"}`), unheeded: "only a swarm has it"},
		"Labels":        {to: with(`{"somebody":"else"}`)},
		"Content": {after: func(t *testing.T, m *mutant) {
			v, err := m.engine.cli.VolumeInspect(t.Context(), m.id)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(v.Mountpoint, filepath.Base(toolBinary)), []byte("x"), 0o555); err != nil {
				t.Fatal(err)
			}
		}},
		"Seed.Image": {to: as(fmt.Sprintf("%q", w.agent)), fields: "Content* Seed.Resolved Seed.Config"},
		// A container that runs on the volume is one that reaches into the scope.
		"Seed.State": {fields: "Foreign*", after: func(t *testing.T, m *mutant) {
			if err := m.engine.Start(t.Context(), m.seed(t)); err != nil {
				t.Fatal(err)
			}
		}},
		"Seed.Mounts":   {to: func(old any) any { return putAt(old, mustParsePath("[0].ReadOnly"), as("true")) }, fields: emptied},
		"Seed.Resolved": {to: as(`{"/extra":{}}`), fields: "Seed.Config"},
		"Seed.Config":   {to: as(`"SIGINT"`)},
		"Seed.HostConfig": {after: func(t *testing.T, m *mutant) {
			_, err := m.engine.cli.ContainerUpdate(t.Context(), m.seed(t), container.UpdateConfig{Resources: container.Resources{Memory: 32 * mib, MemorySwap: 32 * mib}})
			if err != nil {
				t.Fatal(err)
			}
		}},
		"Seed.Networks": {after: func(t *testing.T, m *mutant) {
			if err := m.engine.cli.NetworkDisconnect(t.Context(), "none", m.seed(t), true); err != nil {
				t.Fatal(err)
			}
		}},
		"Seed.Binds":       {to: as(`["/etc:/host:ro"]`), fields: "Seed.Resolved"},
		"Seed.VolumesFrom": {to: func(any) any { return []any{w.bystander(t)} }, fields: "Seed.Resolved"},
		"Seed.Tmpfs":       {to: as(`{"/tmp":""}`)},
	})
	report(t, "volumes", w.engine, all)
}

// bystander is a container with a volume of its own, as others have them.
func (w *world) bystander(t *testing.T) string {
	t.Helper()
	made, err := w.engine.cli.ContainerCreate(t.Context(), &container.Config{Image: w.agent, Volumes: map[string]struct{}{"/more": {}}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.engine.cli.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	})
	return made.ID
}

// Images are their own declaration. What a container was made from shows at the container and, for
// sandplan.image, at the image; one that is in use cannot be taken away, and its name counts for nothing.
func TestCensusOfImages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ids := w.makeOne("10.231.144.0/20")
	ctx, cli := t.Context(), w.engine.cli
	other, err := newOwnImage(w.engine.info.Arch, planner.KindImage, v1.Config{User: "1:1"}) // another sandplan's
	if err != nil {
		t.Fatal(err)
	}
	if err := other.load(ctx, cli); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeOwnImage(context.Background(), cli, other.ID) })
	all := tally{rows: 2}

	// Row Id of sandplan.image: the proxy is made of another one.
	m := containerMutant(t, w, c, ids, "invocation.one.proxy")
	if err := m.remake(t, putAt(map[string]any(m.request), mustParsePath("Config.Image"), func(any) any { return other.ID }).(map[string]any)); err != nil {
		t.Fatal(err)
	}
	seen := differences(c, c.Complete(w.observe(ctx)))
	named := func(what string) bool {
		return slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(s, what) })
	}
	if all.mutated++; !named("sandplan.image Id: ") || !named("invocation.one.proxy Image: ") {
		t.Errorf("the proxy is made of another image, and seen is %q", seen)
	} else {
		all.found++
	}
	if err := m.remake(t, m.request); err != nil {
		t.Fatal(err)
	}

	// Row Id of a pinned image: nobody can change or remove what is in use, and a tag that moves is no matter.
	if err := cli.ImageTag(ctx, other.ID, w.agent); err != nil {
		t.Fatal(err)
	}
	for _, d := range differences(c, c.Complete(w.observe(ctx))) {
		t.Errorf("after its tag has moved: %s", d)
	}
	_, err = cli.ImageRemove(ctx, c.pinned[planner.VendorImage("local")].id, image.RemoveOptions{})
	if err == nil {
		t.Error("the image of an agent that is there could be removed")
	} else {
		all.refused++
		all.calls = append(all.calls, "pinned Id: refused: "+err.Error())
	}
	report(t, "images", w.engine, all)
}
