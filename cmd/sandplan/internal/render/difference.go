package render

import (
	"encoding/json"
	"reflect"
	"strings"
)

// symbol is the mark in front of a line, in a column of its own.
type symbol string

const (
	symNone    symbol = ""
	symCreate  symbol = "+"
	symChange  symbol = "~"
	symDelete  symbol = "-"
	symReplace symbol = "-/+"
)

func (s symbol) style() style {
	return map[symbol]style{symCreate: green, symChange: yellow, symDelete: red, symReplace: yellow}[s]
}

// node is one line of a value's difference, below its attribute: lists, maps and JSON in strings
// are opened, so that one changed element of forty shows as one.
type node struct {
	sym   symbol
	depth int
	// pad moves the text to the right, to stand below what it goes on from.
	pad  int
	text string
	note bool
}

// difference shows how old became new. One line means that it fits behind the attribute's name;
// otherwise the first line opens a bracket and the last one closes it.
func difference(old, new any, n int) []node {
	if old == literal(textUnknown) && new == old {
		return []node{{sym: symChange, text: textUnknown}} // another one, whichever it was
	}
	if lines := structural(old, new, 0, n); lines != nil {
		return lines
	}
	return arrow("", old, new, 0, n)
}

const arrowText = "-> "

// arrow is a change that cannot be opened: on one line, or with the new value right below the old one.
func arrow(lead string, old, new any, depth, n int) []node {
	o, w := inline(old), inline(new)
	if cells(lead)+cells(o)+1+len(arrowText)+cells(w) <= n || cells(o) < n/4 || cells(w) < n/4 {
		return []node{{sym: symChange, depth: depth, text: lead + o + " " + arrowText + w}}
	}
	return []node{{sym: symChange, depth: depth, text: lead + o}, {depth: depth, pad: cells(lead) - len(arrowText), text: arrowText + w}}
}

// structural compares two lists, two maps, or two strings that hold one of these as JSON. It returns
// nil when the two sides are not of one shape, or hold nothing to open.
func structural(old, new any, depth, n int) []node {
	switch o := old.(type) {
	case []any:
		if w, ok := new.([]any); ok && len(o)+len(w) > 0 && len(o) > 0 && len(w) > 0 {
			return wrapNodes("[", "]", depth, listDifference(o, w, depth+1, n))
		}
	case map[string]any:
		if w, ok := new.(map[string]any); ok && len(o) > 0 && len(w) > 0 {
			return wrapNodes("{", "}", depth, mapDifference(o, w, depth+1, n))
		}
	case string:
		w, ok := new.(string)
		if !ok {
			return nil
		}
		ot, ook := jsonTree(o)
		wt, wok := jsonTree(w)
		if ook && wok {
			if lines := structural(ot, wt, depth, n); lines != nil {
				lines[0].text = "jsonencode(" + lines[0].text
				lines[len(lines)-1].text += ")"
				return lines
			}
		}
		if strings.Contains(strings.TrimRight(o, "\n"), "\n") || strings.Contains(strings.TrimRight(w, "\n"), "\n") {
			return wrapNodes("<<EOT", "EOT", depth, lineDifference(o, w, depth+1))
		}
	}
	return nil
}

func jsonTree(s string) (any, bool) {
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil || dec.More() {
		return nil, false
	}
	return tree, true
}

func wrapNodes(open, end string, depth int, inner []node) []node {
	out := append([]node{{sym: symChange, depth: depth, text: open}}, inner...)
	return append(out, node{depth: depth, text: end})
}

