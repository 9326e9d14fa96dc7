package hclspec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxListed bounds the entries that one fileset looks at.
const maxListed = 50_000

var pathParam = function.Parameter{Name: "path", Type: cty.String}

// readFile reads a file for a function, and notes it for the invocation that uses the value.
func (ev *evaluator) readFile(path string) ([]byte, string, error) {
	abs, err := absolute(ev.dir, path)
	if err != nil {
		return nil, "", err
	}
	ev.noteFiles(abs)
	b, err := ev.disk.read(abs, maxDataFile)
	if err != nil {
		return nil, abs, fmt.Errorf("%s cannot be read: %s", abs, err)
	}
	if !ev.meter.charge(len(b) / 16) {
		return nil, abs, errors.New("the files read are too large in all")
	}
	return b, abs, nil
}

// onPath is a function of one path.
func onPath(ret cty.Type, f func(path string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam},
		Type:   function.StaticReturnType(ret),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return f(args[0].AsString())
		},
	})
}

func (ev *evaluator) fileFunc() function.Function {
	return onPath(cty.String, func(path string) (cty.Value, error) {
		b, abs, err := ev.readFile(path)
		if err == nil && !utf8.Valid(b) {
			err = fmt.Errorf("%s is not UTF-8 text; read it with filebase64", abs)
		}
		if err != nil {
			return cty.UnknownVal(cty.String), err
		}
		return cty.StringVal(string(b)), nil
	})
}

func (ev *evaluator) fileBase64Func() function.Function {
	return onPath(cty.String, func(path string) (cty.Value, error) {
		b, _, err := ev.readFile(path)
		return cty.StringVal(base64.StdEncoding.EncodeToString(b)), err
	})
}

func (ev *evaluator) fileSHA256Func() function.Function {
	return onPath(cty.String, func(path string) (cty.Value, error) {
		b, _, err := ev.readFile(path)
		return cty.StringVal(hexSHA256(b)), err
	})
}

func (ev *evaluator) fileExistsFunc() function.Function {
	return onPath(cty.Bool, func(path string) (cty.Value, error) {
		abs, err := absolute(ev.dir, path)
		if err != nil {
			return cty.UnknownVal(cty.Bool), err
		}
		// The answer is part of the declaration too, and whoever can make the file can change it.
		ev.noteFiles(abs)
		info, err := ev.disk.stat(abs)
		switch {
		case isNotExist(err):
			return cty.False, nil
		case err != nil:
			return cty.UnknownVal(cty.Bool), fmt.Errorf("%s cannot be looked at: %s", abs, plainError(err))
		case !info.Mode().IsRegular():
			return cty.UnknownVal(cty.Bool), fmt.Errorf("%s is %s, not a regular file", abs, fileKind(info.Mode()))
		}
		return cty.True, nil
	})
}

func (ev *evaluator) absPathFunc() function.Function {
	return onPath(cty.String, func(path string) (cty.Value, error) {
		abs, err := absolute(ev.dir, path)
		return cty.StringVal(abs), err
	})
}

var (
	basenameFunc = onPath(cty.String, func(path string) (cty.Value, error) { return cty.StringVal(filepath.Base(path)), nil })
	dirnameFunc  = onPath(cty.String, func(path string) (cty.Value, error) { return cty.StringVal(filepath.Dir(path)), nil })
)

// fileSetFunc lists the regular files below a directory that match a pattern, by their names relative to
// it. What was listed is noted: a file more would be another result.
func (ev *evaluator) fileSetFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam, {Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			none := cty.UnknownVal(cty.Set(cty.String))
			abs, err := absolute(ev.dir, args[0].AsString())
			if err != nil {
				return none, err
			}
			found, err := ev.listFiles(abs, filepath.ToSlash(filepath.Clean(args[1].AsString())))
			if err != nil {
				return none, err
			}
			ev.noteFiles(abs)
			vals := []cty.Value{}
			for _, f := range found {
				ev.noteFiles(filepath.Join(abs, filepath.FromSlash(f)))
				vals = append(vals, cty.StringVal(f))
			}
			if len(vals) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			return cty.SetVal(vals), nil
		},
	})
}

func (ev *evaluator) listFiles(abs, pattern string) ([]string, error) {
	if len(pattern) > 1024 || !doublestar.ValidatePattern(pattern) || filepath.IsAbs(pattern) || pattern == ".." || len(pattern) > 2 && pattern[:3] == "../" {
		return nil, fmt.Errorf(`%q is not a pattern below the directory; write one as in "*.md" or "**/*.md"`, clip(pattern))
	}
	info, err := ev.disk.stat(abs)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be listed: %s", abs, plainError(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is %s, not a directory", abs, fileKind(info.Mode()))
	}
	sub, err := fs.Sub(ev.disk.fsys, rooted(abs))
	if err != nil {
		return nil, err
	}
	counted := &countingFS{FS: sub, left: maxListed}
	found, err := doublestar.Glob(counted, pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, fmt.Errorf("%s cannot be listed: %s", abs, plainError(err))
	}
	sort.Strings(found)
	return found, nil
}

// countingFS ends a walk that has looked at too much.
type countingFS struct {
	fs.FS
	left int
}

func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(c.FS, name)
	if c.left -= len(entries); c.left < 0 {
		return nil, fmt.Errorf("it holds more than %d files", maxListed)
	}
	return entries, err
}

// templateFileFunc renders a file as a template. Its variables are those of the second argument and no
// others.
func (ev *evaluator) templateFileFunc(functions map[string]function.Function) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{pathParam, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			vars := args[1]
			if ty := vars.Type(); !ty.IsMapType() && !ty.IsObjectType() {
				return cty.DynamicVal, function.NewArgErrorf(1, "the variables must be a map or an object")
			}
			src, abs, err := ev.readFile(args[0].AsString())
			if err != nil {
				return cty.DynamicVal, err
			}
			expr, diags := parseTemplate(src, abs, ev.meter)
			if diags.HasErrors() {
				return cty.DynamicVal, fmt.Errorf("%s is not a template: %s: %s", abs, diags[0].Subject, diags[0].Detail)
			}
			ctx := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: functions}
			for name, v := range vars.AsValueMap() {
				ctx.Variables[name] = v
			}
			for _, tr := range expr.Variables() {
				if _, ok := ctx.Variables[tr.RootName()]; !ok {
					return cty.DynamicVal, fmt.Errorf("%s uses %q, which is not among the variables%s", tr.SourceRange(), tr.RootName(), hint(tr.RootName(), sortedKeys(ctx.Variables)))
				}
			}
			v, diags := expr.Value(ctx)
			return ev.meter.bound(v, expr.Range(), 1), templateError(diags)
		},
	})
}

// nestedTemplateFunc stands for templatefile inside a template.
var nestedTemplateFunc = function.New(&function.Spec{
	Params: []function.Parameter{pathParam, {Name: "vars", Type: cty.DynamicPseudoType}},
	Type: func([]cty.Value) (cty.Type, error) {
		return cty.NilType, errors.New("a template cannot call templatefile; render the inner one first, and pass it in as a variable")
	},
})
