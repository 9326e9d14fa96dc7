package docker

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

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
	// blank are the fields of the rows without a value; beside says that a row stands beside the one before,
	// in the same object.
	blank  []planner.Field
	beside []bool
	root   *node
	// leave is which rows' literals decode leaves out of the tree, see leaveOut; nil is none.
	leave []bool
	// argument is the step of the rows' paths at which the argument of a container's program stands, if any do,
	// and spelled are some such arguments.
	argument *node
	spelled  spellings
	// strict are the paths below which a property that no row covers is a mismatch; elsewhere it is
	// worth a warning only. "" stands for the whole object.
	strict [][]segment
}

// node is one step of the rows' paths, for the search for a row, or for what no row covers.
type node struct {
	children map[segment]*node
	keys     map[string]*node // the children that are keys, again
	key      string           // of the node itself, "" for an item of a list
	kept     int              // how many keys there are whose literals decode leaves in
	row      *row
	index    int // of the row in its table
	// known are the values of the row that were seen; nil where they are not remembered.
	known *literals
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
		t.beside = append(t.beside, i > 0 && slices.Equal(parent(segs), parent(t.segs[i-1])))
		t.segs = append(t.segs, segs)
		t.blank = append(t.blank, r.field(r.path))
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
		n.row, n.index = r, i
		if r.members == nil && !r.ref { // what an ID refers to is another question at each look
			n.known = &literals{}
		}
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
		if s.index < 0 {
			if n.keys == nil {
				n.keys = map[string]*node{}
			}
			n.keys[s.key], c.key = c, s.key
		}
	}
	return c
}

// at is the step that a path leads to from here; nil when no row is there.
func (n *node) at(path []segment) *node {
	for _, s := range path {
		if n == nil {
			return nil
		}
		n = n.children[s]
	}
	return n
}

// size is about how many members an object at the node has, of the rows that leave, if there, does not name.
func (n *node) size(leave []bool) int {
	if n == nil {
		return 0
	}
	size := len(n.keys)
	if leave != nil {
		size = n.kept
	}
	return size
}

// parent is the path of the object or list that holds what is at a path.
func parent(path []segment) []segment { return path[:max(0, len(path)-1)] }

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

// extras are the properties of an observed object that no row covers and that are not zero: those
// below a strict path, and the paths of the others.
func (t *table) extras(v tree) (strict []planner.Extra, others []string) {
	t.walk(v, t.root, make([]segment, 0, 16), func(path []segment, v any) {
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
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			t.walk(child, n.keys[k], append(path, segment{key: k, index: -1}), report)
		}
	case []any:
		for i, child := range v {
			s := segment{index: i}
			t.walk(child, n.children[s], append(path, s), report)
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
