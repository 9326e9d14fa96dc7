package hclspec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// format is one kind of attribute value: what HCL type it is written as and how it is understood. parse
// gets a known value without nulls or marks; its error says what was found and what is allowed, and may
// be a cty.PathError that leads to the culprit.
type format[T any] struct {
	summary string
	want    cty.Type
	parse   func(cty.Value) (T, error)
	// secret allows a sensitive value.
	secret bool
	// partial lets parse see a value that is known itself, with unknown parts.
	partial bool
}

// reader reads the attributes of one section in one scope and collects the diagnostics.
type reader struct {
	*section
	ev    *evaluator
	sc    *scope
	diags hcl.Diagnostics
}

// inside reads a section within this one.
func (r *reader) inside(s *section) *reader { return &reader{section: s, ev: r.ev, sc: r.sc} }

// read reads an attribute. Without it, or where it is null, the default holds.
func read[T any](r *reader, name string, f format[T], def T) Val[T] {
	val := Val[T]{V: def, Range: r.block.DefRange}
	attr := r.attrs[name]
	if attr == nil {
		return val
	}
	v, diags := r.ev.value(attr.Expr, r.sc)
	r.diags = append(r.diags, diags...)
	val.Range = attr.Range
	if diags.HasErrors() {
		val.Unknown = true
		return val
	}
	return interpret(r, attr, v, f, val)
}

// interpret turns an evaluated attribute into what it means.
func interpret[T any](r *reader, attr *hcl.Attribute, v cty.Value, f format[T], val Val[T]) Val[T] {
	def := val.V
	bad := func(d *hcl.Diagnostic) Val[T] {
		d.Context = attr.Range.Ptr()
		r.diags = append(r.diags, d)
		val.Unknown = true
		return val
	}
	v, val.Sensitive = unmark(v)
	if val.Sensitive && !f.secret {
		return bad(problem(SensitiveValue, attr.Expr.Range(), "%s would be visible on the engine. A sensitive value can only be a prompt, or reach the agent as a credential block of its vendor.", attr.Name))
	}
	if f.want != cty.DynamicPseudoType {
		conv, err := convert.Convert(v, f.want)
		if err != nil {
			return bad(problem(WrongType, locate(attr.Expr, errorPath(err)), "%s%s.", wrongType(attr.Name, v, f.want), within(err)))
		}
		v = conv
	}
	if v.IsNull() && contains(r.shape.required, attr.Name) {
		return bad(problem(WrongType, attr.Expr.Range(), "%s is null, and %s block needs it.", attr.Name, article(r.block.Type)))
	}
	if v.IsNull() {
		// As in Terraform, null is the same as leaving the attribute out.
		return Val[T]{V: def, Range: r.block.DefRange}
	}
	if !v.IsKnown() || !f.partial && !v.IsWhollyKnown() {
		val.Unknown = true
		return val
	}
	val.Set = true
	parsed, err := f.parse(v)
	if err != nil {
		text := err.Error()
		if val.Sensitive {
			text = "the value is sensitive and not shown"
		}
		return bad(problem(f.summary, locate(attr.Expr, errorPath(err)), "%s: %s", attr.Name, stop(text)))
	}
	val.V = parsed
	return val
}

// wrongType says what an attribute is and what it must be.
func wrongType(name string, v cty.Value, want cty.Type) string {
	return name + " is " + describeType(v) + ", and must be " + wantedTypes[want]
}

// wantedTypes are the types that attributes have, in words.
var wantedTypes = map[cty.Type]string{
	cty.String: "a string", cty.Number: "a number", cty.Bool: "true or false", cty.List(cty.String): "a list of strings",
	cty.Map(cty.String): `a map of strings, as in { NAME = "value" }`,
}

// within adds what is wrong inside of a list or a map.
func within(err error) string {
	if p := errorPath(err); len(p) > 0 {
		return fmt.Sprintf("; at %s: %s", formatPath(p), err)
	}
	return ""
}

