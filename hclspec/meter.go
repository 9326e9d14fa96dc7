package hclspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Bounds of evaluation. A few lines of HCL can describe a value of any size (a local that doubles the
// one before it, thirty times over), so the size of every intermediate value is charged to one account.
const (
	allowance   = 10_000_000 // elements, and 16 bytes of string each, per Load
	loopWeight  = 10         // how much more an element costs that a for expression makes
	maxDepth    = 64         // values within values
	maxWidth    = 10_000     // elements of one list or object as written, which convert in square time
	maxExponent = 20_000     // binary; a number larger than 2 to this would print for minutes
)

// meter is the account of one Load. An expression that exceeds it evaluates to an unknown value and
// says nothing, because try and can would swallow an error; report tells at the end.
type meter struct {
	left  int
	where *hcl.Range // the first place that exceeded
}

func newMeter(units int) *meter { return &meter{left: units} }

// charge takes n from the account and reports whether there was enough. It does not end the account: a
// function that is refused has its own diagnostic.
func (m *meter) charge(n int) bool {
	if n < 0 || n > m.left { // negative: an estimate that overflowed
		return false
	}
	m.left -= n
	return true
}

func (m *meter) exceed(at hcl.Range) {
	if m.where == nil {
		m.where = &at
	}
}

// bound charges for a value and returns it, or an unknown value when it is too large.
func (m *meter) bound(v cty.Value, at hcl.Range, weight int) cty.Value {
	before := m.left
	ok := m.left > 0 && m.walk(v, maxDepth, weight)
	m.left -= (before - m.left) * (weight - 1)
	if !ok || m.left <= 0 {
		m.exceed(at)
		return cty.DynamicVal
	}
	return v
}

// walk charges for a value and all within it, and stops as soon as it is too much. What is charged is
// multiplied by weight afterwards; the cost of width does not depend on it.
func (m *meter) walk(v cty.Value, depth, weight int) bool {
	v, _ = v.Unmark()
	if m.left--; m.left <= 0 || depth == 0 {
		return false
	}
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return true
	}
	switch ty := v.Type(); {
	case ty == cty.String:
		m.left -= len(v.AsString()) / 16
		return m.left > 0
	case ty == cty.Number:
		e := v.AsBigFloat().MantExp(nil)
		if v.AsBigFloat().IsInf() { // 1/0, which no JSON can hold
			return false
		}
		return e < maxExponent && e > -maxExponent
	case ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType():
		if n := v.LengthInt(); !ty.IsCollectionType() {
			// A list as written is a tuple, and bringing n elements to one type compares each with each.
			if m.left -= n * n / 64 / weight; n > maxWidth {
				return false
			}
		}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if !ty.IsSetType() && k.Type() == cty.String { // in a set the key is the element
				m.left -= len(k.AsString()) / 16
			}
			if !m.walk(e, depth-1, weight) {
				return false
			}
		}
	}
	return true
}

// report is the diagnostic of an exceeded account.
func (m *meter) report() hcl.Diagnostics {
	if m.where == nil {
		return nil
	}
	return fail(TooLarge, *m.where, "This makes a value that is too large, nested too deeply, or a number too big to print. "+
		"All values that a configuration makes may have %d million elements.", allowance/1_000_000)
}

// metered is an expression whose value is charged. It stands where one evaluation feeds another.
type metered struct {
	// The wrapped expression is in parentheses, since HCL looks for references below this node.
	*hclsyntax.ParenthesesExpr
	m      *meter
	weight int
}

func (e *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if e.m.left <= 0 {
		e.m.exceed(e.Range())
		return cty.DynamicVal, nil
	}
	v, diags := e.Expression.Value(ctx)
	return e.m.bound(v, e.Range(), e.weight), diags
}

// UnwrapExpression lets HCL's static analysis see what was written.
func (e *metered) UnwrapExpression() hcl.Expression { return e.Expression }

// watch puts the meter into all places of a parsed tree where values multiply, and refuses numbers that
// no computer should print.
func (m *meter) watch(node hclsyntax.Node) hcl.Diagnostics {
	weigh := func(e hclsyntax.Expression, weight int) hclsyntax.Expression {
		switch e.(type) {
		case nil, *hclsyntax.LiteralValueExpr, *metered:
			return e
		}
		return &metered{&hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}, m, weight}
	}
	wrap := func(e hclsyntax.Expression) hclsyntax.Expression { return weigh(e, 1) }
	loop := func(e hclsyntax.Expression) hclsyntax.Expression { return weigh(e, loopWeight) }
	return hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			n.CollExpr, n.ValExpr = loop(n.CollExpr), loop(n.ValExpr)
			n.KeyExpr, n.CondExpr = loop(n.KeyExpr), loop(n.CondExpr)
		case *hclsyntax.SplatExpr:
			n.Source, n.Each = loop(n.Source), loop(n.Each)
		case *hclsyntax.TemplateExpr:
			for i := range n.Parts {
				n.Parts[i] = wrap(n.Parts[i])
			}
		case *hclsyntax.FunctionCallExpr:
			for i := range n.Args {
				n.Args[i] = wrap(n.Args[i])
			}
		case *hclsyntax.ConditionalExpr:
			n.TrueResult, n.FalseResult = wrap(n.TrueResult), wrap(n.FalseResult)
		case *hclsyntax.BinaryOpExpr:
			n.LHS, n.RHS = wrap(n.LHS), wrap(n.RHS)
		case *hclsyntax.LiteralValueExpr:
			return checkNumber(n)
		}
		return nil
	})
}

func checkNumber(n *hclsyntax.LiteralValueExpr) hcl.Diagnostics {
	if n.Val.IsNull() || !n.Val.IsKnown() || n.Val.Type() != cty.Number {
		return nil
	}
	e := n.Val.AsBigFloat().MantExp(nil)
	if e < maxExponent && e > -maxExponent {
		return nil
	}
	// The evaluator must not meet it either.
	n.Val = cty.Zero
	return fail(NumberRange, n.SrcRange, "No number here may be larger than 1e6000 or closer to zero than 1e-6000.")
}
