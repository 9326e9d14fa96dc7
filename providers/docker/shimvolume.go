package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/sandplan/sandplan/planner"
)

// kindSeed marks the container that a shim volume was filled by. It is a part of sandplan.shim: it was
// created and never started, which makes the engine copy the image's directory into the volume, shows
// that this has been done, and lets the bytes be read back.
const kindSeed planner.Kind = "shim-seed"

// desiredShim is the volume that every agent and runner has read-only at /.sandplan, with its seed.
type desiredShim struct {
	scope   planner.Scope
	image   string // the ID of sandplan.image
	content map[string]any
}

// name holds the image's digest: an upgrade is another volume, and needs no agent to let go of this one.
func (d desiredShim) name() string { return objectName(d.scope, planner.AddrShim, d.image) }

func (d desiredShim) tree() tree {
	seed := d.seedSpec().tree()
	v := tree{"Name": d.name(), "Driver": "local", "Scope": "local", "Content": d.content,
		"Seed": seedView(seed, planner.StatusCreated, []any{map[string]any(treeOf(seedMount(d.name())))})}
	arrangeVolume(v, "")
	return v
}

// seedSpec is the container whose creation fills the volume.
func (d desiredShim) seedSpec() containerSpec {
	config := hardenedConfig(d.image, []string{})
	config.Hostname = "seed" // else the engine names it after the ID
	config.User = proxyUser
	host := hardenedHost(limits{memory: 16 * mib, nanoCPUs: 1e9, pids: 16}, ProxySeccomp())
	host.Mounts = []mount.Mount{seedMount(d.name())}
	return containerSpec{name: seedName(d.scope, d.image), config: config, host: host, own: true}
}

// seedName is the name of the seed for an image.
func seedName(scope planner.Scope, image string) string {
	return objectName(scope, planner.AddrShim, image, "seed")
}

// shimContent is what the volume holds, seen through the seed.
func shimContent(b *binary) map[string]any {
	return map[string]any{path.Base(toolBinary): "sha256:" + b.sha256 + " mode 0555 owner 0:0"}
}

// seedMount is the volume in the seed: in the place of the image's directory, and filled from it.
func seedMount(volume string) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: volume, Target: toolDir,
		VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Name: "local"}}}
}

// arrangeVolume replaces what follows from the rest.
func arrangeVolume(v tree, dataDir string) {
	name, _ := v["Name"].(string)
	if v["Mountpoint"] == nil && dataDir == "" || v["Mountpoint"] == dataDir+"/volumes/"+name+"/_data" {
		v["Mountpoint"] = inDataDir
	}
}

const inDataDir = "in the engine's data directory"

func (d desiredShim) create(ctx context.Context, e *Engine, labels map[string]string, _ planner.IDs) (string, error) {
	name := d.name()
	made, err := e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", DriverOpts: map[string]string{}, Labels: labels})
	if err != nil {
		return "", fmt.Errorf("create volume %s: %w", name, err)
	}
	// On a taken name the engine returns what is there, and says nothing.
	if !maps.Equal(made.Labels, labels) {
		return "", fmt.Errorf("create volume %s: one of this name is there, with other labels: it is not what this plan makes; "+
			"see it with \"docker volume inspect %s\" and remove it", name, name)
	}
	if err := d.seed(ctx, e, labels); err != nil {
		return name, err
	}
	return d.seeded(ctx, e, labels)
}

// seeded makes sure that both are there for good. Either may have been on its way out: a seed that a killed destroy has
// left the engine to remove has its name until it is gone; and a volume that nobody uses yet may be pruned by anybody,
// in whose place the engine makes one without labels for the seed.
func (d desiredShim) seeded(ctx context.Context, e *Engine, labels map[string]string) (string, error) {
	name := d.name()
	seed, err := inspectContainer(ctx, e, seedName(d.scope, d.image))
	if errdefs.IsNotFound(err) || err == nil && engineStatus(seed) == "removing" {
		return "", inTheWay{fmt.Errorf("create volume %s: what fills it is just being removed", name)}
	}
	if err != nil {
		return name, fmt.Errorf("look at what fills volume %s: %w", name, err)
	}
	now, err := e.cli.VolumeInspect(ctx, name)
	switch {
	case err != nil:
		return name, fmt.Errorf("look at volume %s: %w", name, err)
	case maps.Equal(now.Labels, labels):
		return name, nil
	}
	if id, _ := readIdentity(labelsOf(treeLabels(seed))); len(now.Labels) > 0 || id.scope != d.scope || id.kind != kindSeed {
		return name, fmt.Errorf("create volume %s: somebody put another one in its place", name)
	}
	if err := removeContainer(ctx, e, planner.Object{ID: treeID(seed), Name: treeName(seed)}); err != nil {
		return "", err
	}
	if err := removeVolume(ctx, e, planner.Object{ID: name, Name: name}); err != nil {
		return "", err
	}
	return "", inTheWay{fmt.Errorf("create volume %s: somebody removed it before it was filled", name)}
}