// stop ends a sentence.
func stop(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

func errorPath(err error) cty.Path {
	var pe cty.PathError
	if errors.As(err, &pe) {
		return pe.Path
	}
	return nil
}

// describeType names the type of a value for people.
func describeType(v cty.Value) string {
	switch ty := v.Type(); {
	case v.IsNull():
		return "null"
	case ty.Equals(vendorType):
		return "a vendor"
	case ty.Equals(phaseType):
		return "a phase"
	case ty.IsTupleType():
		return "a list"
	case ty.IsObjectType():
		return "an object"
	default:
		return article(ty.FriendlyName())
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// text is any string of at most limit bytes without NUL.
func text(summary string, limit int) format[string] {
	return format[string]{summary: summary, want: cty.String, parse: func(v cty.Value) (string, error) {
		s := v.AsString()
		return s, checkText(s, limit)
	}}
}

func checkText(s string, limit int) error {
	switch {
	case s == "":
		return errors.New("it is empty; leave the attribute out instead")
	case len(s) > limit:
		return fmt.Errorf("it has %d bytes, and at most %d are allowed", len(s), limit)
	case strings.ContainsRune(s, 0):
		return errors.New("it holds a NUL character")
	}
	return nil
}

// oneOf is one of a few words.
func oneOf(words ...string) format[string] {
	return format[string]{summary: InvalidChoice, want: cty.String, parse: func(v cty.Value) (string, error) {
		s := v.AsString()
		if contains(words, s) {
			return s, nil
		}
		return "", fmt.Errorf("%q is none of %s%s", clip(s), orList(quoted(words)), hint(s, words))
	}}
}

// hint is suggest as the end of an error.
func hint(given string, names []string) string {
	if n := nearest(given, names); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return out
}

var boolean = format[bool]{want: cty.Bool, parse: func(v cty.Value) (bool, error) { return v.True(), nil }}

// wholeNumber is an integer within bounds.
func wholeNumber(low, high int64) format[int64] {
	return format[int64]{summary: InvalidNumber, want: cty.Number, parse: func(v cty.Value) (int64, error) {
		n, acc := v.AsBigFloat().Int64()
		if acc != 0 || n < low || n > high {
			return 0, fmt.Errorf("%s is not a whole number from %d to %d", v.AsBigFloat().Text('g', 10), low, high)
		}
		return n, nil
	}}
}

// argv is a command: at least one word, none with NUL, the first not empty.
var argv = format[[]string]{summary: InvalidCommand, want: cty.List(cty.String), parse: func(v cty.Value) ([]string, error) {
	words, err := stringList(v)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New(`it is empty; write the program and its arguments, as in ["npm", "test"]`)
	}
	total := 0
	for i, w := range words {
		at := cty.IndexIntPath(i)
		total += len(w)
		switch {
		case i == 0 && strings.TrimSpace(w) == "":
			return nil, at.NewErrorf("the program is empty")
		case i == 0 && len(words) == 1 && strings.ContainsAny(w, " \t"):
			return nil, at.NewErrorf("%q is one word: no shell splits it; did you mean [%s]?", clip(w), strings.Join(quoted(strings.Fields(clip(w))), ", "))
		case strings.ContainsRune(w, 0):
			return nil, at.NewErrorf("it holds a NUL character")
		case total > 64<<10:
			return nil, at.NewErrorf("the words have more than %d bytes in all", 64<<10)
		}
	}
	return words, nil
}}

// words is a list of distinct names.
func words(summary string, check func(string) error) format[[]string] {
	return format[[]string]{summary: summary, want: cty.List(cty.String), parse: func(v cty.Value) ([]string, error) {
		list, err := stringList(v)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for i, w := range list {
			if seen[w] {
				return nil, cty.IndexIntPath(i).NewErrorf("%q is there twice", clip(w))
			}
			seen[w] = true
			if err := check(w); err != nil {
				return nil, cty.IndexIntPath(i).NewError(err)
			}
		}
		return list, nil
	}}
}

func stringList(v cty.Value) ([]string, error) {
	out := []string{}
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, e := it.Element()
		if e.IsNull() {
			return nil, cty.IndexIntPath(i).NewErrorf("element %d is null", i)
		}
		out = append(out, e.AsString())
	}
	return out, nil
}
