package docker

import (
	"bytes"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/sandplan/sandplan/planner"
)

// The objects of a scope are alike: of some two hundred rows of a container, all but a few hold what those
// of the one before held, to the byte. So a table remembers how values were written, what they decode to
// and what they are compared as. The complete text of a value is what it is known by; a text that is not
// among those is decoded and normalised like the first.

// literal is one way in which the value of a row was written.
type literal struct {
	text  string
	value any // decoded; nobody changes it
	// compared is what the row makes of it on the observed side.
	compared planner.Value
}

// maxLiterals bounds what is remembered of one row. A row that differs in every object is looked up in vain
// this often, which is less than decoding it takes.
const maxLiterals = 8

// literals are those of one row. Objects are looked at concurrently.
type literals struct {
	all atomic.Pointer[[]*literal]
}

// at is the literal that a text begins with, nil when none does.
func (l *literals) at(text []byte) *literal {
	all := l.all.Load()
	if all == nil {
		return nil
	}
	for _, known := range *all {
		n := len(known.text)
		if len(text) >= n && string(text[:n]) == known.text && known.ends(text[n:]) {
			return known
		}
	}
	return nil
}

// ends reports whether the value is over where rest begins: a number could go on there. Texts, lists and
// objects have an end of their own.
func (l *literal) ends(rest []byte) bool {
	switch l.text[len(l.text)-1] {
	case '"', ']', '}':
		return true
	}
	return len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n,]}"), rest[0]) >= 0
}

// learn remembers a value, while there is room.
func (l *literals) learn(r *row, text []byte, value any) *literal {
	all := l.all.Load()
	if all != nil && len(*all) >= maxLiterals {
		return nil
	}
	known := &literal{text: string(text), value: value, compared: r.observed(value, nil)}
	var more []*literal
	if all != nil {
		more = slices.Clone(*all)
	}
	more = append(more, known)
	if !l.all.CompareAndSwap(all, &more) {
		return nil // somebody else was faster; there will be another time
	}
	return known
}

// is reports whether a tree still holds the value that was decoded, and not what a kind has put there
// since: the same map or list, or an equal scalar.
func (l *literal) is(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		known, ok := l.value.(map[string]any)
		return ok && reflect.ValueOf(v).Pointer() == reflect.ValueOf(known).Pointer()
	case []any:
		known, ok := l.value.([]any)
		return ok && len(v) == len(known) && (len(v) == 0 || &v[0] == &known[0])
	}
	switch l.value.(type) {
	case map[string]any, []any:
		return false
	}
	return l.value == v
}

// reply is an object as it was decoded along the rows of its kind: the tree, and the literal of each row
// that has one.
type reply struct {
	tree  tree
	known []*literal // as table.rows
	// left are the literals that the tree does not have, of rows that nothing but fields reads.
	left []*literal
}

// decode reads one JSON object along the rows.
func (t *table) decode(raw []byte) (reply, error) {
	if t.leave == nil {
		return t.decodeAll(raw)
	}
	n := len(t.rows)
	literals := make([]*literal, 2*n)
	p := parser{raw: raw, known: literals[:n:n], left: literals[n:], leave: t.leave, met: make([]bool, n)}
	v, err := asTree(p.document(t.root))
	if p.odd || err != nil {
		return t.decodeAll(raw)
	}
	return reply{tree: v, known: p.known, left: p.left}, nil
}

// decodeAll is decode into a tree that has everything.
func (t *table) decodeAll(raw []byte) (reply, error) {
	p := parser{raw: raw, known: make([]*literal, len(t.rows))}
	v, err := asTree(p.document(t.root))
	return reply{tree: v, known: p.known}, err
}

// leaveOut lets decode leave out of the tree what only fields need: the literals of all rows but those at or
// below the paths that are read elsewhere.
func (t *table) leaveOut(read ...string) {
	t.leave = make([]bool, len(t.rows))
	for i, below := range t.below(read...) {
		t.leave[i] = !below
	}
	t.root.countKept(t.leave)
}

func (n *node) countKept(leave []bool) {
	for _, child := range n.keys {
		if child.row == nil || !leave[child.index] {
			n.kept++
		}
	}
	for _, child := range n.children {
		child.countKept(leave)
	}
}