// seed creates the container whose creation fills the volume. A seed that is there already, from an
// apply that was interrupted, is what is wanted; whether it is right is compared as everything else.
func (d desiredShim) seed(ctx context.Context, e *Engine, labels map[string]string) error {
	own, err := e.own()
	if err != nil {
		return err
	}
	spec := d.seedSpec()
	config, host := spec.config, spec.host
	config.Labels = maps.Clone(labels)
	maps.DeleteFunc(config.Labels, func(k, _ string) bool { return k == labelDeclared || k == labelDigest })
	config.Labels[labelKind] = string(kindSeed)
	_, err = createFrom(ctx, e.cli, own, func() (string, error) {
		made, err := e.cli.ContainerCreate(ctx, &config, &host, nil, nil, spec.name)
		return made.ID, err
	})
	if err != nil && !errdefs.IsConflict(err) {
		return fmt.Errorf("create container %s, which fills volume %s: %w", spec.name, d.name(), err)
	}
	// As the first container of a scope it is what keeps the image from now on.
	if err := own.keep(ctx, e); err != nil {
		return fmt.Errorf("keep the image of container %s: %w", spec.name, err)
	}
	return nil
}

func shimRowsOfVolume() []row {
	return []row{
		{path: "Name", norm: text, label: "name", show: planner.Headline},
		{path: "Driver", norm: text},
		{path: "Scope", norm: text},
		{path: "Options", norm: dict},
		{path: "Status", norm: dict},
		{path: "Mountpoint", norm: exact},
		{path: "ClusterVolume", norm: dict},
		{path: "Labels", norm: foreignLabels},
		{path: "Content", norm: exact, label: "content", show: planner.Headline},
		{path: "Seed.Name", norm: text},
		{path: "Seed.Image", norm: text},
		{path: "Seed.State", norm: text},
		// All that decides what the seed shows at /.sandplan, where the volume is read through it.
		{path: "Seed.Mounts", norm: each(options)},
		{path: "Seed.Resolved", norm: exact},
		{path: "Seed.Binds", norm: list},
		{path: "Seed.VolumesFrom", norm: list},
		{path: "Seed.Tmpfs", norm: dict},
		// It never runs, so that a hash is enough to tell that somebody has changed anything else of it.
		{path: "Seed.Config", norm: text},
		{path: "Seed.HostConfig", norm: text},
		{path: "Seed.Networks", norm: text},
		{path: "Seed.ID", class: planner.ClassIgnored,
			reason: "chosen by the engine; it is how the seed is found, what it is stands in the other rows"},
		{path: "CreatedAt", class: planner.ClassIgnored, reason: "written by the engine; says when, not what"},
		{path: "UsageData", class: planner.ClassIgnored, reason: "counted by the engine when it is asked to, which sandplan does not"},
	}
}

func shimKind() kind {
	return kind{
		name:     planner.KindShim,
		table:    newTable([]string{""}, shimRowsOfVolume()),
		list:     listVolumes,
		inspect:  func(ctx context.Context, e *Engine, id string) (tree, error) { return e.inspect(ctx, "/volumes/"+id) },
		complete: completeShim,
		needs:    func(planner.Address) []planner.Address { return []planner.Address{planner.AddrImage} },
		remove:   removeShim,
	}
}

// seedKind: a seed is looked at with its volume. One without a volume is a remnant.
func seedKind() kind {
	return kind{name: kindSeed, table: newTable(nil, nil), list: listContainers, companion: planner.KindShim, inspect: inspectContainer, remove: removeContainer}
}

