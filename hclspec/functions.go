package hclspec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functionTable is the closed list of functions, with Terraform's names and meaning. There is no clock,
// no random number, no environment and no network in it: the same sources give the same Spec.
// docs/language.md lists it, and a test compares the two.
func (ev *evaluator) functionTable() map[string]function.Function {
	table := map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc, "sum": sumFunc,

		"chomp": stdlib.ChompFunc, "lower": stdlib.LowerFunc, "upper": stdlib.UpperFunc, "title": stdlib.TitleFunc,
		"split": stdlib.SplitFunc, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimsuffix": stdlib.TrimSuffixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"startswith": startsWithFunc, "endswith": endsWithFunc, "strcontains": strContainsFunc,
		"regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,

		"alltrue": allTrueFunc, "anytrue": anyTrueFunc, "chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc,
		"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc,
		"index": indexFunc, "keys": stdlib.KeysFunc, "length": lengthFunc, "lookup": stdlib.LookupFunc,
		"merge": stdlib.MergeFunc, "one": oneFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

		"base64decode": base64DecodeFunc, "base64encode": base64EncodeFunc, "sha256": sha256Func,
		"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": jsonDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
		"yamldecode": yamlDecodeFunc, "yamlencode": ctyyaml.YAMLEncodeFunc, "urlencode": urlEncodeFunc,
		"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
		"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
		"try":   tryfunc.TryFunc, "can": tryfunc.CanFunc, "sensitive": sensitiveFunc,

		"cidrhost": cidrHostFunc, "cidrnetmask": cidrNetmaskFunc, "cidrsubnet": cidrSubnetFunc, "cidrsubnets": cidrSubnetsFunc,

		"basename": basenameFunc, "dirname": dirnameFunc, "abspath": ev.absPathFunc(), "file": ev.fileFunc(),
		"filebase64": ev.fileBase64Func(), "fileexists": ev.fileExistsFunc(), "fileset": ev.fileSetFunc(),
		"filesha256": ev.fileSHA256Func(),
	}
	for name, g := range costs {
		table[name] = ev.guarded(g.f, g.cost)
	}
	// A template may call all of these, and no further template: that way none can call itself.
	inTemplate := make(map[string]function.Function, len(table)+1)
	for name, f := range table {
		inTemplate[name] = f
	}
	inTemplate["templatefile"] = nestedTemplateFunc
	table["templatefile"] = ev.templateFileFunc(inTemplate)
	return table
}

// costs are the functions whose result, or whose time, can be out of all proportion to their arguments,
// each with an estimate that is charged before it runs.
var costs = map[string]struct {
	f    function.Function
	cost func(args []cty.Value) int
}{
	"distinct":   {stdlib.DistinctFunc, func(a []cty.Value) int { return square(length(a[0])) / 8 }},
	"matchkeys":  {matchKeysFunc, func(a []cty.Value) int { return times(length(a[1]), length(a[2])) / 8 }},
	"setproduct": {stdlib.SetProductFunc, costOfProduct},
	"transpose":  {transposeFunc, func(a []cty.Value) int { return 0 }},
	"replace":    {replaceFunc, costOfReplace},
	"trim":       {stdlib.TrimFunc, func(a []cty.Value) int { return times(textLength(a[0]), textLength(a[1])) / 64 }},
	"join": {stdlib.JoinFunc, func(a []cty.Value) int {
		n := 0
		for _, l := range a[1:] {
			n = plus(n, length(l))
		}
		return times(n, textLength(a[0])) / 16
	}},
	"indent": {stdlib.IndentFunc, func(a []cty.Value) int {
		spaces, _ := a[0].AsBigFloat().Int64()
		return times(plus(1, strings.Count(a[1].AsString(), "\n")), int(min(max(spaces, 0), 1<<40))) / 16
	}},
	"format": {stdlib.FormatFunc, func(a []cty.Value) int { return costOfFormat(a[0]) }},
	"formatlist": {stdlib.FormatListFunc, func(a []cty.Value) int {
		n := 1
		for _, l := range a[1:] {
			n = max(n, length(l))
		}
		return times(n, costOfFormat(a[0]))
	}},
}

// guarded runs a function only when its estimated cost is affordable.
func (ev *evaluator) guarded(f function.Function, cost func([]cty.Value) int) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) { return f.ReturnTypeForValues(args) },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			plain := make([]cty.Value, len(args))
			for i, a := range args {
				if plain[i], _ = unmark(a); !plain[i].IsWhollyKnown() || plain[i].IsNull() {
					return f.Call(args)
				}
			}
			if !ev.meter.charge(cost(plain)) {
				return cty.DynamicVal, errors.New("the result would be too large")
			}
			return f.Call(args)
		},
	})
}

const tooMuch = 1 << 40 // more than any allowance; sums and products stay below overflow

func plus(a, b int) int { return min(a+b, tooMuch) }

func times(a, b int) int {
	if b != 0 && a > tooMuch/b {
		return tooMuch
	}
	return a * b
}

func square(n int) int { return times(n, n) }

// length is the number of elements, 1 for what has none.
func length(v cty.Value) int {
	if v.IsKnown() && !v.IsNull() && v.CanIterateElements() {
		return v.LengthInt()
	}
	return 1
}

func textLength(v cty.Value) int {
	if v.Type() != cty.String || v.IsNull() || !v.IsKnown() {
		return 0
	}
	return len(v.AsString())
}

func costOfProduct(args []cty.Value) int {
	n := 1
	for _, a := range args {
		n = times(n, length(a))
	}
	return times(n, len(args)+1)
}

func costOfReplace(a []cty.Value) int {
	s, by := textLength(a[0]), textLength(a[2])
	n := s + 1
	if old := textLength(a[1]); old > 0 && !isPattern(a[1].AsString()) {
		n = strings.Count(a[0].AsString(), a[1].AsString())
	}
	return plus(s, times(n, by)) / 16
}

var wideVerb = regexp.MustCompile(`[0-9]{5}`)

// costOfFormat refuses field widths that pad a value with pages of blanks.
func costOfFormat(v cty.Value) int {
	if v.Type() != cty.String {
		return 0
	}
	s := v.AsString()
	if wideVerb.MatchString(s) && strings.Contains(s, "%") {
		for _, m := range regexp.MustCompile(`%[^a-zA-Z%]*`).FindAllString(s, -1) {
			if wideVerb.MatchString(m) {
				return tooMuch
			}
		}
	}
	return (len(s) + 10_000*strings.Count(s, "%")) / 16
}

// templateError is the first error of a template, as its caller reports it.
func templateError(diags hcl.Diagnostics) error {
	for _, d := range hidePanics(diags) {
		if d.Severity == hcl.DiagError {
			return fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	return nil
}
