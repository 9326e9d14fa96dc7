package render

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner"
)

const (
	textSensitive = "(sensitive value)"
	textUnknown   = "(known after apply)"
	textNull      = "null"
)

// literal is a piece of text that is printed without quotes: a reference, a number with its unit.
type literal string

// shown is a planner value as people read it: string, literal, json.Number, bool, nil, []any or
// map[string]any. Units are applied here, so a difference is shown in the unit too.
func shown(v planner.Value, f planner.Field) any {
	if f.Sensitive {
		return literal(textSensitive)
	}
	if a, ok := v.Ref(); ok {
		return literal(a)
	}
	if _, ok := v.Unknown(); ok {
		return literal(textUnknown)
	}
	if v.IsZero() {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(v.Text()))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return v.Text()
	}
	if n, ok := tree.(json.Number); ok {
		return inUnit(n, f.Unit)
	}
	return tree
}

func inUnit(n json.Number, u planner.Unit) any {
	i, err := n.Int64()
	if err != nil {
		return n
	}
	switch u {
	case planner.UnitBound:
		if i == 0 {
			return nil
		}
		return byteSize(i)
	case planner.UnitBytes:
		return byteSize(i)
	case planner.UnitNanoCPUs:
		// Exact: 0.1 is 100000000 and must not read 0.10000000149.
		return json.Number(strings.TrimSuffix(strings.TrimRight(big.NewRat(i, 1e9).FloatString(9), "0"), "."))
	case planner.UnitMillis:
		return duration(time.Duration(i) * time.Millisecond)
	case planner.UnitDuration:
		return duration(time.Duration(i))
	}
	return n
}

// byteSize is exact: the largest unit that divides the number, so that two different sizes never
// read the same.
func byteSize(n int64) any {
	if n <= 0 {
		return json.Number(strconv.FormatInt(n, 10))
	}
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return json.Number(strconv.FormatInt(n, 10))
}

// duration is Go's form without the zero parts: 30m, 1h30m, 90s reads 1m30s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// inline is a value on one line, in HCL's notation.
func inline(v any) string {
	switch t := v.(type) {
	case nil:
		return textNull
	case literal:
		return string(t)
	case string:
		return quote(t)
	case json.Number:
		return t.String()
	case bool:
		return strconv.FormatBool(t)
	case []any:
		parts := make([]string, len(t))
		for i, e := range t {
			parts[i] = inline(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(t) == 0 {
			return "{}"
		}
		parts := make([]string, 0, len(t))
		for _, k := range sortedKeys(t) {
			parts = append(parts, key(k)+" = "+inline(t[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// quote is an HCL string. Control characters are escaped as Clean would, without doubling.
func quote(s string) string {
	s = strings.ReplaceAll(s, `\`, `\\`)
	return `"` + Clean(strings.ReplaceAll(s, `"`, `\"`)) + `"`
}

// key is a map key: bare when it reads as a name.
func key(k string) string {
	for i, c := range k {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return quote(k)
		}
	}
	if k == "" {
		return quote(k)
	}
	return k
}

// flow lays a value out in lines of at most n columns. Lists and maps break between their elements
// and continue below the first one; everything else stays whole.
func flow(v any, n int) []string {
	one := inline(v)
	if cells(one) <= n {
		return []string{one}
	}
	var parts []string
	open, end := "[", "]"
	switch t := v.(type) {
	case []any:
		for _, e := range t {
			parts = append(parts, inline(e))
		}
	case map[string]any:
		open, end = "{ ", " }"
		for _, k := range sortedKeys(t) {
			parts = append(parts, key(k)+" = "+inline(t[k]))
		}
	}
	if len(parts) < 2 {
		return []string{one}
	}
	var lines []string
	line := open
	for i, p := range parts {
		if i < len(parts)-1 {
			p += ","
		} else {
			p += end
		}
		switch {
		case i == 0:
			line += p
		case cells(line)+1+cells(p) <= n:
			line += " " + p
		default:
			lines, line = append(lines, line), strings.Repeat(" ", len(open))+p
		}
	}
	return append(lines, line)
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
