package render

import "github.com/zclconf/go-cty/cty"

// OutputAction is what becomes of an output.
type OutputAction string

// The actions, in the words of documents.
const (
	OutputCreate OutputAction = "create"
	OutputUpdate OutputAction = "update"
	OutputNoOp   OutputAction = "no-op"
)

// OutputChange is an output before and after a plan is carried out. Before is cty.NilVal where it is new.
type OutputChange struct {
	Name            string
	Sensitive       bool
	SensitiveBefore bool
	Action          OutputAction
	Before, After   cty.Value
}

// OutputChanges are what becomes of outputs, in their order. One of which not all was known before is new.
func OutputChanges(was, will []Output) []OutputChange {
	earlier := map[string]Output{}
	for _, o := range was {
		earlier[o.Name] = o
	}
	var out []OutputChange
	for _, o := range will {
		c := OutputChange{Name: o.Name, Sensitive: o.Sensitive, Action: OutputCreate, After: o.Value}
		if e, there := earlier[o.Name]; there && e.Value.IsWhollyKnown() {
			c.Action, c.Before, c.SensitiveBefore = OutputUpdate, e.Value, e.Sensitive
			if o.Value.IsWhollyKnown() && o.Value.RawEquals(e.Value) {
				c.Action = OutputNoOp
			}
		}
		out = append(out, c)
	}
	return out
}

// outputChanges prints what becomes of outputs, where something does.
func (p *page) outputChanges(changes []OutputChange) {
	var rows []row
	for _, c := range changes {
		w := row{sym: symCreate, name: []string{c.Name}, new: outputTree(c.After, c.Sensitive)}
		switch c.Action {
		case OutputNoOp:
			continue
		case OutputUpdate:
			w.sym, w.old = symChange, outputTree(c.Before, c.SensitiveBefore)
		}
		rows = append(rows, w)
	}
	if len(rows) == 0 {
		return
	}
	p.nl()
	p.line(bold, "Changes to outputs:")
	p.rows(rows, 0)
}

func outputTree(v cty.Value, sensitive bool) any {
	if sensitive {
		return literal(textSensitive)
	}
	return ctyTree(v)
}
