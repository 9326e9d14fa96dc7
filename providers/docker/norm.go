package docker

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// norm is a normaliser, see row.norm. Engines spell the same thing in several ways (null and [], a
// list in any order, a field that older ones leave out); each normaliser undoes one of them.
type norm func(any) any

// exact compares what is there, null and absence included.
func exact(v any) any { return v }

// text, boolean and integer read absence and null as the zero value of their type.
func text(v any) any    { return orElse("")(v) }
func boolean(v any) any { return orElse(false)(v) }
func integer(v any) any { return orElse(json.Number("0"))(v) }

// list keeps order and reads null as empty.
func list(v any) any { return orElse([]any{})(v) }

// dict reads null as empty.
func dict(v any) any { return orElse(map[string]any{})(v) }

// set is a list of strings whose order and repetition mean nothing.
func set(v any) any {
	items, ok := v.([]any)
	if v == nil || ok && len(items) == 0 {
		return []any{}
	}
	seen := map[string]bool{}
	for _, item := range items {
		s, isText := item.(string)
		if !isText {
			return v
		}
		seen[s] = true
	}
	if !ok {
		return v
	}
	names := make([]string, 0, len(seen))
	for s := range seen {
		names = append(names, s)
	}
	sort.Strings(names)
	out := make([]any, len(names))
	for i, s := range names {
		out[i] = s
	}
	return out
}

// orElse reads absence and null as d: what an engine that does not show the property does all the same.
func orElse(d any) norm {
	return func(v any) any {
		if v == nil {
			return d
		}
		return v
	}
}

// each applies a normaliser to every item of a list, null being the empty one.
func each(n norm) norm {
	return func(v any) any {
		items, ok := list(v).([]any)
		if !ok {
			return v
		}
		out := make([]any, len(items))
		for i, item := range items {
			out[i] = n(item)
		}
		return out
	}
}

// shape is what a value chosen by the engine must look like. On both sides the name stands for any
// value of the shape; a value without it stands for itself.
type shape struct {
	name string
	ok   func(any) bool
}

func (s shape) value(raw any) planner.Value {
	switch {
	case s.ok(raw):
		return planner.JSON(s.name)
	case raw == any(s.name): // the name itself is no value of the shape
		return planner.JSON([]any{raw})
	}
	return planner.JSON(raw)
}

// refPrefix marks a reference in the wanted tree and in a request, where the ID is not known yet. It
// means nothing on the observed side: there only an ID can become a reference.
const refPrefix = "sandplan-ref:"

// refTo stands in a request for the engine ID of the object at a, until resolveRef puts it there.
func refTo(a planner.Address) string { return refPrefix + string(a) }

func parseRef(s string) (planner.Address, bool) {
	a, ok := strings.CutPrefix(s, refPrefix)
	return planner.Address(a), ok
}

// resolveRef is the engine ID that a reference stands for; any other text is returned as it is.
func resolveRef(s string, ids planner.IDs) (string, error) {
	a, ok := parseRef(s)
	if !ok {
		return s, nil
	}
	id := ids[a]
	if id == "" {
		return "", fmt.Errorf("the ID of %s is not known: it must be created first", a)
	}
	return id, nil
}
