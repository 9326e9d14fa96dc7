package docker

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

// The census goes through every row of every kind. For each it makes that one difference on the real
// engine and expects the look to name exactly that row, the gate to refuse, and a plan to make this one
// object anew. A row that nothing can be made to differ in names the call that the engine refuses or
// does not heed; the test makes that call, and then puts the difference into what the engine shows.

// recipe says how a row is made to differ, where the general way (flip, add one, append) will not do.
type recipe struct {
	// to makes the new value from the one in the request.
	to func(old any) any
	// also are further paths of the request with their JSON, without which the engine does not take it;
	// ./NAME is beside the row.
	also map[string]string
	// after is done once the object is made as it should be, or, with to, as the request says.
	after func(t *testing.T, m *mutant)
	// fields are what differs besides the row because one follows from the other; * ends a prefix.
	fields string
	// refused is a part of what an engine says that does not take the call.
	refused string
	// unheeded says why an engine that takes the call does nothing.
	unheeded string
	// elsewhere is the path at which newer engines show what was asked for here.
	elsewhere string
	// shown is the JSON that the difference would be seen as, where it is another than the request's.
	shown string
}

// other is the general way for a path: where nothing stands, the type says what could.
func (m *mutant) other(path string) func(any) any {
	return func(old any) any {
		if old == nil {
			old = zeroAt(m.shape, mustParsePath(path))
		}
		return anyOther(old)
	}
}

// concrete are the rows of an object with their paths: members that it has are told one by one.
func concrete(t *table, prefix string, fields []planner.Field) []string {
	var out []string
	for i := range t.rows {
		r := &t.rows[i]
		path := joinPath(prefix, r.path)
		if r.members == nil {
			if r.class != planner.ClassIgnored {
				out = append(out, path)
			}
			continue
		}
		seen := map[string]bool{}
		for _, f := range fields {
			if rest, ok := strings.CutPrefix(f.Path, path+"["); ok {
				seen[path+"["+rest[:strings.Index(rest, "]")+1]] = true
			}
		}
		for _, at := range sortedKeys(seen) {
			out = append(out, concrete(r.members, at, fields)...)
		}
	}
	return out
}

// mutant is one object that is made to differ, row by row.
type mutant struct {
	engine *Engine
	kind   *kind
	want   planner.Resource
	all    []planner.Resource
	base   planner.Snapshot
	id     string // of the object that is there now
	// shape is the type of the request; request is how the object is made, in the form that rows have paths for.
	shape   reflect.Type
	request tree
	// remake removes the object and makes it of a request.
	remake func(t *testing.T, request tree) error
	// look sees the object as it is now; show sees an edited answer of the engine.
	look func(t *testing.T) planner.Object
	show func(t *testing.T, edit func(raw tree) tree) planner.Object
	// replaced is what a plan must do for any difference; set is what it must do for a setting.
	replaced []planner.Address
	run      planner.Address
	// said is what the engine did last instead of what it was asked for.
	said string
}

// tally counts what became of rows.
type tally struct {
	rows, mutated, found, refused int
	calls                         []string
}

func (c *tally) add(o tally) {
	c.rows, c.mutated, c.found, c.refused = c.rows+o.rows, c.mutated+o.mutated, c.found+o.found, c.refused+o.refused
	c.calls = append(c.calls, o.calls...)
}

func (c tally) String() string {
	return fmt.Sprintf("%d rows, %d mutated, %d found, %d refused by the engine", c.rows, c.mutated, c.found, c.refused)
}

// paths are those at which an object differs.
func (m *mutant) paths(o planner.Object) []string {
	var out []string
	for _, x := range planner.Compare(m.want.Fields, o.Observed) {
		out = append(out, x.Field.Path)
	}
	for _, x := range o.Extra {
		out = append(out, x.Path)
	}
	sort.Strings(out)
	return out
}

// census mutates every row of the object once.
func (m *mutant) census(t *testing.T, recipes map[string]recipe) tally {
	t.Helper()
	var c tally
	for _, path := range concrete(m.kind.table, "", m.want.Fields) {
		c.rows++
		r := recipeFor(recipes, path)
		if m.mutate(t, path, r) {
			c.mutated++
			if m.found(t, path, r, m.look(t)) {
				c.found++
			}
			continue
		}
		c.refused++
		c.calls = append(c.calls, fmt.Sprintf("%s %s: %s", m.kind.name, path, m.said))
		m.edited(t, path, r)
	}
	return c
}

// recipeFor is the recipe for a path, or for all paths of its end.
func recipeFor(recipes map[string]recipe, path string) recipe {
	if r, ok := recipes[path]; ok {
		return r
	}
	best := ""
	for key := range recipes {
		if end, ok := strings.CutPrefix(key, "*"); ok && strings.HasSuffix(path, end) && len(end) > len(best) {
			best = end
		}
	}
	return recipes["*"+best]
}