// completeShim finds the seed of a volume and hashes the volume's content through it.
func completeShim(ctx context.Context, l *look, v tree) error {
	arrangeVolume(v, l.engine.info.DataDir)
	seeds, err := l.seedsOf(ctx, treeName(v))
	if err != nil {
		return err
	}
	if len(seeds) != 1 {
		if len(seeds) > 1 {
			v["Seed"] = map[string]any{"State": fmt.Sprintf("%d containers use the volume as seeds", len(seeds))}
		}
		return nil
	}
	seed, err := inspectContainer(ctx, l.engine, treeID(seeds[0]))
	if errdefs.IsNotFound(err) {
		return nil // gone since it was listed
	}
	if err != nil {
		return fmt.Errorf("look at what fills volume %s: %w", treeName(v), err)
	}
	// Both as they are before rows take them apart.
	status, mounts := treeStatus(seed), copyOf(lookup(seed, mustParsePath("HostConfig.Mounts")))
	if err := completeContainer(ctx, l, seed); err != nil {
		return err
	}
	v["Seed"] = seedView(seed, status, mounts)
	v["Content"], err = l.readTool(ctx, treeID(seed), plainVolume(v))
	return err
}

// copyOf is a deep copy of a decoded value.
func copyOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = copyOf(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = copyOf(child)
		}
		return out
	}
	return v
}

// seedView is what rows say of a seed, which is a container in the form of rows.
func seedView(seed tree, status planner.Status, mounts any) map[string]any {
	host, _ := seed["HostConfig"].(map[string]any)
	out := map[string]any{"ID": seed["Id"], "Name": seed["Name"], "Image": seed["Image"], "State": string(status), "Mounts": mounts,
		"Resolved": seed["Mounts"], "Binds": host["Binds"], "VolumesFrom": host["VolumesFrom"], "Tmpfs": host["Tmpfs"]}
	// The rows of a container on no network. Those with a row of their own above are among them; the hash
	// leaves these away, so that each difference shows once.
	own := []string{"HostConfig.Mounts", "HostConfig.Binds", "HostConfig.VolumesFrom", "HostConfig.Tmpfs"}
	rows := append(containerRows(), endpointRows(roleNone)...)
	t := newTable([]string{""}, append(rows, mountRows(mountPath(toolDir))...))
	said := map[string]map[string]string{"Config": {}, "HostConfig": {}, "NetworkSettings": {}}
	note := func(path, value string) {
		part, _, _ := strings.Cut(path, ".")
		if said[part] != nil && !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(path, o) }) {
			said[part][path] = value
		}
	}
	for _, f := range t.observed(seed, nil) {
		if f.Class != planner.ClassIgnored && !f.Value.IsZero() {
			note(f.Path, f.Value.Text())
		}
	}
	networks, _ := lookup(seed, mustParsePath("NetworkSettings.Networks")).(map[string]any)
	note("NetworkSettings.Networks", strings.Join(sortedKeys(networks), " "))
	unknown, _ := t.extras(seed)
	for _, x := range unknown {
		note(x.Path, x.Detail)
	}
	for part, name := range map[string]string{"Config": "Config", "HostConfig": "HostConfig", "NetworkSettings": "Networks"} {
		sum := sha256.Sum256([]byte(planner.JSON(said[part]).Text()))
		out[name] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return out
}

// seedsOf are the scope's seeds that mount a volume, in the form of the list.
func (l *look) seedsOf(ctx context.Context, volume string) ([]tree, error) {
	all, err := l.containersOf(ctx, kindSeed)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(v tree) bool {
		mounts, _ := v["Mounts"].([]any)
		return !slices.ContainsFunc(mounts, func(item any) bool {
			m, _ := item.(map[string]any)
			return m["Name"] == volume
		})
	}), nil
}

// removeShim removes the seed, then the volume.
func removeShim(ctx context.Context, e *Engine, o planner.Object) error {
	v, err := e.inspect(ctx, "/volumes/"+o.ID)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at volume %s: %w", o.ID, err)
	}
	// A volume has no ID but its name, so what stands there may have changed since it was seen.
	id, ok := readIdentity(labelsOf(v["Labels"]))
	if !ok || id.address != o.Addr {
		return fmt.Errorf("volume %s is not sandplan's any more; it stays", o.ID)
	}
	l := &look{engine: e, scope: id.scope}
	seeds, err := l.seedsOf(ctx, o.ID)
	if err != nil {
		return fmt.Errorf("find what fills volume %s: %w", o.ID, err)
	}
	for _, s := range seeds {
		if err := removeContainer(ctx, e, planner.Object{ID: treeID(s), Name: treeName(s)}); err != nil {
			return err
		}
	}
	return removeVolume(ctx, e, o)
}
