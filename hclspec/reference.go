package hclspec

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Roots of references.
const (
	rootVar        = "var"
	rootLocal      = "local"
	rootVendor     = "vendor"
	rootPhase      = "phase"
	rootInvocation = "invocation"
	rootPath       = "path"
	rootSandplan   = "sandplan"
	rootEach       = "each"
	rootCount      = "count"
)

// reference is one use of a name in an expression: the first two steps of a traversal.
type reference struct {
	root, name string
	rest       hcl.Traversal
	rng        hcl.Range
}

func (r reference) key() string { return r.root + "." + r.name }

// scope is where an expression stands: which roots it may use, and the values that only it has.
type scope struct {
	roots []string
	extra map[string]cty.Value // by key: each.key, count.index, …
	// hints say why a root that exists elsewhere cannot be used here.
	hints map[string]string
}

const liveHint = "What the engine gives an invocation is known only after planning, so only outputs and checks may refer to it."

var (
	eachHint  = "each.key and each.value exist only in an invocation with for_each."
	countHint = "count.index exists only in an invocation with count."
)

// generalScope is that of locals, vendors, phases and the provider.
func generalScope() *scope {
	return &scope{
		roots: []string{rootVar, rootLocal, rootVendor, rootPhase, rootPath, rootSandplan},
		hints: map[string]string{rootInvocation: liveHint, rootEach: eachHint, rootCount: countHint},
	}
}

// liveScope is that of outputs and checks.
func liveScope() *scope {
	s := generalScope()
	s.roots = append(s.roots, rootInvocation)
	delete(s.hints, rootInvocation)
	return s
}

// with is the scope of one instance: root is each, count or "".
func (s *scope) with(root string, extra map[string]cty.Value) *scope {
	out := &scope{roots: s.roots, extra: extra, hints: s.hints}
	if root != "" {
		out.roots = append(append([]string{}, s.roots...), root)
	}
	return out
}

// habits are roots that people know from elsewhere.
var habits = map[string]string{
	"terraform": "sandplan.workspace is the name of the workspace.",
	"module":    "There are no modules.",
	"data":      "There are no data sources.",
	"self":      "There is no self.",
	"env":       "The environment is read through variables: SANDPLAN_VAR_name sets var.name.",
}

// references are the names that an expression uses, each checked for existence.
func (ev *evaluator) references(expr hcl.Expression, sc *scope) ([]reference, hcl.Diagnostics) {
	var refs []reference
	var diags hcl.Diagnostics
	traversals, ok := ev.traversals[expr]
	if !ok {
		traversals = expr.Variables()
		ev.traversals[expr] = traversals
	}
	for _, tr := range traversals {
		r, more := ev.reference(tr, sc)
		diags = append(diags, more...)
		if len(more) == 0 {
			refs = append(refs, r)
		}
	}
	return refs, diags
}

func (ev *evaluator) reference(tr hcl.Traversal, sc *scope) (reference, hcl.Diagnostics) {
	root := tr.RootName()
	rng := tr.SourceRange()
	if !contains(sc.roots, root) {
		return reference{}, ev.unknownRoot(root, rng, sc)
	}
	name, ok := stepName(tr)
	if !ok {
		return reference{}, fail(InvalidReference, rng, "%s is followed by a name, as in %s.%s; it cannot be used as a whole or with a computed name. "+
			"To choose by a key, write a map: { key = %s.%s }[each.key].", root, root, ev.example(root), root, ev.example(root))
	}
	r := reference{root: root, name: name, rest: tr[2:], rng: rng}
	names := ev.names(root, sc)
	if _, ok := slices.BinarySearch(names, name); !ok {
		return r, ev.unknownName(r, names)
	}
	return r, ev.checkSteps(r)
}

