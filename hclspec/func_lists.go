package hclspec

import (
	"errors"
	"math/big"
	"sort"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// anyParam takes a value of any type, null and unknown excluded.
func anyParam(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.DynamicPseudoType}
}

// lengthFunc counts elements, and in a string what people take for characters.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() {
			return cty.Number, nil
		}
		return cty.Number, function.NewArgErrorf(0, "it must be a list, a set, a map, an object or a string")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		switch ty := v.Type(); {
		case ty == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number), nil
		case ty == cty.String:
			return stdlib.Strlen(v)
		case ty.IsTupleType():
			return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))), nil
		case ty.IsObjectType():
			return cty.NumberIntVal(int64(len(ty.AttributeTypes()))), nil
		}
		return v.Length(), nil
	},
})

// elements are the elements of a list, tuple or set.
func elements(v cty.Value, arg int) ([]cty.Value, error) {
	if ty := v.Type(); !ty.IsListType() && !ty.IsTupleType() && !ty.IsSetType() {
		return nil, function.NewArgErrorf(arg, "it must be a list or a set")
	}
	return v.AsValueSlice(), nil
}

var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{anyParam("list")},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch ty := args[0].Type(); {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType():
			switch types := ty.TupleElementTypes(); len(types) {
			case 0:
				return cty.DynamicPseudoType, nil
			case 1:
				return types[0], nil
			}
		}
		return cty.NilType, function.NewArgErrorf(0, "it must be a list or a set with one element or none")
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		list, err := elements(args[0], 0)
		switch {
		case err != nil:
			return cty.UnknownVal(ty), err
		case len(list) == 0:
			return cty.NullVal(ty), nil
		case len(list) > 1:
			return cty.UnknownVal(ty), function.NewArgErrorf(0, "it must have one element or none, and has %d", len(list))
		}
		return list[0], nil
	},
})

// indexFunc is the place of a value in a list.
var indexFunc = function.New(&function.Spec{
	Params: []function.Parameter{anyParam("list"), anyParam("value")},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		none := cty.UnknownVal(cty.Number)
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
			return none, function.NewArgErrorf(0, "it must be a list")
		}
		for i, e := range args[0].AsValueSlice() {
			eq, err := stdlib.Equal(e, args[1])
			if err != nil {
				return none, err
			}
			if !eq.IsKnown() {
				return none, nil
			}
			if eq.True() {
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return none, errors.New("the list does not hold the value")
	},
})

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{anyParam("list")},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		none := cty.UnknownVal(cty.Number)
		list, err := elements(args[0], 0)
		if err != nil {
			return none, err
		}
		if len(list) == 0 {
			return none, function.NewArgErrorf(0, "an empty list has no sum")
		}
		sum := new(big.Float)
		for _, e := range list {
			n, err := convert.Convert(e, cty.Number)
			switch {
			case err != nil || n.IsNull():
				return none, function.NewArgErrorf(0, "all elements must be numbers")
			case !n.IsKnown():
				return none, nil
			case n.AsBigFloat().IsInf():
				return none, function.NewArgErrorf(0, "an element is infinite")
			}
			sum = new(big.Float).SetPrec(512).Add(sum, n.AsBigFloat())
		}
		return cty.NumberVal(sum), nil
	},
})

// allOf is alltrue and anytrue: decides is the element that settles the answer.
func allOf(decides bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			open := false
			for _, e := range args[0].AsValueSlice() {
				switch {
				case !e.IsKnown():
					open = true
				case e.IsNull():
					if !decides { // null is not true
						return cty.False, nil
					}
				case e.True() == decides:
					return e, nil
				}
			}
			if open {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!decides), nil
		},
	})
}

var allTrueFunc, anyTrueFunc = allOf(false), allOf(true)

// matchKeysFunc keeps the values whose key at the same place is among those searched for.
var matchKeysFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "values", Type: cty.List(cty.DynamicPseudoType)}, {Name: "keys", Type: cty.List(cty.DynamicPseudoType)},
		{Name: "searchset", Type: cty.List(cty.DynamicPseudoType)},
	},
	Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		values, keys := args[0].AsValueSlice(), args[1].AsValueSlice()
		if len(values) != len(keys) {
			return cty.UnknownVal(ty), errors.New("values and keys must have the same length")
		}
		var out []cty.Value
		for i, k := range keys {
			for _, s := range args[2].AsValueSlice() {
				eq, err := stdlib.Equal(k, s)
				if err != nil || !eq.IsKnown() {
					return cty.UnknownVal(ty), err
				}
				if eq.True() {
					out = append(out, values[i])
					break
				}
			}
		}
		if len(out) == 0 {
			return cty.ListValEmpty(ty.ElementType()), nil
		}
		return cty.ListVal(out), nil
	},
})

// transposeFunc turns a map of lists round.
var transposeFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "values", Type: cty.Map(cty.List(cty.String))}},
	Type:   function.StaticReturnType(cty.Map(cty.List(cty.String))),
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		turned := map[string][]string{}
		for it := args[0].ElementIterator(); it.Next(); {
			k, list := it.Element()
			if list.IsNull() {
				return cty.UnknownVal(ty), errors.New("a list in it is null")
			}
			if !list.IsWhollyKnown() {
				return cty.UnknownVal(ty), nil
			}
			for _, e := range list.AsValueSlice() {
				if e.IsNull() {
					return cty.UnknownVal(ty), errors.New("an element of a list in it is null")
				}
				turned[e.AsString()] = append(turned[e.AsString()], k.AsString())
			}
		}
		if len(turned) == 0 {
			return cty.MapValEmpty(cty.List(cty.String)), nil
		}
		vals := map[string]cty.Value{}
		for k, list := range turned {
			sort.Strings(list)
			vals[k] = listOf(list)
		}
		return cty.MapVal(vals), nil
	},
})

// sensitiveFunc marks a value. There is no way back: what takes a mark off would let a secret pass into
// what everybody sees.
var sensitiveFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
	Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(sensitive), nil },
})
