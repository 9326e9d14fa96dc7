package hclspec

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var validationShape = &shape{required: []string{"condition", "error_message"}}

var variableShape = &shape{
	label:    "name",
	optional: []string{"type", "default", "description", "sensitive", "nullable"},
	blocks:   map[string]*shape{"validation": validationShape},
}

// variable is a variable block, decoded.
type variable struct {
	*section
	typ         cty.Type
	defaults    *typeexpr.Defaults
	typed       bool // has a type attribute
	def         cty.Value
	hasDefault  bool
	description string
	sensitive   bool
	nullable    bool
	// value is what the variable holds, and from says where it came from.
	value cty.Value
	from  string
	asked *given // at the prompt
}

// metaWords are names that a variable cannot have, because they may get a meaning for every block.
var metaWords = []string{"count", "for_each", "depends_on", "lifecycle", "locals", "providers", "source", "version"}

// decodeVariable reads a variable block. All of it is constant.
func (ev *evaluator) decodeVariable(s *section) (*variable, hcl.Diagnostics) {
	v := &variable{section: s, typ: cty.DynamicPseudoType, nullable: true}
	diags := s.checkName()
	if contains(metaWords, s.name) {
		diags = append(diags, problem(InvalidName, s.block.LabelRanges[0], "No variable can be called %q: the word is reserved, as in Terraform.", s.name))
	}
	if attr := s.attrs["type"]; attr != nil {
		typ, defaults, more := typeexpr.TypeConstraintWithDefaults(attr.Expr)
		diags = append(diags, more...)
		if !more.HasErrors() {
			v.typ, v.defaults, v.typed = typ, defaults, true
		}
	}
	diags = append(diags, constantAttr(ev, s, "description", cty.String, func(c cty.Value) { v.description = c.AsString() })...)
	diags = append(diags, constantAttr(ev, s, "sensitive", cty.Bool, func(c cty.Value) { v.sensitive = c.True() })...)
	diags = append(diags, constantAttr(ev, s, "nullable", cty.Bool, func(c cty.Value) { v.nullable = c.True() })...)
	if attr := s.attrs["default"]; attr != nil {
		v.hasDefault = true
		def, more := ev.constant(attr.Expr)
		if !more.HasErrors() {
			def, more = v.convert(def, attr.Expr.Range(), "The default value")
		}
		diags = append(diags, more...)
		v.def = def
	}
	return v, diags
}

// constantAttr evaluates an attribute that may refer to nothing.
func constantAttr(ev *evaluator, s *section, name string, want cty.Type, set func(cty.Value)) hcl.Diagnostics {
	attr := s.attrs[name]
	if attr == nil {
		return nil
	}
	v, diags := ev.constant(attr.Expr)
	if diags.HasErrors() {
		return diags
	}
	conv, err := convert.Convert(v, want)
	if err != nil || conv.IsNull() || !conv.IsKnown() {
		return append(diags, problem(WrongType, attr.Expr.Range(), "%s is %s, and must be a constant %s.", name, describeType(v), want.FriendlyName()))
	}
	set(conv)
	return diags
}

// convert brings a value into the variable's type. The text of the error names no value.
func (v *variable) convert(val cty.Value, at hcl.Range, what string) (cty.Value, hcl.Diagnostics) {
	unknown := cty.UnknownVal(v.typ)
	if v.defaults != nil && !val.IsNull() {
		val = v.defaults.Apply(val)
	}
	out, err := convert.Convert(val, v.typ)
	if err != nil {
		where := ""
		if p := errorPath(err); len(p) > 0 {
			where = " (" + formatPath(p) + ")"
		}
		return unknown, fail(InvalidVariableValue, at, "%s of var.%s is not %s%s: %s.", what, v.name, typeexpr.TypeString(v.typ), where, err)
	}
	if out.IsNull() && !v.nullable {
		return unknown, fail(InvalidVariableValue, at, "%s of var.%s is null, which nullable = false forbids.", what, v.name)
	}
	return out, nil
}

func formatPath(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			switch {
			case s.Key.Type() == cty.String && s.Key.IsKnown():
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			case s.Key.Type() == cty.Number && s.Key.IsKnown():
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', 0) + "]")
			default:
				b.WriteString("[…]")
			}
		}
	}
	return b.String()
}

// settle decides the variable's value from the strongest one given, or the default.
func (v *variable) settle(ev *evaluator, given *given, vars Vars) hcl.Diagnostics {
	unknown := cty.UnknownVal(v.typ)
	v.value = unknown
	var diags hcl.Diagnostics
	switch {
	case given != nil:
		v.from = given.from
		val, more := given.value(ev, v)
		if !more.HasErrors() {
			if val.IsNull() && !v.nullable && v.hasDefault {
				val, v.from = v.def, "default"
			} else {
				val, more = v.convert(val, given.rng, "The value from "+given.from)
			}
		}
		diags = append(diags, more...)
		if !more.HasErrors() {
			v.value = val
		}
	case v.hasDefault:
		v.value, v.from = v.def, "default"
	case vars.Unknown, vars.Partial:
	default:
		diags = v.ask(ev, vars)
	}
	if vars.Unknown {
		v.value = unknown
	}
	if v.sensitive {
		v.value = v.value.Mark(sensitive)
	}
	return diags
}

