package hclspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var phaseShape = &shape{
	label:    "name",
	optional: []string{"base", "tools", "writable"},
	blocks:   map[string]*shape{"runner": runnerShape},
}

// phaseType is what phase.N is in expressions.
var phaseType = cty.Object(map[string]cty.Type{
	"name": cty.String, "base": cty.String, "writable": cty.Bool, "tools": cty.List(cty.String), "runners": cty.List(cty.String),
})

// builtinPhase is a built-in phase without a block.
func builtinPhase(name string, c CatalogPhase, where hcl.Range) Phase {
	return Phase{
		Name:     name,
		Base:     Val[string]{V: name, Range: where},
		Tools:    Val[[]string]{V: append([]string{}, c.Tools...), Range: where},
		Writable: Val[bool]{V: c.Writable, Range: where},
		Range:    where,
	}
}

// decodePhase reads a phase block. A built-in phase is narrowed by it, another one is held to its base.
func (ev *evaluator) decodePhase(s *section, cat Catalog) (Phase, hcl.Diagnostics) {
	r := &reader{section: s, ev: ev, sc: generalScope()}
	r.diags = append(r.diags, s.checkName()...)
	p := Phase{Name: s.name, Range: s.block.DefRange}
	p.Base = r.base(cat)
	ceiling, known := cat.Phases[p.Base.V]
	check := func(tool string) error {
		if !known || contains(ceiling.Tools, tool) {
			return nil
		}
		return fmt.Errorf("%q is above the ceiling of the phase %q, whose tools are %s%s", clip(tool), p.Base.V, nameList(ceiling.Tools), hint(tool, ceiling.Tools))
	}
	p.Tools = read(r, "tools", words(InvalidTool, check), append([]string{}, ceiling.Tools...))
	p.Writable = read(r, "writable", boolean, ceiling.Writable)
	if known && p.Writable.Set && p.Writable.V && !ceiling.Writable {
		r.diags = append(r.diags, problem(PhaseWidened, p.Writable.Range, "The worktree is read-only in the phase %q, and a block can only narrow it. For a writable worktree, set base to one of %s.",
			p.Base.V, orList(writablePhases(cat))))
	}
	p.Runners = decodeRunners(r)
	if known && !ceiling.Runners {
		for _, b := range r.inner("runner") {
			r.diags = append(r.diags, problem(PhaseWidened, b.block.DefRange, "The phase %q has no runners.", p.Base.V))
		}
	}
	if !known { // which is reported; what hangs on it is not
		p.Tools.Unknown, p.Writable.Unknown = true, true
	}
	return p, r.diags
}

// base is the built-in phase whose ceiling holds.
func (r *reader) base(cat Catalog) Val[string] {
	names := sortedKeys(cat.Phases)
	if _, builtin := cat.Phases[r.name]; builtin {
		if attr := r.attrs["base"]; attr != nil {
			r.diags = append(r.diags, problem(MisplacedAttribute, attr.NameRange, "phase %q is built in and is its own base. Give the block another name, or remove base.", r.name))
		}
		return Val[string]{V: r.name, Range: r.block.DefRange}
	}
	base := read(r, "base", oneOf(names...), "")
	if base.V == "" && !base.Unknown {
		r.diags = append(r.diags, problem(MissingBase, r.block.DefRange, "phase %q is not built in, so it needs base, the phase whose ceiling holds: %s.%s",
			clip(r.name), orList(quoted(names)), suggest(r.name, names)))
		base.Unknown = true
	}
	return base
}

func writablePhases(cat Catalog) []string {
	var out []string
	for _, n := range sortedKeys(cat.Phases) {
		if cat.Phases[n].Writable {
			out = append(out, fmt.Sprintf("%q", n))
		}
	}
	return out
}

// object is the phase in expressions.
func (p *Phase) object() cty.Value {
	writable := cty.BoolVal(p.Writable.V)
	if p.Writable.Unknown {
		writable = cty.UnknownVal(cty.Bool)
	}
	tools := listOf(p.Tools.V)
	if p.Tools.Unknown {
		tools = cty.UnknownVal(cty.List(cty.String))
	}
	var runners []string
	for _, r := range p.Runners {
		runners = append(runners, r.Name)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(p.Name), "base": textOrUnknown(p.Base), "writable": writable, "tools": tools, "runners": listOf(runners),
	})
}

func listOf(words []string) cty.Value {
	if len(words) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(words))
	for i, w := range words {
		out[i] = cty.StringVal(w)
	}
	return cty.ListVal(out)
}
