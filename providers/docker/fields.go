package docker

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// The fields of an object are what its kind's rows say of a tree.

// wanted are the fields of the object that a request describes. decl says where an attribute is
// written; it gets "" for built-in rows.
func (t *table) wanted(v tree, decl func(attr string) *hcl.Range) []planner.Field {
	return t.wantedOf(reply{tree: v}, decl)
}

func (t *table) wantedOf(v reply, decl func(attr string) *hcl.Range) []planner.Field {
	return declare(t.fields("", v, wantedValue), decl)
}

// wantedValue is what a value of a request is compared as.
func wantedValue(r *row, raw any, known *literal) planner.Value {
	switch {
	case r.class == planner.ClassIgnored:
		return planner.Value{}
	case r.class == planner.ClassAssigned:
		return planner.JSON(r.shape.name)
	case known != nil:
		return known.compared
	}
	return r.value(raw, parseRef)
}

// declare says of each field where it is declared.
func declare(fields []planner.Field, decl func(attr string) *hcl.Range) []planner.Field {
	for i := range fields {
		fields[i].Decl = decl(fields[i].Attr)
	}
	return fields
}

// observed are the fields of the object that the engine shows. refs are the scope's objects by engine
// ID: an ID found there becomes a reference, any other stays as it is and so differs from one.
func (t *table) observed(v tree, refs map[string]planner.Address) []planner.Field {
	return t.observedOf(reply{tree: v}, refs)
}

func (t *table) observedOf(v reply, refs map[string]planner.Address) []planner.Field {
	resolve := func(s string) (planner.Address, bool) { a, ok := refs[s]; return a, ok }
	return t.fields("", v, func(r *row, raw any, known *literal) planner.Value {
		if known != nil {
			return known.compared
		}
		return r.observed(raw, resolve)
	})
}

// observed is what a value that the engine shows is compared as.
func (r *row) observed(raw any, resolve func(string) (planner.Address, bool)) planner.Value {
	switch r.class {
	case planner.ClassIgnored:
		return planner.JSON(raw)
	case planner.ClassAssigned:
		return r.shape.value(raw)
	}
	return r.value(raw, resolve)
}

// declared are the fields that the label "declared" of an object holds. A path that no row has is
// kept as a field of its own, so that it cannot go unnoticed.
func (t *table) declared(label map[string]planner.Value) []planner.Field {
	fields := make([]planner.Field, 0, len(label))
	for path, v := range label {
		f := planner.Field{Path: path}
		if segs, err := parsePath(path); err == nil {
			if r := t.row(segs); r != nil {
				f = r.field(path)
			}
		}
		f.Value = v
		fields = append(fields, f)
	}
	for i := range t.rows {
		r := &t.rows[i]
		if _, ok := label[r.path]; !ok && r.members == nil {
			fields = append(fields, r.field(r.path))
		}
	}
	return sortFields(fields)
}

// fields go through the rows of a tree that stands at prefix, itself a path, and are sorted. value is given the literal of
// a row whose value has stayed as it was decoded.
func (t *table) fields(prefix string, v reply, value func(r *row, raw any, known *literal) planner.Value) []planner.Field {
	return t.fieldsLike(nil, nil, prefix, v, value)
}

// fieldsLike takes over fields, one for each row, but for those of its own rows: of these alone the tree need tell.
// nil is all rows.
func (t *table) fieldsLike(like []planner.Field, own []bool, prefix string, v reply, value func(r *row, raw any, known *literal) planner.Value) []planner.Field {
	out := make([]planner.Field, 0, len(t.rows))
	var holder any // the object or list that the row stands in
	members, held := false, false
	for i := range t.rows {
		if own != nil && !own[i] {
			out, held = append(out, like[i]), false
			continue
		}
		r, segs := &t.rows[i], t.segs[i]
		if v.left != nil && v.left[i] != nil {
			out = append(out, t.blank[i])
			out[len(out)-1].Value, held = value(r, nil, v.left[i]), false
			continue
		}
		if !held || !t.beside[i] {
			holder, held = lookup(v.tree, parent(segs)), true
		}
		raw := lookup(holder, segs[len(parent(segs)):])
		if r.members != nil {
			n := len(out)
			out = r.memberFields(out, joinPath(prefix, r.path), raw, value)
			members = members || len(out) > n
			continue
		}
		out = append(out, t.blank[i])
		f := &out[len(out)-1]
		if prefix != "" {
			f.Path = joinPath(prefix, f.Path)
		}
		var still *literal
		if v.known != nil && v.known[i] != nil && v.known[i].is(raw) {
			still = v.known[i]
		}
		f.Value = value(r, raw, still)
	}
	if members { // rows are in order, members are not
		sortFields(out)
	}
	return out
}

// memberFields appends the fields of the members that stand at a path.
func (r *row) memberFields(out []planner.Field, path string, raw any, value func(*row, any, *literal) planner.Value) []planner.Field {
	members, ok := raw.(map[string]any)
	if !ok && raw != nil { // no object of members: it differs from any that is wanted
		out = append(out, planner.Field{Path: path, Value: planner.JSON(raw)})
	}
	for key, member := range members {
		at := joinPath(path, formatPath([]segment{{key: key, index: -1}}))
		m, _ := member.(map[string]any) // nothing stands below anything else
		out = append(out, r.members.fields(at, reply{tree: m}, value)...)
	}
	return out
}

func byPath(a, b planner.Field) int { return strings.Compare(a.Path, b.Path) }

func sortFields(fields []planner.Field) []planner.Field {
	if !slices.IsSortedFunc(fields, byPath) {
		slices.SortFunc(fields, byPath)
	}
	return fields
}

func (r *row) field(path string) planner.Field {
	return planner.Field{Path: path, Attr: r.attr, Label: r.label, Unit: r.unit, Class: r.class, Show: r.show,
		Sensitive: r.sensitive, Reason: r.reason}
}

func (r *row) value(raw any, resolve func(string) (planner.Address, bool)) planner.Value {
	v := r.norm(raw)
	if s, ok := v.(string); ok && r.ref {
		if a, ok := resolve(s); ok {
			return planner.Ref(a)
		}
	}
	return planner.JSON(v)
}
