package docker

import (
	"fmt"
	"strconv"
	"strings"
)

// segment is one step of a path: a key of an object, or an index of a list.
type segment struct {
	key   string
	index int // -1 for a key
}

// lookup is what stands at a path; nil for nothing there, and for a value of another type on the way,
// which then is an uncovered property of its own.
func lookup(v any, path []segment) any {
	for _, s := range path {
		switch x := v.(type) {
		case map[string]any:
			if s.index >= 0 {
				return nil
			}
			v = x[s.key]
		case []any:
			if s.index < 0 || s.index >= len(x) {
				return nil
			}
			v = x[s.index]
		default:
			return nil
		}
	}
	return v
}

// parsePath reads a.b[0]["c.d"].e; "" is the whole object. It is the inverse of formatPath.
func parsePath(s string) ([]segment, error) {
	var out []segment
	for rest := s; rest != ""; {
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, fmt.Errorf("path %q: bad key at %q", s, rest)
			}
			key, _ := strconv.Unquote(quoted)
			out, rest = append(out, segment{key: key, index: -1}), rest[1+len(quoted)+1:]
		case rest[0] == '[':
			num, after, ok := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(num)
			if !ok || err != nil || i < 0 {
				return nil, fmt.Errorf("path %q: bad index at %q", s, rest)
			}
			out, rest = append(out, segment{index: i}), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, fmt.Errorf("path %q: empty name at %q", s, rest)
			}
			out, rest = append(out, segment{key: rest[:end], index: -1}), rest[end:]
		}
	}
	return out, nil
}

// formatPath writes a path with as few quotes as can be.
func formatPath(path []segment) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case isPlainKey(s.key):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		default:
			fmt.Fprintf(&b, "[%s]", strconv.Quote(s.key))
		}
	}
	return b.String()
}

// joinPath puts the path of a row behind the path of the object that it belongs to.
func joinPath(prefix, path string) string {
	if prefix == "" || path == "" || path[0] == '[' {
		return prefix + path
	}
	return prefix + "." + path
}

// isPlainKey reports whether a key needs no quotes in a path, as all names of the engine's fields.
func isPlainKey(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// mustParsePath is for paths that are written in this package.
func mustParsePath(s string) []segment {
	segs, err := parsePath(s)
	if err != nil {
		panic(err)
	}
	return segs
}

func hasPrefix(path, prefix []segment) bool {
	if len(path) < len(prefix) {
		return false
	}
	for i := range prefix {
		if path[i] != prefix[i] {
			return false
		}
	}
	return true
}
