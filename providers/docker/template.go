package docker

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// The containers of a scope are wanted alike, too: of some two hundred rows all but those of the name, the
// networks, the mounts and the program's argument follow from a request that equals the one before. So the
// rows of one request are kept, and the next that equals it in all that is shared takes them over. Whatever is
// not its own is compared in full, by reflection, so that no part of a request can be forgotten here.

// template is a request, and what its rows hold.
type template struct {
	table   *table
	request containerSpec
	// fields are those of the rows, one each, but for the rows of what is a container's own.
	fields []planner.Field
	own    []bool // by row
}

// templates are the last few requests. Each belongs to one goroutine.
type templates struct {
	all  []*template
	next int
}

// maxTemplates is enough for the proxies, agents and runners of a few blocks.
const maxTemplates = 12

// ownPaths lead to what containers have of their own.
func ownPaths() []string {
	return []string{"Name", "Config.Cmd", "HostConfig.NetworkMode", "HostConfig.Mounts", "NetworkSettings.Networks"}
}

// shared is a request without what is a container's own.
func (s containerSpec) shared() containerSpec {
	s.name, s.endpoints, s.config.Cmd, s.host.NetworkMode, s.host.Mounts = "", nil, nil, "", nil
	return s
}

// fields are the fields of a wanted container, as wantedOf has them.
func (ts *templates) fields(buf *bytes.Buffer, t *table, s containerSpec, decl func(attr string) *hcl.Range) []planner.Field {
	shared := s.shared()
	for _, like := range ts.all {
		if like.table == t && reflect.DeepEqual(&like.request, &shared) {
			return declare(like.with(s), decl)
		}
	}
	s.encode(buf)
	r, err := t.decode(buf.Bytes())
	if err != nil {
		panic(fmt.Sprintf("request of container %s: %v", s.name, err)) // it was written just now
	}
	arrangeWanted(r.tree)
	fields := t.wantedOf(r, decl)
	ts.keep(t, shared, fields)
	return fields
}

// keep remembers the fields of a request. Once there are enough, the oldest makes room.
func (ts *templates) keep(t *table, shared containerSpec, fields []planner.Field) {
	one := &template{table: t, request: shared, fields: make([]planner.Field, len(t.rows)), own: t.below(ownPaths()...)}
	for i := range t.rows {
		at, ok := slices.BinarySearchFunc(fields, t.rows[i].path, func(f planner.Field, path string) int { return strings.Compare(f.Path, path) })
		switch {
		case ok:
			one.fields[i] = fields[at]
		case !one.own[i]:
			return // a row that has members, which are nobody's own
		}
	}
	if len(ts.all) < maxTemplates {
		ts.all = append(ts.all, one)
		return
	}
	ts.all[ts.next] = one
	ts.next = (ts.next + 1) % maxTemplates
}

// with are the fields of a container whose request is like the template's but for what is its own.
func (like *template) with(s containerSpec) []planner.Field {
	r := reply{tree: s.ownTree(), known: make([]*literal, len(like.table.rows))}
	arrangeBy(r.tree, "", exact)
	like.table.takeArgument(r)
	return like.table.fieldsLike(like.fields, like.own, "", r, wantedValue)
}

// ownTree is what inspect will show of what is a container's own. The hostname is not, but is left out where
// an endpoint repeats it.
func (s containerSpec) ownTree() tree {
	var cmd []any
	for _, word := range s.config.Cmd {
		cmd = append(cmd, word)
	}
	mounts := make([]any, len(s.host.Mounts))
	for i, m := range s.host.Mounts {
		mounts[i] = map[string]any(treeOf(m))
	}
	networks := map[string]any{}
	for role, settings := range s.networks() {
		networks[role] = map[string]any(treeOf(settings))
	}
	return tree{
		"Name":            "/" + s.name,
		"Config":          map[string]any{"Hostname": s.config.Hostname, "Cmd": cmd},
		"HostConfig":      map[string]any{"NetworkMode": string(s.host.NetworkMode), "Mounts": mounts},
		"NetworkSettings": map[string]any{"Networks": networks},
	}
}

// below says of each row whether it stands at or below one of the paths.
func (t *table) below(paths ...string) []bool {
	out := make([]bool, len(t.rows))
	for i, segs := range t.segs {
		out[i] = slices.ContainsFunc(paths, func(p string) bool { return hasPrefix(segs, mustParsePath(p)) })
	}
	return out
}
