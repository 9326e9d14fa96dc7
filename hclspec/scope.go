package hclspec

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Scope is plain data: what outputs and checks may refer to, and where they stand.
type Scope struct {
	// Configs are the names in Spec.Sources of the configuration files.
	Configs []string
	// Values are by their first two names: "var.worktree", "vendor.claude". All declared names are keys;
	// only what is referred to has a value.
	Values map[string]ScopeValue
	// Invocations say how each block repeats.
	Invocations map[string]Repetition
}

// ScopeValue is one value of a Scope; both fields are empty for one that nothing refers to.
type ScopeValue struct {
	Type  json.RawMessage `json:",omitempty"` // cty's JSON form
	Value json.RawMessage `json:",omitempty"` // cty's JSON form
	// Sensitive are the paths within the value that are sensitive: ".name" for an attribute, "[name" for
	// the key of a map, "#1" for an element of a list.
	Sensitive [][]string `json:",omitempty"`
}

// Repetition is for_each or count of an invocation block with the keys of its instances.
type Repetition struct {
	Kind  string   // for_each, count or ""
	Keys  []string // of for_each
	Count int      // of count
}

func (r Repetition) form() *form {
	f := &form{repeat: r.Kind, known: true}
	switch r.Kind {
	case "":
		f.keys = []any{nil}
	case "for_each":
		for _, k := range r.Keys {
			f.keys = append(f.keys, k)
		}
	default:
		for i := range min(max(r.Count, 0), maxInstances) {
			f.keys = append(f.keys, i)
		}
	}
	return f
}

func (f *form) repetition() Repetition {
	r := Repetition{Kind: f.repeat}
	for _, k := range f.keys {
		if s, ok := k.(string); ok {
			r.Keys = append(r.Keys, s)
		}
	}
	if f.repeat == "count" {
		r.Count = len(f.keys)
	}
	return r
}

// save fills the Scope from an evaluator, with the values of the names in used.
func (sc *Scope) save(ev *evaluator, used map[string]bool) {
	sc.Values = map[string]ScopeValue{}
	for _, root := range []string{rootVar, rootLocal, rootVendor, rootPhase, rootPath, rootSandplan} {
		for _, name := range ev.declared[root] {
			key := root + "." + name
			sc.Values[key] = ScopeValue{}
			if used[key] {
				sc.Values[key] = saveValue(ev.values[key])
			}
		}
	}
	sc.Invocations = map[string]Repetition{}
	for name, f := range ev.forms {
		sc.Invocations[name] = f.repetition()
	}
}

// saveValue is empty for a value that has no JSON form, which are unknown ones: then Load had errors, or
// was told to take variables as unknown, and nobody evaluates outputs.
func saveValue(v cty.Value) ScopeValue {
	if v == cty.NilVal {
		return ScopeValue{}
	}
	v, paths := v.UnmarkDeepWithPaths()
	if !v.IsWhollyKnown() {
		return ScopeValue{}
	}
	out := ScopeValue{}
	var err error
	if out.Type, err = ctyjson.MarshalType(v.Type()); err != nil {
		return ScopeValue{}
	}
	if out.Value, err = ctyjson.Marshal(v, v.Type()); err != nil {
		return ScopeValue{}
	}
	for _, p := range paths {
		out.Sensitive = append(out.Sensitive, savePath(p.Path))
	}
	sort.Slice(out.Sensitive, func(i, j int) bool {
		return strings.Join(out.Sensitive[i], "\x00") < strings.Join(out.Sensitive[j], "\x00")
	})
	return out
}

func savePath(p cty.Path) []string {
	steps := []string{}
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			steps = append(steps, "."+s.Name)
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				steps = append(steps, "["+s.Key.AsString())
				continue
			}
			i, _ := s.Key.AsBigFloat().Int64()
			steps = append(steps, "#"+strconv.FormatInt(i, 10))
		}
	}
	return steps
}

func loadPath(steps []string) (cty.Path, error) {
	p := cty.Path{}
	for _, s := range steps {
		switch {
		case strings.HasPrefix(s, "."):
			p = p.GetAttr(s[1:])
		case strings.HasPrefix(s, "["):
			p = p.IndexString(s[1:])
		default:
			i, err := strconv.Atoi(strings.TrimPrefix(s, "#"))
			if err != nil {
				return nil, fmt.Errorf("%q is no step of a path", s)
			}
			p = p.IndexInt(i)
		}
	}
	return p, nil
}

func (v ScopeValue) restore() (cty.Value, error) {
	if len(v.Type) == 0 {
		return cty.DynamicVal, nil
	}
	if bracketDepth(string(v.Type)) > 4*maxDepth || bracketDepth(string(v.Value)) > maxDepth {
		return cty.DynamicVal, fmt.Errorf("it is nested more than %d levels deep", maxDepth) // Load made nothing like it
	}
	ty, err := ctyjson.UnmarshalType(v.Type)
	if err != nil {
		return cty.DynamicVal, err
	}
	val, err := ctyjson.Unmarshal(v.Value, ty)
	if err != nil {
		return cty.DynamicVal, err
	}
	var marks []cty.PathValueMarks
	for _, steps := range v.Sensitive {
		p, err := loadPath(steps)
		if err != nil {
			return cty.DynamicVal, err
		}
		marks = append(marks, cty.PathValueMarks{Path: p, Marks: cty.NewValueMarks(sensitive)})
	}
	return val.MarkWithPaths(marks), nil
}

// restore gives an evaluator the names and values of the Scope.
func (sc Scope) restore(ev *evaluator) hcl.Diagnostics {
	for _, root := range []string{rootPath, rootSandplan} {
		ev.declared[root] = nil
	}
	var diags hcl.Diagnostics
	for _, key := range sortedKeys(sc.Values) {
		root, name, _ := strings.Cut(key, ".")
		v, err := sc.Values[key].restore()
		if err != nil {
			at := hcl.Range{Filename: key, Start: hcl.InitialPos, End: hcl.InitialPos}
			diags = append(diags, problem(DamagedSpec, at, "The value of %s cannot be read back: %s. Make the plan again.", key, err))
		}
		ev.declared[root] = append(ev.declared[root], name)
		ev.values[key] = v
	}
	for root := range ev.declared {
		sort.Strings(ev.declared[root])
	}
	return diags
}
