package render

import (
	"encoding/json"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Output is one output value as it is printed.
type Output struct {
	Name      string
	Sensitive bool
	Value     cty.Value
}

// Outputs is the list that ends an apply, sorted by name by the caller.
func (r *Renderer) Outputs(outs []Output) string {
	if len(outs) == 0 {
		return ""
	}
	p := &page{r: r}
	p.line(boldGreen, "Outputs:")
	p.nl()
	for _, o := range outs {
		v := any(literal(textSensitive))
		if !o.Sensitive {
			v = ctyTree(o.Value)
		}
		p.tree(o.Name+" = ", v, 0, "")
	}
	return p.String()
}

// Value is one value by itself, in HCL's notation.
func (r *Renderer) Value(v cty.Value) string {
	p := &page{r: r}
	p.tree("", ctyTree(v), 0, "")
	return p.String()
}

// tree prints a value over as many lines as it has elements.
func (p *page) tree(lead string, v any, depth int, end string) {
	indent := strings.Repeat("  ", depth)
	switch t := v.(type) {
	case map[string]any:
		if len(t) == 0 {
			break
		}
		wide := 0
		for k := range t {
			wide = max(wide, cells(quote(k)))
		}
		p.line(plain, indent, lead, "{")
		for _, k := range sortedKeys(t) {
			name := quote(k)
			p.tree(name+strings.Repeat(" ", wide-cells(name))+" = ", t[k], depth+1, "")
		}
		p.line(plain, indent, "}", end)
		return
	case []any:
		if len(t) == 0 {
			break
		}
		p.line(plain, indent, lead, "[")
		for _, e := range t {
			p.tree("", e, depth+1, ",")
		}
		p.line(plain, indent, "]", end)
		return
	}
	p.line(plain, indent, lead, inline(v), end)
}

// ctyTree is a value of the language as inline and tree take it.
func ctyTree(v cty.Value) any {
	if v.IsMarked() {
		return literal(textSensitive)
	}
	if !v.IsKnown() {
		return literal(textUnknown)
	}
	if v.IsNull() {
		return nil
	}
	t := v.Type()
	switch {
	case t.IsPrimitiveType():
		b, err := ctyjson.Marshal(v, t)
		if err != nil {
			return literal(err.Error())
		}
		var out any
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.UseNumber()
		if err := dec.Decode(&out); err != nil {
			return literal(err.Error())
		}
		return out
	case t.IsMapType() || t.IsObjectType():
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			out[k.AsString()] = ctyTree(e)
		}
		return out
	case t.IsCollectionType() || t.IsTupleType():
		var out []any
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, ctyTree(e))
		}
		return out
	}
	return literal("(" + t.FriendlyName() + ")")
}

func inlineCty(v cty.Value) string { return inline(ctyTree(v)) }
