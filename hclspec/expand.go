package hclspec

import (
	"fmt"
	"strconv"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// maxInstances bounds one configuration. Each instance is a network and two containers, and the largest
// pool has room for some two million; nobody means more than this.
const maxInstances = 5000

// form is how an invocation block repeats, as far as it is known before its body is evaluated.
type form struct {
	repeat string // for_each, count or ""
	// keys are the instances' keys, nil, strings or ints; they are complete only when known.
	keys   []any
	values map[string]cty.Value // each.value by key
	known  bool
	files  []string // read by the expression
	// value is each.value of an instance that stands for all.
	value cty.Value
}

// expand evaluates for_each or count of a block.
func (ev *evaluator) expand(s *section) (f *form, diags hcl.Diagnostics) {
	files := ev.record(func() { f, diags = ev.repetition(s) })
	f.files = files
	return f, diags
}

func (ev *evaluator) repetition(s *section) (*form, hcl.Diagnostics) {
	each, count := s.attrs["for_each"], s.attrs["count"]
	switch {
	case each != nil && count != nil:
		return &form{repeat: "for_each", value: cty.DynamicVal}, fail(InvalidForEach, count.NameRange, "An invocation has for_each or count, not both; for_each is at %s.", each.NameRange)
	case each != nil:
		return ev.expandEach(each)
	case count != nil:
		return ev.expandCount(count)
	}
	return &form{keys: []any{nil}, known: true}, nil
}

func (ev *evaluator) expandEach(attr *hcl.Attribute) (*form, hcl.Diagnostics) {
	f := &form{repeat: "for_each", values: map[string]cty.Value{}, value: cty.DynamicVal}
	v, diags := ev.value(attr.Expr, generalScope())
	if diags.HasErrors() {
		return f, diags
	}
	bad := func(format string, args ...any) (*form, hcl.Diagnostics) {
		return f, append(diags, problem(InvalidForEach, attr.Expr.Range(), format, args...))
	}
	v, marks := v.Unmark()
	ty := v.Type()
	switch {
	case len(marks) > 0:
		return bad("for_each is sensitive, and its keys would be in every address. Use a map whose keys are not sensitive.")
	case v.IsNull():
		return bad("for_each is null. Use an empty map for no instance.")
	case ty.IsListType() || ty.IsTupleType():
		return bad("for_each is %s, and must be a map or a set of strings. For a list of strings, write toset([…]).", describeType(v))
	case ty != cty.DynamicPseudoType && !ty.IsMapType() && !ty.IsObjectType() && !isTextSet(ty):
		return bad("for_each is %s, and must be a map or a set of strings.", describeType(v))
	}
	if ty.IsMapType() {
		f.value = cty.UnknownVal(ty.ElementType())
	}
	if !v.IsKnown() || ty.IsSetType() && !v.IsWhollyKnown() {
		return f, diags
	}
	if v.LengthInt() > maxInstances {
		return bad("for_each has %d elements, and an invocation at most %d instances.", v.LengthInt(), maxInstances)
	}
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if isSensitive(k) {
			return bad("for_each has a sensitive key, which would be in every address.")
		}
		if k.IsNull() {
			return bad("for_each has a null in its set.")
		}
		key := k.AsString()
		if err := checkKey(key); err != nil {
			at := attr.Expr.Range()
			if ke, _ := mapPair(attr.Expr, key); ke != nil {
				at = ke.Range()
			}
			diags = append(diags, problem(InvalidForEach, at, "%s.", capital(err.Error())))
			continue
		}
		f.keys = append(f.keys, key)
		f.values[key] = e
	}
	f.known = !diags.HasErrors()
	return f, diags
}

func isTextSet(ty cty.Type) bool {
	return ty.IsSetType() && (ty.ElementType() == cty.String || ty.ElementType() == cty.DynamicPseudoType)
}

// checkKey refuses keys that an address cannot show as they are.
func checkKey(key string) error {
	for _, r := range key {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the key %q holds a character that cannot be seen; keys become addresses", key)
		}
	}
	if key == "" || len(key) > 128 {
		return fmt.Errorf("the key %q has %d bytes, and 1 to 128 are allowed", clip(key), len(key))
	}
	return nil
}

func (ev *evaluator) expandCount(attr *hcl.Attribute) (*form, hcl.Diagnostics) {
	f := &form{repeat: "count"}
	v, diags := ev.value(attr.Expr, generalScope())
	if diags.HasErrors() {
		return f, diags
	}
	bad := func(format string, args ...any) (*form, hcl.Diagnostics) {
		return f, append(diags, problem(InvalidCount, attr.Expr.Range(), format, args...))
	}
	v, hidden := unmark(v)
	if hidden {
		return bad("count is sensitive, and the number of instances is in every plan.")
	}
	n, err := convert.Convert(v, cty.Number)
	if err != nil || n.IsNull() {
		return bad("count is %s, and must be a whole number.", describeType(v))
	}
	if !n.IsKnown() {
		return f, diags
	}
	i, acc := n.AsBigFloat().Int64()
	if acc != 0 || i < 0 || i > maxInstances {
		return bad("count is %s, and must be a whole number from 0 to %d.", n.AsBigFloat().Text('g', 10), maxInstances)
	}
	for k := range int(i) {
		f.keys = append(f.keys, k)
	}
	f.known = true
	return f, diags
}

// scope is where the body of one instance is evaluated. For the instance that stands for all, the key
// is nil although the block repeats.
func (f *form) scope(key any) *scope {
	sc := generalScope()
	switch f.repeat {
	case "for_each":
		k, v := cty.UnknownVal(cty.String), f.value
		if s, ok := key.(string); ok {
			k, v = cty.StringVal(s), f.values[s]
		}
		return sc.with(rootEach, map[string]cty.Value{"each.key": k, "each.value": v})
	case "count":
		i := cty.UnknownVal(cty.Number)
		if n, ok := key.(int); ok {
			i = cty.NumberIntVal(int64(n))
		}
		return sc.with(rootCount, map[string]cty.Value{"count.index": i})
	}
	return sc
}

// exampleKey is an index that exists, for messages.
func (f *form) exampleKey() string {
	if len(f.keys) > 0 {
		return addressKey(f.keys[0])
	}
	if f.repeat == "count" {
		return "[0]"
	}
	return `["KEY"]`
}

// checkKey refuses the literal index of an instance that does not exist.
func (f *form) checkKey(r reference, key cty.Value) hcl.Diagnostics {
	if !f.known || !key.IsKnown() || key.IsNull() {
		return nil
	}
	var names []string
	for _, k := range f.keys {
		s := fmt.Sprint(k)
		if conv, err := convert.Convert(key, cty.String); err == nil && conv.AsString() == s {
			if _, isInt := k.(int); isInt == (key.Type() == cty.Number) {
				return nil
			}
		}
		names = append(names, s)
	}
	given := ""
	if conv, err := convert.Convert(key, cty.String); err == nil {
		given = conv.AsString()
	}
	meant := suggest(given, names)
	if f.repeat == "count" { // a number is not misspelt
		meant = ""
	}
	return fail(InvalidReference, r.rng, "invocation.%s has no instance with the key %q. Its keys are %s.%s", r.name, clip(given), nameList(names), meant)
}

// addressKey is the key of an instance as its address has it.
func addressKey(key any) string {
	switch k := key.(type) {
	case string:
		return "[" + strconv.Quote(k) + "]"
	case int:
		return "[" + strconv.Itoa(k) + "]"
	}
	return ""
}
