package hclspec

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// onText is a function of one string that returns a string.
func onText(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

// asks is a function of two strings that says yes or no.
func asks(f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	startsWithFunc  = asks(strings.HasPrefix)
	endsWithFunc    = asks(strings.HasSuffix)
	strContainsFunc = asks(strings.Contains)

	base64EncodeFunc = onText(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil })
	base64DecodeFunc = onText(func(s string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		switch {
		case err != nil:
			return "", errors.New("it is not base64 in the standard alphabet")
		case !utf8.Valid(b):
			return "", errors.New("what it encodes is not UTF-8 text")
		}
		return string(b), nil
	})
	sha256Func    = onText(func(s string) (string, error) { return hexSHA256([]byte(s)), nil })
	urlEncodeFunc = onText(func(s string) (string, error) { return url.QueryEscape(s), nil })
)

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// isPattern reports whether replace takes its second argument as a regular expression: /…/, as in
// Terraform.
func isPattern(s string) bool { return len(s) > 1 && s[0] == '/' && s[len(s)-1] == '/' }

var replaceFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "str", Type: cty.String}, {Name: "substr", Type: cty.String}, {Name: "replace", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		s, old, by := args[0].AsString(), args[1].AsString(), args[2].AsString()
		if !isPattern(old) {
			return cty.StringVal(strings.ReplaceAll(s, old, by)), nil
		}
		re, err := regexp.Compile(old[1 : len(old)-1])
		if err != nil {
			return cty.UnknownVal(cty.String), function.NewArgErrorf(1, "it is not a regular expression: %s", err)
		}
		// Each match may repeat groups of the text, so the result is built as long as it is affordable.
		var out []byte
		last := 0
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			out = append(out, s[last:m[0]]...)
			out = re.ExpandString(out, by, s, m)
			last = m[1]
			if len(out) > 16*allowance/4 {
				return cty.UnknownVal(cty.String), errors.New("the result would be too large")
			}
		}
		return cty.StringVal(string(out) + s[last:]), nil
	},
})

// maxBrackets bounds what jsondecode and yamldecode take: their decoders recurse, and so does whatever
// looks at the value afterwards.
const maxBrackets = 200

// shallow wraps a decoder and refuses text that nests deeper than maxBrackets.
func shallow(f function.Function, deep func(string) bool) function.Function {
	check := func(args []cty.Value) error {
		if v, _ := args[0].Unmark(); v.IsKnown() && !v.IsNull() && deep(v.AsString()) {
			return function.NewArgErrorf(0, "it is nested more than %d levels deep", maxBrackets)
		}
		return nil
	}
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := check(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

var (
	jsonDecodeFunc = shallow(stdlib.JSONDecodeFunc, func(s string) bool { return bracketDepth(s) > maxBrackets })
	yamlDecodeFunc = shallow(ctyyaml.YAMLDecodeFunc, deepYAML)
)

// bracketDepth is the deepest nesting of brackets outside quoted strings.
func bracketDepth(s string) int {
	depth, most := 0, 0
	inString := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			depth++
			most = max(most, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return most
}

// deepYAML overestimates: YAML nests by brackets, by indentation and by "- - -" on one line, and its
// anchors make few bytes into many.
func deepYAML(s string) bool {
	if strings.Count(s, "[")+strings.Count(s, "{") > 20*maxBrackets && bracketDepth(s) > maxBrackets {
		return true
	}
	for line := range strings.Lines(s) {
		indent := len(line) - len(strings.TrimLeft(line, " -?:"))
		if indent > 2*maxBrackets {
			return true
		}
	}
	return false
}
