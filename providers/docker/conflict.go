package docker

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"time"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
)

// foreign are the objects that are named as ours are and are not ours: some of them may stand where one
// of ours will be. conflictsFor says which, once it is known what is wanted.
//
// A name alone makes nobody ours and nobody foreign: labels do the one, a wanted name the other.
func (l *look) foreign() []planner.Conflict {
	var out []planner.Conflict
	bridges := map[string]bool{}
	for _, list := range []listName{listNetworks, listContainers, listVolumes} {
		for _, v := range l.listed[list] {
			bridge, _ := lookup(v, mustParsePath(pathBridge)).(string)
			bridges[bridge] = true
			if l.recognised(v) {
				continue
			}
			name := treeName(v)
			if ownName.MatchString(name) {
				out = append(out, planner.Conflict{Kind: planner.Kind(list), Name: name, ID: treeID(v),
					Detail: fmt.Sprintf("is taken by a %s that is not this scope's: %s (%s); rename or remove it", list, name, shortID(treeID(v)))})
			}
			if list == listNetworks && ownBridge.MatchString(bridge) {
				out = append(out, planner.Conflict{Kind: planner.Kind(list), Name: bridge, ID: treeID(v),
					Detail: fmt.Sprintf("needs the bridge %s, which the network %s (%s) has; remove that network", bridge, name, shortID(treeID(v)))})
			}
		}
	}
	// Linux has one name space for interfaces, so a bridge without a network is in the way just as well.
	for bridge := range l.bridges {
		if ownBridge.MatchString(bridge) && !bridges[bridge] && !l.fleeting[unfitBridge+bridge] {
			out = append(out, planner.Conflict{Kind: "interface", Name: bridge,
				Detail: fmt.Sprintf("needs the bridge %s, and an interface of that name is there which belongs to no network; "+
					"the engine would adopt it with all that is attached: remove it with \"ip link delete %s\"", bridge, bridge)})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Name+" "+string(out[i].Kind)+out[i].ID < out[j].Name+" "+string(out[j].Kind)+out[j].ID
	})
	return out
}

// recognised reports whether an object is this scope's. Labels of another scope excuse nobody: anybody can write
// them, and no other scope has a reason to use a name that this one wants.
func (l *look) recognised(v tree) bool {
	id, ok := readIdentity(labelsOf(treeLabels(v)))
	return ok && id.scope == l.scope
}

// conflictsFor are those foreign objects that have the name or the bridge of a wanted object.
func (e *Engine) conflictsFor(foreign []planner.Conflict, wanted []planner.Resource) []planner.Conflict {
	var out []planner.Conflict
	for _, r := range wanted {
		k, err := e.kind(r.Kind)
		if err != nil {
			continue
		}
		for _, f := range r.Fields {
			if f.Path != pathName && f.Path != pathBridge {
				continue
			}
			for _, c := range foreign {
				// A container and a network may have the same name; a bridge is one for all.
				if planner.JSON(c.Name) == f.Value && (f.Path == pathBridge || c.Kind == planner.Kind(k.list)) {
					c.Addr = r.Addr
					out = append(out, c)
				}
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Addr.Less(out[j].Addr) })
	return out
}

// Scopes are all scopes that have an object on the engine, locks included, in the order of their names.
func (e *Engine) Scopes(ctx context.Context) ([]planner.Scope, error) {
	l := &look{engine: e}
	if err := l.load(ctx, nil); err != nil {
		return nil, fmt.Errorf("look for scopes on the engine: %w", err)
	}
	return l.scopes(func(identity) bool { return true }), nil
}

// scopes are the scopes of those listed objects that a test selects.
func (l *look) scopes(which func(identity) bool) []planner.Scope {
	seen := map[string]planner.Scope{}
	for _, list := range l.listed {
		for _, v := range list {
			if id, ok := readIdentity(labelsOf(treeLabels(v))); ok && which(id) {
				seen[id.scope.Project+"\x00"+id.scope.Workspace] = id.scope
			}
		}
	}
	var out []planner.Scope
	for _, name := range sortedKeys(seen) {
		out = append(out, seen[name])
	}
	return out
}

// elsewhere are the scopes of the same origin under another project or workspace.
func (l *look) elsewhere() []planner.Scope {
	return l.scopes(func(id identity) bool {
		return id.origin != "" && id.origin == l.engine.options.Origin && id.scope != l.scope
	})
}

// strayKind is for objects that carry the scope's labels and are none of its objects.
func strayKind(list listName, remove func(context.Context, *Engine, planner.Object) error) kind {
	return kind{name: strayName(list), table: newTable(nil, nil), list: list, leftover: true, remove: remove}
}

func strayName(list listName) planner.Kind { return planner.Kind("stray-" + list) }

func (e *Engine) stray(list listName) *kind {
	k, err := e.kind(strayName(list))
	if err != nil {
		panic(err) // kinds() has one for each list
	}
	return k
}

// removeVolume removes a volume. A volume that a foreign container uses stays, with the engine's words. Of a container
// that somebody else removes the engine forgets first that it is there, and then what it used: seen on 20.10, in 2 of
// 60 removals.
func removeVolume(ctx context.Context, e *Engine, o planner.Object) error {
	for waited := time.Duration(0); ; waited += settleTime {
		err := e.cli.VolumeRemove(ctx, o.ID, false)
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		err = fmt.Errorf("remove volume %s: %w", o.Name, err)
		if !errdefs.IsConflict(err) || waited >= patience {
			return err
		}
		users, listErr := e.list(ctx, listContainers, url.Values{"all": {"1"},
			"filters": {planner.JSON(map[string][]string{"volume": {o.ID}}).Text()}})
		if listErr != nil || slices.ContainsFunc(users, func(v tree) bool { return engineStatus(v) != "removing" }) {
			return err
		}
		if pauseErr := pause(ctx, settleTime); pauseErr != nil {
			return err
		}
	}
}
