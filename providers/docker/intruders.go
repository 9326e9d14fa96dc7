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

// Intruders are none of the scope's and reach into one of its objects from their own side: no property of the
// object shows a container that mounts its volume or shares its namespaces, or a network that stands on its
// bridge. (Who is on a network is told by the network itself.)

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
	if err := l.seeParents(ctx); err != nil {
		return err
	}
	volumes := l.volumes(l.listed[listVolumes])
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
		volumes, err := l.allVolumes(ctx, others)
		if err != nil {
			return nil, err
		}
		for _, c := range others {
			l.seeMounts(c, volumes)
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

// reached is one of the scope's volumes, and how it can be reached.
type reached struct {
	dir string // where on the host it is
	// aliases are volumes that are the same directory under another name.
	aliases []string
}

// volumes are the scope's volumes by ID. What others of those that are listed are made of is in their options.
func (l *look) volumes(listed []tree) map[string]reached {
	out := map[string]reached{}
	for _, v := range l.listed[listVolumes] {
		if l.refs[treeID(v)] != "" {
			dir, _ := v["Mountpoint"].(string)
			out[treeID(v)] = reached{dir: dir}
		}
	}
	for _, v := range listed {
		options, _ := v["Options"].(map[string]any)
		for id, r := range out {
			for _, value := range options {
				// As a device that is bound, or as one of several layers.
				if s, ok := value.(string); ok && treeID(v) != id && strings.Contains(s, id) {
					r.aliases = append(r.aliases, treeID(v))
					out[id] = r
				}
			}
		}
	}
	return out
}

// allVolumes are the scope's volumes for a look that has listed nothing but the scope's: all others are listed
// only when one of the containers has any.
func (l *look) allVolumes(ctx context.Context, containers []tree) (map[string]reached, error) {
	own := l.volumes(l.listed[listVolumes])
	foreign := func(c tree) bool {
		mounts, _ := c["Mounts"].([]any)
		return slices.ContainsFunc(mounts, func(m any) bool {
			mount, _ := m.(map[string]any)
			name, _ := mount["Name"].(string)
			_, ours := own[name]
			return name != "" && !ours
		})
	}
	if len(own) == 0 || !slices.ContainsFunc(containers, foreign) {
		return own, nil
	}
	all, err := l.engine.list(ctx, listVolumes, nil)
	if err != nil {
		return nil, err
	}
	return l.volumes(all), nil
}

// seeMounts notes a container that mounts a volume of the scope, by its name, by its directory or by another
// volume that is the same directory.
func (l *look) seeMounts(c tree, volumes map[string]reached) {
	mounts, _ := c["Mounts"].([]any)
	for _, m := range mounts {
		mount, _ := m.(map[string]any)
		name, _ := mount["Name"].(string)
		source, _ := mount["Source"].(string)
		for id, r := range volumes {
			if name != id && !slices.Contains(r.aliases, name) &&
				(r.dir == "" || source == "" || !within(r.dir, filepath.Clean(source))) {
				continue
			}
			at, _ := mount["Destination"].(string)
			how := "read-only"
			if mount["RW"] == true {
				how = "writable"
			}
			l.intrude(id, listContainers, c, fmt.Sprintf("mounts the volume, %s, at %s", how, at))
		}
	}
}

// seeParents notes the networks of others that stand on a bridge of the scope: a macvlan or ipvlan network
// whose parent it is puts containers beside ours that are on no port of the bridge.
func (l *look) seeParents(ctx context.Context) error {
	bridges := map[string]string{} // their networks
	for _, v := range l.listed[listNetworks] {
		if l.refs[treeID(v)] != "" {
			bridges[bridgeOf(v)] = treeID(v)
		}
	}
	all := l.listed[listNetworks]
	if l.gate && len(bridges) > 0 { // its list is the scope's
		var err error
		if all, err = l.engine.list(ctx, listNetworks, url.Values{"filters": {`{"driver":["macvlan","ipvlan"]}`}}); err != nil {
			return err
		}
	}
	for _, v := range all {
		options, _ := v["Options"].(map[string]any)
		parent, _ := options["parent"].(string)
		base, _, _ := strings.Cut(parent, ".") // sp-….7 is a VLAN on it
		if id := bridges[base]; id != "" && l.refs[treeID(v)] == "" {
			driver, _ := v["Driver"].(string)
			l.intrude(id, listNetworks, v, fmt.Sprintf("of driver %s stands on its bridge %s; remove that network", driver, base))
		}
	}
	return nil
}

// seeJoins notes a container that joins one of the scope.
func (l *look) seeJoins(c tree, joins []join, names map[string]string) {
	for _, j := range joins {
		const short = 12 // the engine accepts less, and writes the whole ID
		for id := range l.refs {
			if j.target == id || names[j.target] == id || len(j.target) >= short && strings.HasPrefix(id, j.target) {
				l.intrude(id, listContainers, c, fmt.Sprintf("joins it by %s", j.setting))
			}
		}
	}
}

// intrude adds a finding to our object of an ID, once.
func (l *look) intrude(id string, kind listName, by tree, what string) {
	x := planner.Extra{Path: formatPath([]segment{{key: "Foreign", index: -1}, {key: treeName(by), index: -1}}),
		Detail: fmt.Sprintf("%s %s (%s) %s", kind, treeName(by), shortID(treeID(by)), what)}
	if !slices.Contains(l.intruders[id], x) {
		l.intruders[id] = append(l.intruders[id], x)
	}
}
