package docker

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/sandplan/sandplan/planner"
)

// Intruders are containers that are none of the scope's and reach into one of its objects from their own
// side: no property of the object shows a container that mounts its volume or shares its namespaces.
// (Who is on a network is told by the network itself.)

// join is one such reach: the setting that makes it, and whom it names.
type join struct {
	setting string // HostConfig.PidMode, …
	target  string // an ID, the beginning of one, or a name
}

// modes are the settings of a container that name another one as "container:NAME".
var modes = []string{"NetworkMode", "PidMode", "IpcMode", "UTSMode", "CgroupnsMode", "UsernsMode"}

// findIntruders fills l.intruders. Mounts and network modes of all containers are in the list; the other
// modes take an inspect each. They mean something only while the named container runs and the other one
// too, so only containers that run are inspected, only while something of the scope runs, and once:
// nothing changes these settings.
func (l *look) findIntruders(ctx context.Context, own []found) error {
	l.intruders = map[string][]planner.Extra{}
	names := map[string]string{}
	runs := false
	for _, f := range own {
		if !f.remnant {
			names[treeName(f.tree)] = treeID(f.tree)
			runs = runs || treeStatus(f.tree) == planner.StatusRunning
		}
	}
	volumes := l.volumes()
	others := l.others(l.listed[listContainers])
	for _, c := range others {
		l.seeMounts(c, volumes)
		l.seeJoins(c, joinsOf(c), names)
	}
	if !runs {
		return nil
	}
	running, err := l.running(ctx, others)
	if err != nil {
		return err
	}
	joins, err := l.inspectJoins(ctx, running)
	if err != nil {
		return err
	}
	for i, c := range running {
		l.seeJoins(c, joins[i], names)
	}
	return nil
}

// others are the containers that are not objects of the scope. A seed has the shim volume mounted by its
// nature, and is judged with the volume; one that was started is no seed any more.
func (l *look) others(containers []tree) []tree {
	return slices.DeleteFunc(slices.Clone(containers), func(c tree) bool {
		if l.refs[treeID(c)] != "" {
			return true
		}
		id, _ := readIdentity(labelsOf(treeLabels(c)))
		k, err := l.engine.kind(id.kind)
		return err == nil && id.scope == l.scope && k.companion != "" && treeStatus(c) == planner.StatusCreated
	})
}

// running are those of the others that run now. The gate's list has none of them: it is the scope's.
func (l *look) running(ctx context.Context, others []tree) ([]tree, error) {
	if l.gate {
		all, err := l.engine.list(ctx, listContainers, url.Values{"filters": {`{"status":["running"]}`}})
		if err != nil {
			return nil, err
		}
		if others, err = l.withoutLatecomers(ctx, l.others(all)); err != nil {
			return nil, err
		}
		for _, c := range others {
			l.seeMounts(c, l.volumes())
		}
	}
	return slices.DeleteFunc(others, func(c tree) bool { return treeStatus(c) != planner.StatusRunning }), nil
}

// inspectJoins reads the joins of containers, of those not seen before from the engine.
func (l *look) inspectJoins(ctx context.Context, containers []tree) ([][]join, error) {
	out := make([][]join, len(containers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sweepWidth)
	for i, c := range containers {
		g.Go(func() (err error) {
			out[i], err = l.engine.joins.of(treeID(c), func() ([]join, error) {
				v, err := l.engine.inspect(ctx, "/containers/"+treeID(c)+"/json")
				if errdefs.IsNotFound(err) {
					return nil, nil
				}
				return joinsOf(v), err
			})
			return err
		})
	}
	return out, g.Wait()
}

// joinsOf are the joins of a container, in list form or in full.
func joinsOf(c tree) []join {
	var out []join
	host, _ := c["HostConfig"].(map[string]any)
	for _, mode := range modes {
		value, _ := host[mode].(string)
		if target, ok := strings.CutPrefix(value, "container:"); ok {
			out = append(out, join{"HostConfig." + mode, target})
		}
	}
	from, _ := host["VolumesFrom"].([]any)
	for _, f := range from {
		if s, ok := f.(string); ok {
			target, _, _ := strings.Cut(s, ":")
			out = append(out, join{"HostConfig.VolumesFrom", target})
		}
	}
	return out
}

// volumes are the scope's volumes by ID, and where each is.
func (l *look) volumes() map[string]string {
	out := map[string]string{}
	for _, v := range l.listed[listVolumes] {
		if l.refs[treeID(v)] != "" {
			out[treeID(v)], _ = v["Mountpoint"].(string)
		}
	}
	return out
}

// seeMounts notes a container that mounts a volume of the scope, by its name or by its directory.
func (l *look) seeMounts(c tree, volumes map[string]string) {
	mounts, _ := c["Mounts"].([]any)
	for _, m := range mounts {
		mount, _ := m.(map[string]any)
		name, _ := mount["Name"].(string)
		source, _ := mount["Source"].(string)
		for id, dir := range volumes {
			if name != id && (dir == "" || source == "" || !within(dir, filepath.Clean(source))) {
				continue
			}
			at, _ := mount["Destination"].(string)
			how := "read-only"
			if mount["RW"] == true {
				how = "writable"
			}
			l.intrude(id, c, fmt.Sprintf("mounts the volume, %s, at %s", how, at))
		}
	}
}

// seeJoins notes a container that joins one of the scope.
func (l *look) seeJoins(c tree, joins []join, names map[string]string) {
	for _, j := range joins {
		const short = 12 // the engine accepts less, and writes the whole ID
		for id := range l.refs {
			if j.target == id || names[j.target] == id || len(j.target) >= short && strings.HasPrefix(id, j.target) {
				l.intrude(id, c, fmt.Sprintf("joins it by %s", j.setting))
			}
		}
	}
}

// intrude adds a finding to our object of an ID, once.
func (l *look) intrude(id string, by tree, what string) {
	x := planner.Extra{Path: formatPath([]segment{{key: "Foreign", index: -1}, {key: treeName(by), index: -1}}),
		Detail: fmt.Sprintf("container %s (%s) %s", treeName(by), shortID(treeID(by)), what)}
	if !slices.Contains(l.intruders[id], x) {
		l.intruders[id] = append(l.intruders[id], x)
	}
}
