package hclspec

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// mark is the type of cty marks that this package uses.
type mark string

// sensitive marks values that are never printed.
const sensitive = mark("sensitive")

// evaluator evaluates expressions of one configuration. It knows every declared name; the values come
// in as the reference graph is walked.
type evaluator struct {
	disk  disk
	dir   string // of the configuration; relative paths start here
	meter *meter
	// declared are the names below each root, sorted.
	declared map[string][]string
	// forms are the invocation blocks: with for_each, with count, or single.
	forms map[string]*form
	// values are what is known so far, by the key of a reference.
	values map[string]cty.Value
	// files are the files that were read for a value, by the key of a reference.
	files map[string][]string
	// reading collects the files of the value that is being evaluated; nil when nobody asks.
	reading    map[string]bool
	functions  map[string]function.Function
	traversals map[hcl.Expression][]hcl.Traversal
}

func newEvaluator(d disk, dir string, m *meter) *evaluator {
	ev := &evaluator{
		disk: d, dir: dir, meter: m,
		declared:   map[string][]string{rootPath: {"cwd", "root"}, rootSandplan: {"workspace"}},
		forms:      map[string]*form{},
		values:     map[string]cty.Value{},
		files:      map[string][]string{},
		traversals: map[hcl.Expression][]hcl.Traversal{},
	}
	ev.functions = ev.functionTable()
	return ev
}

// value evaluates an expression. When it cannot be, the value is unknown and the diagnostics say why;
// a value that is unknown because something else failed has no diagnostics of its own.
func (ev *evaluator) value(expr hcl.Expression, sc *scope) (cty.Value, hcl.Diagnostics) {
	refs, diags := ev.references(expr, sc)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	for _, r := range refs {
		ev.noteFiles(ev.files[r.key()]...)
	}
	v, diags := expr.Value(ev.context(refs, sc))
	if diags.HasErrors() {
		return cty.DynamicVal, hideSensitive(hidePanics(diags))
	}
	return ev.meter.bound(v, expr.Range(), 1), diags
}

// context holds no more than what the expression refers to, so that many small expressions of a large
// configuration stay cheap.
func (ev *evaluator) context(refs []reference, sc *scope) *hcl.EvalContext {
	roots := map[string]map[string]cty.Value{}
	for _, r := range refs {
		if roots[r.root] == nil {
			roots[r.root] = map[string]cty.Value{}
		}
		v, ok := sc.extra[r.key()]
		if !ok {
			v, ok = ev.values[r.key()]
		}
		if !ok {
			v = cty.DynamicVal
		}
		roots[r.root][r.name] = v
	}
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: ev.functions}
	for root, m := range roots {
		ctx.Variables[root] = cty.ObjectVal(m)
	}
	return ctx
}

// constant evaluates an expression that may refer to nothing and call nothing.
func (ev *evaluator) constant(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return ev.meter.bound(v, expr.Range(), 1), diags
}

// record runs f and returns the files that were read meanwhile, sorted. Records do not nest: nodes of
// the graph are evaluated one after the other.
func (ev *evaluator) record(f func()) []string {
	ev.reading = map[string]bool{}
	f()
	files := sortedKeys(ev.reading)
	ev.reading = nil
	return files
}

func (ev *evaluator) noteFiles(files ...string) {
	if ev.reading == nil {
		return
	}
	for _, f := range files {
		ev.reading[f] = true
	}
}

// hidePanics words the errors of functions that panicked. cty catches such panics (merge of a number, the
// logarithm of -1, …) and gives the stack as the message, which is nothing for a user.
func hidePanics(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d)
		var caught function.PanicError
		if ok && errors.As(call.FunctionCallError(), &caught) {
			d.Detail = fmt.Sprintf("%s has no result for these arguments; they have the wrong type or are out of range.", call.CalledFunctionName())
		} else if strings.Contains(d.Detail, "panic in function implementation") { // of an operator
			d.Detail = "The operation has no result for these operands."
		}
	}
	return diags
}

// hideSensitive takes the details out of HCL's own diagnostics about expressions that use sensitive
// values: they quote values, and functions quote their arguments.
func hideSensitive(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if d.Expression == nil || d.EvalContext == nil || !usesSensitive(d.Expression, d.EvalContext) {
			continue
		}
		d.Detail = "The details are not shown, because the expression uses a sensitive value."
		d.Expression, d.EvalContext, d.Extra = nil, nil, nil
	}
	return diags
}

func usesSensitive(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	for _, tr := range expr.Variables() {
		v, diags := tr.TraverseAbs(ctx)
		if diags.HasErrors() {
			// The traversal itself fails: what can be said of it is what its root says.
			v, diags = tr[:1].TraverseAbs(ctx)
		}
		if !diags.HasErrors() && v.ContainsMarked() {
			return true
		}
	}
	return false
}

// isSensitive reports whether any part of a value is sensitive.
func isSensitive(v cty.Value) bool { return v.ContainsMarked() }

// unmark takes all marks off.
func unmark(v cty.Value) (cty.Value, bool) {
	if !v.ContainsMarked() {
		return v, false
	}
	v, _ = v.UnmarkDeep()
	return v, true
}

// locate is the place of a part of a value within the expression that makes it, as far as it is written
// there, and the expression's own place otherwise.
func locate(expr hcl.Expression, path cty.Path) hcl.Range {
	for _, step := range path {
		next := locateStep(expr, step)
		if next == nil {
			break
		}
		expr = next
	}
	return expr.Range()
}

func locateStep(expr hcl.Expression, step cty.PathStep) hcl.Expression {
	switch s := step.(type) {
	case cty.IndexStep:
		if s.Key.Type() == cty.String {
			return mapItem(expr, s.Key.AsString())
		}
		items, diags := hcl.ExprList(expr)
		if i, _ := s.Key.AsBigFloat().Int64(); !diags.HasErrors() && i >= 0 && int(i) < len(items) {
			return items[i]
		}
	case cty.GetAttrStep:
		return mapItem(expr, s.Name)
	}
	return nil
}

// mapItem is the value expression of a literal key of a literal map.
func mapItem(expr hcl.Expression, key string) hcl.Expression {
	if _, v := mapPair(expr, key); v != nil {
		return v
	}
	return nil
}

func mapPair(expr hcl.Expression, key string) (k, v hcl.Expression) {
	pairs, diags := hcl.ExprMap(expr)
	if diags.HasErrors() {
		return nil, nil
	}
	for _, p := range pairs {
		if name := literalKey(p.Key); name == key {
			return p.Key, p.Value
		}
	}
	return nil, nil
}

// literalKey is the key of an object constructor where it is a plain word or a plain string.
func literalKey(expr hcl.Expression) string {
	if k := hcl.ExprAsKeyword(expr); k != "" {
		return k
	}
	if k, ok := expr.(*hclsyntax.ObjectConsKeyExpr); ok {
		expr = k.Wrapped
	}
	if t, ok := expr.(*hclsyntax.TemplateExpr); ok && t.IsStringLiteral() {
		if v, diags := t.Value(nil); !diags.HasErrors() {
			return v.AsString()
		}
	}
	return ""
}

// sortedKeys are the keys of a map, sorted.
func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// clip shortens what a message quotes.
func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
