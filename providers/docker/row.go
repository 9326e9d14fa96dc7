package docker

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

// tree is one object as the engine's inspect output shows it: decoded JSON with json.Number for
// numbers. The wanted side is a tree too, made from the very request that creates the object, so that
// both sides go through the same rows.
type tree = map[string]any

// row is one property of a kind of object. Everything that plans, renders, audits, gates or checks
// after a create reads rows, and nothing else knows fields by name.
type row struct {
	// path leads to the property in inspect output: IPAM.Config[0].Subnet, Options["a.b"]. The row
	// covers everything below it. Paths are stable: JSON, -ignore and the label "declared" use them.
	path string
	// attr is the user's attribute; "" for what no attribute changes. label and unit are how people
	// read the row, as in planner.Field.
	attr  string
	label string
	unit  planner.Unit
	// norm brings one side into the one form in which sides are compared. It is pure, idempotent,
	// accepts nil (nothing there), and returns what it does not understand as it is: then it differs.
	norm norm
	// ref marks a property that is the engine ID of another object of the scope.
	ref bool
	// members says that the property is an object whose keys only the object knows (mounts by target,
	// endpoints by network); each of its members has the rows of this table, and it has no others.
	members *table
	// shape is what an assigned value must look like (ClassAssigned only).
	shape     shape
	class     planner.Class
	show      planner.Show
	sensitive bool
	// reason belongs to ClassIgnored: who writes the property, and why no value of it changes what the
	// agent can reach, read, run or outlive. On a row of ClassSet it is the usual cause of a difference.
	reason string
}

// table is the rows of one kind, and how to walk a tree along them.
type table struct {
	rows []row // sorted by path
	segs [][]segment
	root *node
	// strict are the paths below which a property that no row covers is a mismatch; elsewhere it is
	// worth a warning only. "" stands for the whole object.
	strict [][]segment
}

// node is one step of the rows' paths, for the search for a row, or for what no row covers.
type node struct {
	children map[segment]*node
	row      *row
}

// newTable makes a table. It panics on a malformed, doubled or unexplained row: tables are literals
// of this package, and a test makes each of them.
func newTable(strict []string, rows []row) *table {
	t := &table{rows: append([]row(nil), rows...), root: &node{}}
	sort.Slice(t.rows, func(i, j int) bool { return t.rows[i].path < t.rows[j].path })
	for i := range t.rows {
		r := &t.rows[i]
		if err := r.check(); err != nil {
			panic(fmt.Sprintf("row %s: %v", r.path, err))
		}
		segs := mustParsePath(r.path)
		t.segs = append(t.segs, segs)
		n := t.root
		for _, s := range segs {
			if n.row != nil {
				panic(fmt.Sprintf("row %s lies below row %s", r.path, n.row.path))
			}
			n = n.child(s)
		}
		if n.row != nil || n.children != nil {
			panic(fmt.Sprintf("row %s is there twice, or lies above another row", r.path))
		}
		n.row = r
	}
	for _, s := range strict {
		t.strict = append(t.strict, mustParsePath(s))
	}
	return t
}

func (r row) check() error {
	switch {
	case r.class == planner.ClassIgnored && r.reason == "":
		return fmt.Errorf("an ignored row needs a reason")
	case r.reason != "" && r.class != planner.ClassIgnored && r.class != planner.ClassSet:
		return fmt.Errorf("a reason belongs to rows that are ignored or set")
	case (r.class == planner.ClassAssigned) != (r.shape.name != ""):
		return fmt.Errorf("a shape belongs to an assigned row, and each assigned row has one")
	case r.members != nil && (r.norm != nil || r.ref || r.class != planner.ClassReplace):
		return fmt.Errorf("a row with members has nothing of its own")
	case r.members != nil:
		return nil
	case r.norm == nil && r.class != planner.ClassIgnored && r.class != planner.ClassAssigned:
		return fmt.Errorf("a compared row needs a normaliser")
	case r.ref && r.class != planner.ClassReplace:
		return fmt.Errorf("a reference is of class replace")
	}
	return nil
}

func (n *node) child(s segment) *node {
	if n.children == nil {
		n.children = map[segment]*node{}
	}
	c := n.children[s]
	if c == nil {
		c = &node{}
		n.children[s] = c
	}
	return c
}

// wanted are the fields of the object that a request describes. decl says where an attribute is
// written; it gets "" for built-in rows.
func (t *table) wanted(v tree, decl func(attr string) hcl.Range) []planner.Field {
	fields := t.fields("", v, func(r *row, raw any) planner.Value {
		switch r.class {
		case planner.ClassIgnored:
			return planner.Value{}
		case planner.ClassAssigned:
			return planner.JSON(r.shape.name)
		}
		return r.value(raw, parseRef)
	})
	for i := range fields {
		fields[i].Decl = decl(fields[i].Attr)
	}
	return sortFields(fields)
}