// mutate makes the difference; false when the engine does not let it happen, in the way that the recipe says.
func (m *mutant) mutate(t *testing.T, path string, r recipe) bool {
	t.Helper()
	change := r.to
	if change == nil {
		change = m.other(path)
	}
	request := m.request
	if r.to != nil || r.after == nil {
		request = putAt(request, mustParsePath(path), change).(map[string]any)
	}
	for _, at := range sortedKeys(r.also) {
		text := r.also[at]
		if sibling, ok := strings.CutPrefix(at, "./"); ok {
			at = path[:strings.LastIndexByte(path, '.')+1] + sibling
		}
		request = putAt(request, mustParsePath(at), as(text)).(map[string]any)
	}
	err := m.remake(t, request)
	if err != nil {
		if r.refused == "" || !strings.Contains(err.Error(), r.refused) {
			t.Errorf("%s %s: the engine refuses the change: %v", m.kind.name, path, err)
		}
		m.said = "refused: " + strings.TrimSpace(err.Error())
		if err := m.remake(t, m.request); err != nil {
			t.Fatal(err)
		}
		return false
	}
	if r.after != nil {
		r.after(t, m)
	}
	if r.unheeded != "" && len(m.paths(m.look(t))) == 0 {
		m.said = "not heeded: " + r.unheeded
		return false
	}
	return true
}

// found reports whether a look names the row, and nothing that does not follow from it.
func (m *mutant) found(t *testing.T, path string, r recipe, o planner.Object) bool {
	t.Helper()
	got := m.paths(o)
	if r.elsewhere != "" && !slices.Contains(got, path) {
		if i := slices.IndexFunc(got, func(p string) bool { return strings.HasSuffix(p, r.elsewhere) }); i >= 0 {
			path = got[i]
		}
	}
	ok := slices.Contains(got, path) || slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, path+".") })
	if !ok {
		t.Errorf("%s %s is made to differ, and seen is %q", m.kind.name, path, got)
	}
	allowed := strings.Fields(r.fields)
	for _, p := range got {
		if p != path && !strings.HasPrefix(p, path+".") && !slices.ContainsFunc(allowed, func(a string) bool {
			prefix, all := strings.CutSuffix(a, "*")
			return a == p || all && strings.HasPrefix(p, prefix)
		}) {
			t.Errorf("%s %s is made to differ, and %s differs too", m.kind.name, path, p)
			ok = false
		}
	}
	return m.refusedAndMended(t, path, o) && ok
}

// refusedAndMended: the gate refuses for that field at the line that declares it, and a plan replaces
// this object and what holds its ID.
func (m *mutant) refusedAndMended(t *testing.T, path string, o planner.Object) bool {
	t.Helper()
	s := m.base
	s.Objects = slices.Clone(s.Objects)
	i := slices.IndexFunc(s.Objects, func(x planner.Object) bool { return x.Addr == m.want.Addr })
	o.DependsOn = s.Objects[i].DependsOn
	s.Objects[i] = o
	verdict := drift.Gate(m.all, s, drift.Look{Run: []planner.Address{m.run}})
	j := slices.IndexFunc(verdict.Refusals, func(f planner.Finding) bool {
		return f.Addr == m.want.Addr && (f.Path() == path || strings.HasPrefix(f.Path(), path+"."))
	})
	ok := true
	if j < 0 {
		t.Errorf("%s %s: the gate does not refuse for it: %+v", m.kind.name, path, verdict)
		ok = false
	} else if f := verdict.Refusals[j]; f.Mismatch != nil {
		ok = declaredAt(t, f.Decl, f.Mismatch.Field.Attr, string(m.want.Addr)+" "+path) && ok
	}
	var changed []planner.Address
	class := planner.ClassReplace
	for _, c := range planner.Diff(m.all, s, planner.Options{}).Changes {
		if c.Action != planner.ActionNoOp {
			changed = append(changed, c.Addr)
			if c.Addr == m.want.Addr && c.Action == planner.ActionRestore {
				class = planner.ClassSet
			}
		}
	}
	want := m.replaced
	if class == planner.ClassSet || o.Status != planner.StatusCreated && o.Status != planner.StatusNone {
		want = changed // settings are put back alone; what has run goes together, see TestDiff
	}
	if !slices.Equal(changed, want) || !slices.Contains(changed, m.want.Addr) {
		t.Errorf("%s %s: a plan changes %q, want %q", m.kind.name, path, changed, want)
		ok = false
	}
	return ok
}

// declaredAt: a range leads to a line of the configuration, and where the user set the attribute, to that.
func declaredAt(t *testing.T, at hcl.Range, attr, what string) bool {
	t.Helper()
	if at.Filename == "" {
		t.Errorf("%s: no line declares it", what)
		return false
	}
	text, err := os.ReadFile(at.Filename)
	if err != nil {
		return true // objects of tests without a configuration
	}
	lines := strings.Split(string(text), "\n")
	word := attr[strings.LastIndexByte(attr, '.')+1:]
	if at.Start.Line < 1 || at.Start.Line > len(lines) {
		t.Errorf("%s: declared at %v", what, at)
		return false
	}
	line := lines[at.Start.Line-1]
	if attr != "" && strings.Contains(string(text), " "+word+" ") && !strings.Contains(line, word) &&
		!strings.HasSuffix(line, "{") { // a default stands at the block
		t.Errorf("%s: comes from %s and is shown at the line %q", what, attr, line)
		return false
	}
	return true
}

// edited puts the difference into the engine's answer, for rows that nobody can make differ.
func (m *mutant) edited(t *testing.T, path string, r recipe) {
	t.Helper()
	change := r.to
	if change == nil {
		change = m.other(path)
	}
	if r.shown != "" {
		change = as(r.shown)
	}
	o := m.show(t, func(raw tree) tree { return putAt(map[string]any(raw), mustParsePath(path), change).(map[string]any) })
	if got := m.paths(o); !slices.Contains(got, path) {
		t.Errorf("%s %s differs in the engine's answer, and seen is %q", m.kind.name, path, got)
	}
}