// ask is the last resort for a variable without a value.
func (v *variable) ask(ev *evaluator, vars Vars) hcl.Diagnostics {
	if vars.Ask != nil {
		if answer, ok := vars.Ask(v.declaration()); ok {
			g := textValue(v.name, "the prompt", "<answer for var."+v.name+">", answer)
			v.from, v.asked = g.from, g
			val, diags := g.value(ev, v)
			if !diags.HasErrors() {
				val, diags = v.convert(val, g.rng, "The answer")
			}
			if !diags.HasErrors() {
				v.value = val
			}
			return diags
		}
	}
	about := ""
	if v.description != "" {
		about = " (" + clip(v.description) + ")"
	}
	return fail(MissingVariable, v.block.DefRange, "var.%s%s has no default. Give it a value with -var '%s=…', in %s, with -var-file=FILE, or as %s%s.",
		v.name, about, v.name, varFileName, varEnvPrefix, v.name)
}

// declaration is the variable as the Spec shows it.
func (v *variable) declaration() Variable {
	return Variable{Name: v.name, Description: v.description, Sensitive: v.sensitive, From: v.from, Range: v.block.DefRange}
}

// validate evaluates the validation blocks, after everything that they may refer to.
func (v *variable) validate(ev *evaluator) hcl.Diagnostics {
	var diags hcl.Diagnostics
	sc := &scope{roots: []string{rootVar, rootLocal, rootPath, rootSandplan}, hints: generalScope().hints}
	for _, b := range v.inner("validation") {
		cond := b.attrs["condition"]
		if cond == nil {
			continue
		}
		if !ev.refersTo(cond.Expr, sc, rootVar+"."+v.name) {
			diags = append(diags, problem(InvalidCondition, cond.Expr.Range(), "The condition does not refer to var.%s, so it says nothing about it.", v.name))
			continue
		}
		diags = append(diags, ev.assertion(b, sc, hcl.DiagError, InvalidVariableValue, v.block.DefRange)...)
	}
	return diags
}

func (ev *evaluator) refersTo(expr hcl.Expression, sc *scope, key string) bool {
	refs, diags := ev.references(expr, sc)
	for _, r := range refs {
		if r.key() == key {
			return true
		}
	}
	return diags.HasErrors() // which is reported where it is evaluated
}

// assertion evaluates condition and error_message of a block. When the condition is false, the message
// is a diagnostic of the given severity at the given place; while it is unknown, nothing is said.
func (ev *evaluator) assertion(b *section, sc *scope, severity hcl.DiagnosticSeverity, summary string, at hcl.Range) hcl.Diagnostics {
	cond, msg := b.attrs["condition"], b.attrs["error_message"]
	if cond == nil {
		return nil
	}
	v, diags := ev.value(cond.Expr, sc)
	text, more := "", hcl.Diagnostics(nil)
	if msg != nil {
		text, more = ev.message(msg, sc)
	}
	if diags.HasErrors() || more.HasErrors() {
		return append(diags, more...)
	}
	diags = append(diags, more...)
	v, _ = unmark(v)
	holds, err := convert.Convert(v, cty.Bool)
	if err != nil || holds.IsNull() {
		return append(diags, problem(InvalidCondition, cond.Expr.Range(), "The condition is %s, and must be true or false.", describeType(v)))
	}
	if !holds.IsKnown() || holds.True() {
		return diags
	}
	d := problem(summary, at, "%s", text)
	if at != cond.Expr.Range() {
		d.Detail += fmt.Sprintf("\n\nThe condition is at %s.", cond.Expr.Range())
	}
	d.Severity = severity
	refs, _ := ev.references(cond.Expr, sc)
	if ctx := ev.context(refs, sc); !usesSensitive(cond.Expr, ctx) {
		d.Expression, d.EvalContext = cond.Expr, ctx
	}
	return append(diags, d)
}

// message evaluates an error_message. One that would show a sensitive value shows that it would.
func (ev *evaluator) message(attr *hcl.Attribute, sc *scope) (string, hcl.Diagnostics) {
	v, diags := ev.value(attr.Expr, sc)
	if diags.HasErrors() {
		return "", diags
	}
	v, hidden := unmark(v)
	conv, err := convert.Convert(v, cty.String)
	switch {
	case err != nil || conv.IsNull():
		return "", append(diags, problem(WrongType, attr.Expr.Range(), "error_message is %s, and must be a string.", describeType(v)))
	case hidden:
		return "The error_message uses a sensitive value, so it is not shown.", diags
	case !conv.IsKnown():
		return "The error_message is not known yet.", diags
	}
	return strings.TrimSpace(conv.AsString()), diags
}
