package docker

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// Values of a request or of an engine's answer, and how one of them becomes another.

// as replaces a value by JSON.
func as(text string) func(any) any {
	return func(any) any { return mustJSON(text) }
}

// more appends an item to a list.
func more(text string) func(any) any {
	return func(old any) any {
		list, _ := old.([]any)
		return append(slices.Clone(list), mustJSON(text))
	}
}

// with adds members to an object.
func with(text string) func(any) any {
	return func(old any) any {
		out := map[string]any{}
		if m, ok := old.(map[string]any); ok {
			maps.Copy(out, m)
		}
		maps.Copy(out, mustJSON(text).(map[string]any))
		return out
	}
}

func mustJSON(text string) any {
	v, err := decodeJSON([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return v
}

// anyOther is the general way: another value of the same type.
func anyOther(old any) any {
	switch v := old.(type) {
	case bool:
		return !v
	case string:
		return v + "x"
	case json.Number:
		n, _ := v.Int64()
		return json.Number(fmt.Sprint(n + 1))
	case []any:
		return append(slices.Clone(v), "x")
	case map[string]any:
		return with(`{"x":"y"}`)(v)
	}
	return nil
}

// zeroAt is the zero value of a property of a request, as JSON; "" where its type is not known.
func zeroAt(of reflect.Type, path []segment) any {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if len(path) == 0 {
		switch of.Kind() {
		case reflect.Bool:
			return false
		case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint32:
			return json.Number("0")
		case reflect.Slice:
			return []any{}
		case reflect.Map:
			return map[string]any{}
		}
		return ""
	}
	switch of.Kind() {
	case reflect.Map, reflect.Slice:
		return zeroAt(of.Elem(), path[1:])
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				if v := zeroAt(f.Type, path); v != "" {
					return v
				}
			case name == path[0].key || name == "" && f.Name == path[0].key:
				return zeroAt(f.Type, path[1:])
			}
		}
	}
	return ""
}

// putAt changes what stands at a path, and makes what leads there. Mounts are found by their target, and
// the JSON argument of sandplan's own programs is taken apart and written again as the program does it.
func putAt(v any, path []segment, change func(any) any) any {
	if len(path) == 0 {
		return change(v)
	}
	s := path[0]
	switch x := v.(type) {
	case nil:
		if s.index == 0 {
			return []any{putAt(nil, path[1:], change)}
		}
		return map[string]any{s.key: putAt(nil, path[1:], change)}
	case map[string]any:
		x = maps.Clone(x)
		x[s.key] = putAt(x[s.key], path[1:], change)
		return x
	case []any:
		x = slices.Clone(x)
		i := s.index
		if i < 0 {
			i = slices.IndexFunc(x, func(item any) bool { m, _ := item.(map[string]any); return m["Target"] == s.key })
		}
		if i < 0 && s.key == otherMounts {
			return putAt(x, path[1:], change) // they are among the others here
		}
		if i == len(x) {
			x = append(x, nil)
		}
		if i < 0 || i >= len(x) {
			panic(fmt.Sprintf("nothing at %s of %v", formatPath(path), x))
		}
		if text, ok := x[i].(string); ok && len(path) > 1 {
			x[i] = rewrite(x[0], text, func(said any) any { return putAt(said, path[1:], change) })
			return x
		}
		x[i] = putAt(x[i], path[1:], change)
		return x
	}
	panic(fmt.Sprintf("%s leads into %v", formatPath(path), v))
}

// rewrite changes the argument of shim or proxy, and keeps its spelling.
func rewrite(program any, text string, change func(any) any) string {
	said := mustJSON(text)
	if program == commandEgress {
		// The row with the declarations of hosts is apart from the hosts.
		splitHosts(said.(map[string]any))
	}
	said = change(said)
	if program == commandEgress {
		m := said.(map[string]any)
		hosts, _ := m["hosts"].([]any)
		decls, _ := m["hosts_decl"].([]any)
		for i, h := range hosts {
			if h, ok := h.(map[string]any); ok && i < len(decls) {
				h["decl"] = decls[i]
			}
		}
		delete(m, "hosts_decl")
	}
	raw, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	var arg interface{ Arg() (string, error) } = new(shim.Config)
	if program == commandEgress {
		arg = new(egress.Config)
	}
	if err := json.Unmarshal(raw, arg); err != nil {
		panic(fmt.Sprintf("%s: %v", raw, err))
	}
	out, err := arg.Arg()
	if err != nil {
		panic(fmt.Sprintf("%s: %v", raw, err))
	}
	return out
}