// stepName is the name in root.name or root["name"].
func stepName(tr hcl.Traversal) (string, bool) {
	if len(tr) < 2 {
		return "", false
	}
	switch s := tr[1].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

func (ev *evaluator) unknownRoot(root string, rng hcl.Range, sc *scope) hcl.Diagnostics {
	if h, ok := sc.hints[root]; ok {
		return fail(InvalidReference, rng, "%s", h)
	}
	detail := fmt.Sprintf("Nothing is called %q here. Expressions may refer to %s.", clip(root), orList(sc.roots))
	if h, ok := habits[root]; ok {
		detail += " " + h
	} else {
		detail += suggest(root, sc.roots)
	}
	return fail(InvalidReference, rng, "%s", detail)
}

func (ev *evaluator) unknownName(r reference, names []string) hcl.Diagnostics {
	switch r.root {
	case rootPath, rootSandplan, rootEach, rootCount:
		detail := fmt.Sprintf("There is no %s.%s, only %s.", r.root, clip(r.name), nameList(prefixed(r.root, names)))
		if r.root == rootPath && r.name == "module" {
			detail += " path.root is the directory of the configuration."
		}
		return fail(InvalidReference, r.rng, "%s%s", detail, suggest(r.name, names))
	case rootVar:
		return fail(UndeclaredReference, r.rng, "There is no variable %q. Declare it in a block: variable %q {}.%s",
			clip(r.name), clip(r.name), suggest(r.name, names))
	case rootLocal:
		return fail(UndeclaredReference, r.rng, "No locals block defines %q.%s", clip(r.name), suggest(r.name, names))
	}
	return fail(UndeclaredReference, r.rng, "There is no %s %q. Declared are: %s.%s", r.root, clip(r.name), nameList(names), suggest(r.name, names))
}

func prefixed(root string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = root + "." + n
	}
	return out
}

// checkSteps finds wrong attributes of vendors, phases and invocations where they are written, which is
// more than HCL does: it suggests, and it needs no values.
func (ev *evaluator) checkSteps(r reference) hcl.Diagnostics {
	rest := r.rest
	var ty cty.Type
	switch r.root {
	case rootVendor:
		ty = vendorType
	case rootPhase:
		ty = phaseType
	case rootInvocation:
		ty = liveType
		form := ev.forms[r.name]
		if form.repeat == "" {
			break
		}
		if len(rest) == 0 {
			return nil
		}
		step, isIndex := rest[0].(hcl.TraverseIndex)
		if !isIndex {
			if a, ok := rest[0].(hcl.TraverseAttr); ok && form.repeat == "for_each" && !ty.HasAttribute(a.Name) {
				return form.checkKey(r, cty.StringVal(a.Name))
			}
			return fail(InvalidReference, r.rng, "invocation.%s has %s, so it is a collection. Name one instance, as in invocation.%s%s, or use a for expression.",
				r.name, form.repeat, r.name, form.exampleKey())
		}
		if diags := form.checkKey(r, step.Key); diags.HasErrors() {
			return diags
		}
		rest = rest[1:]
	}
	if ty == cty.NilType || len(rest) == 0 {
		return nil
	}
	a, ok := rest[0].(hcl.TraverseAttr)
	if !ok || ty.HasAttribute(a.Name) {
		return nil
	}
	names := attributeNames(ty)
	return fail(InvalidReference, a.SrcRange, "%s.%s has no attribute %q. It has %s.%s", r.root, r.name, clip(a.Name), nameList(names), suggest(a.Name, names))
}

func attributeNames(ty cty.Type) []string { return sortedKeys(ty.AttributeTypes()) }

// example is a name that exists below a root, or a placeholder.
func (ev *evaluator) example(root string) string {
	if names := ev.names(root, &scope{}); len(names) > 0 {
		return names[0]
	}
	return "NAME"
}

// names are what may follow a root, sorted.
func (ev *evaluator) names(root string, sc *scope) []string {
	switch root {
	case rootEach, rootCount:
		var out []string
		for k := range sc.extra {
			if n, ok := strings.CutPrefix(k, root+"."); ok {
				out = append(out, n)
			}
		}
		sort.Strings(out)
		return out
	}
	return ev.declared[root]
}