// listDifference is by longest common subsequence, with one unchanged neighbour of each change for
// orientation and the rest counted.
func listDifference(old, new []any, depth, n int) []node {
	items := lcs(old, new)
	// A removal directly followed by an addition is one element that changed, when it can be opened.
	for i := 0; i+1 < len(items); i++ {
		a, b := items[i], items[i+1]
		if a.sym == symDelete && b.sym == symCreate && structural(a.old, b.new, depth, n) != nil {
			items[i] = edit{symChange, a.old, b.new}
			items = append(items[:i+1], items[i+2:]...)
		}
	}
	differs := func(i int) bool { return i >= 0 && i < len(items) && items[i].sym != symNone }
	var out []node
	hidden := 0
	for i, it := range items {
		switch it.sym {
		case symNone:
			// A lone element between a shown one and another shown one, or the end, takes the line that
			// its count would take.
			lone := hidden == 0 && (i == 0 && differs(2) || i == len(items)-1 && differs(i-2))
			if !lone && !differs(i-1) && !differs(i+1) {
				hidden++
				continue
			}
			out = flush(out, &hidden, depth)
			out = append(out, node{depth: depth, text: inline(it.old) + ","})
		case symChange:
			lines := structural(it.old, it.new, depth, n)
			lines[len(lines)-1].text += ","
			out = append(flush(out, &hidden, depth), lines...)
		case symDelete:
			out = append(flush(out, &hidden, depth), node{sym: symDelete, depth: depth, text: inline(it.old) + ","})
		default:
			out = append(flush(out, &hidden, depth), node{sym: symCreate, depth: depth, text: inline(it.new) + ","})
		}
	}
	return flush(out, &hidden, depth)
}

func flush(out []node, hidden *int, depth int) []node {
	return flushOf(out, hidden, depth, "unchanged element")
}

func flushOf(out []node, hidden *int, depth int, what string) []node {
	if *hidden > 0 {
		out = append(out, node{depth: depth, note: true, text: "# (" + plural(*hidden, what) + " hidden)"})
		*hidden = 0
	}
	return out
}

func mapDifference(old, new map[string]any, depth, n int) []node {
	keys := map[string]bool{}
	for k := range old {
		keys[k] = true
	}
	for k := range new {
		keys[k] = true
	}
	var out []node
	hidden := 0
	for _, k := range sortedKeys(keys) {
		o, inOld := old[k]
		w, inNew := new[k]
		switch {
		case !inNew:
			out = append(out, node{sym: symDelete, depth: depth, text: key(k) + " = " + inline(o) + " -> null"})
		case !inOld:
			out = append(out, node{sym: symCreate, depth: depth, text: key(k) + " = " + inline(w)})
		case reflect.DeepEqual(o, w):
			hidden++
		default:
			lines := structural(o, w, depth, n)
			if lines == nil {
				lines = arrow(key(k)+" = ", o, w, depth, n-4*depth)
			} else {
				lines[0].text = key(k) + " = " + lines[0].text
			}
			out = append(out, lines...)
		}
	}
	return flush(out, &hidden, depth)
}

func lineDifference(old, new string, depth int) []node {
	var out []node
	hidden := 0
	for _, e := range lcs(anyLines(old), anyLines(new)) {
		switch e.sym {
		case symNone:
			hidden++
		case symDelete:
			out = append(flushOf(out, &hidden, depth, "unchanged line"), node{sym: symDelete, depth: depth, text: raw(e.old)})
		default:
			out = append(flushOf(out, &hidden, depth, "unchanged line"), node{sym: symCreate, depth: depth, text: raw(e.new)})
		}
	}
	return flushOf(out, &hidden, depth, "unchanged line")
}

// raw is a line of a text as it stands, without quotes.
func raw(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return inline(v)
}

func anyLines(s string) []any {
	var out []any
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		out = append(out, l)
	}
	return out
}

type edit struct {
	sym      symbol
	old, new any
}

// lcsLimit bounds the table of lcs: longer lists come from a hostile engine, not from a declaration.
const lcsLimit = 500

// lcs lists what was kept (symNone), removed and added, in order.
func lcs(old, new []any) []edit {
	if len(old) > lcsLimit || len(new) > lcsLimit {
		return []edit{{sym: symDelete, old: literal(plural(len(old), "element"))}, {sym: symCreate, new: literal(plural(len(new), "element"))}}
	}
	long := make([][]int, len(old)+1)
	for i := range long {
		long[i] = make([]int, len(new)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if reflect.DeepEqual(old[i], new[j]) {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	var out []edit
	i, j := 0, 0
	for i < len(old) || j < len(new) {
		switch {
		case i < len(old) && j < len(new) && reflect.DeepEqual(old[i], new[j]):
			out = append(out, edit{symNone, old[i], new[j]})
			i, j = i+1, j+1
		case i < len(old) && (j == len(new) || long[i+1][j] >= long[i][j+1]):
			out = append(out, edit{sym: symDelete, old: old[i]})
			i++
		default:
			out = append(out, edit{sym: symCreate, new: new[j]})
			j++
		}
	}
	return out
}