// observed are the fields of the object that the engine shows. refs are the scope's objects by engine
// ID: an ID found there becomes a reference, any other stays as it is and so differs from one.
func (t *table) observed(v tree, refs map[string]planner.Address) []planner.Field {
	resolve := func(s string) (planner.Address, bool) { a, ok := refs[s]; return a, ok }
	return sortFields(t.fields("", v, func(r *row, raw any) planner.Value {
		switch r.class {
		case planner.ClassIgnored:
			return planner.JSON(raw)
		case planner.ClassAssigned:
			return r.shape.value(raw)
		}
		return r.value(raw, resolve)
	}))
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

// fields go through the rows of a tree that stands at prefix, itself a path.
func (t *table) fields(prefix string, v any, value func(r *row, raw any) planner.Value) []planner.Field {
	out := make([]planner.Field, 0, len(t.rows))
	for i := range t.rows {
		r, raw := &t.rows[i], lookup(v, t.segs[i])
		path := joinPath(prefix, r.path)
		if r.members == nil {
			f := r.field(path)
			f.Value = value(r, raw)
			out = append(out, f)
			continue
		}
		members, ok := raw.(map[string]any)
		if !ok && raw != nil { // no object of members: it differs from any that is wanted
			out = append(out, planner.Field{Path: path, Value: planner.JSON(raw)})
		}
		for key, member := range members {
			at := joinPath(path, formatPath([]segment{{key: key, index: -1}}))
			out = append(out, r.members.fields(at, member, value)...)
		}
	}
	return out
}

func sortFields(fields []planner.Field) []planner.Field {
	sort.Slice(fields, func(i, j int) bool { return fields[i].Path < fields[j].Path })
	return fields
}

// row is the row for a path, nil when there is none.
func (t *table) row(path []segment) *row {
	n := t.root
	for i, s := range path {
		if n = n.children[s]; n == nil {
			return nil
		}
		if n.row != nil && n.row.members != nil && i+1 < len(path) {
			return n.row.members.row(path[i+2:])
		}
	}
	return n.row
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

// extras are the properties of an observed object that no row covers and that are not zero: those
// below a strict path, and the paths of the others.
func (t *table) extras(v tree) (strict []planner.Extra, others []string) {
	t.walk(v, t.root, nil, func(path []segment, v any) {
		for _, s := range t.strict {
			if hasPrefix(path, s) {
				strict = append(strict, planner.Extra{Path: formatPath(path), Detail: excerpt(v)})
				return
			}
		}
		others = append(others, formatPath(path))
	})
	sort.Slice(strict, func(i, j int) bool { return strict[i].Path < strict[j].Path })
	sort.Strings(others)
	return strict, others
}

// walk goes down while rows lie below n, and reports what lies beside them. A path is only good until
// report returns: the next one is written over it.
func (t *table) walk(v any, n *node, path []segment, report func([]segment, any)) {
	if n != nil && n.row != nil && n.row.members != nil {
		members, _ := v.(map[string]any) // anything else has become a field of its own
		for key, member := range members {
			t.walk(member, n.row.members.root, append(path, segment{key: key, index: -1}), report)
		}
		return
	}
	if n != nil && n.row != nil || isZero(v) {
		return
	}
	if n == nil || n.children == nil {
		report(path, v)
		return
	}
	step := func(s segment, child any) {
		t.walk(child, n.children[s], append(path, s), report)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			step(segment{key: k, index: -1}, child)
		}
	case []any:
		for i, child := range v {
			step(segment{index: i}, child)
		}
	default: // a scalar where rows expect an object or a list
		report(path, v)
	}
}

// isZero reports whether a value says nothing: null, "", 0, false, an empty list, or an object of
// such values. The engine writes them for properties that nobody set.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "0001-01-01T00:00:00Z"
	case bool:
		return !v
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, child := range v {
			if !isZero(child) {
				return false
			}
		}
		return true
	}
	return false
}

// clause stands in a tree where a kind says in words what it has found and no row expects.
type clause string

// excerpt is a value as JSON, short enough for a message.
func excerpt(v any) string {
	if c, ok := v.(clause); ok {
		return string(c)
	}
	const limit = 200
	s := planner.JSON(v).Text()
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// decodeTree reads one JSON object, or fails: a reply that is none must never look like an empty object.
func decodeTree(raw []byte) (tree, error) {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("the engine's reply: %w", err)
	}
	t, ok := v.(tree)
	if !ok {
		return nil, fmt.Errorf("the engine's reply is %s and not a JSON object", excerpt(v))
	}
	return t, nil
}

// treeOf is a request as the tree that inspect shows of it. It panics on a value without a JSON form,
// which no request type of the SDK has.
func treeOf(request any) tree {
	raw, err := json.Marshal(request)
	if err != nil {
		panic(fmt.Sprintf("request without a JSON form: %v", err))
	}
	t, err := decodeTree(raw)
	if err != nil {
		panic(fmt.Sprintf("request %T: %v", request, err))
	}
	return t
}

// decodeTrees reads a list of JSON objects; null is the empty list.
func decodeTrees(raw []byte) ([]tree, error) {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("the engine's reply: %w", err)
	}
	items, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("the engine's reply is %s and not a list", excerpt(v))
	}
	out := make([]tree, len(items))
	for i, item := range items {
		if out[i], ok = item.(tree); !ok {
			return nil, fmt.Errorf("the engine's reply has %s in a list of objects", excerpt(item))
		}
	}
	return out, nil
}
