package hclspec

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
)

// given is one value for a variable, as it was given.
type given struct {
	name string
	from string // "-var", SANDPLAN_VAR_name, or the file's name
	rng  hcl.Range
	// text is the value where isText: what it means depends on the variable's type.
	text   string
	isText bool
	expr   hcl.Expression
	// undeclared says how much it matters that no variable has this name.
	undeclared hcl.DiagnosticSeverity
}

// value evaluates what was given. Text is taken as it is for string, number, bool and untyped
// variables, and as an HCL expression for all others.
func (g *given) value(ev *evaluator, v *variable) (cty.Value, hcl.Diagnostics) {
	if !g.isText {
		return ev.constant(g.expr)
	}
	if !v.typed || v.typ.IsPrimitiveType() {
		return cty.StringVal(g.text), nil
	}
	expr, diags := parseExpression([]byte(g.text), g.rng.Filename, ev.meter)
	val := cty.DynamicVal
	if !diags.HasErrors() {
		val, diags = ev.constant(expr)
	}
	for _, d := range diags { // a shell takes quotes away, and a word alone looks like a reference
		d.Detail += fmt.Sprintf("\n\nvar.%s is %s, so its value is read as HCL%s.", v.name, typeexpr.TypeString(v.typ), exampleOf(v.typ))
	}
	return val, diags
}

// exampleOf is how somebody types a value of a type.
func exampleOf(ty cty.Type) string {
	switch {
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		return `, as in ["one", "two"]`
	case ty.IsMapType() || ty.IsObjectType():
		return `, as in { name = "value" }`
	}
	return `, as in "text"`
}

// gather collects all values given, from the weakest to the strongest.
func (l *loader) gather(vars Vars) ([]*given, hcl.Diagnostics) {
	var out []*given
	var diags hcl.Diagnostics
	for _, kv := range vars.Env {
		name, value, ok := strings.Cut(kv, "=")
		if name, isVar := strings.CutPrefix(name, varEnvPrefix); ok && isVar && name != "" {
			out = append(out, textValue(name, varEnvPrefix+name, varEnvPrefix+name, value))
		}
	}
	for _, file := range l.place.varsets {
		more, d := l.readVarFile(file, l.place.display(file))
		out, diags = append(out, more...), append(diags, d...)
	}
	for _, arg := range vars.Args {
		if arg.File != "" {
			file := arg.File
			if !filepath.IsAbs(file) {
				file = filepath.Join(l.src.Cwd, file)
			}
			more, d := l.readVarFile(file, arg.File)
			out, diags = append(out, more...), append(diags, d...)
			continue
		}
		name, value, ok := strings.Cut(arg.Assign, "=")
		if !ok || !namePattern.MatchString(name) {
			at := hcl.Range{Filename: "-var", Start: hcl.InitialPos, End: hcl.InitialPos}
			diags = append(diags, problem(InvalidVarArgument, at, "-var takes NAME=VALUE, and this argument is not like that%s.", startOf(name, ok)))
			continue
		}
		g := textValue(name, "-var", "-var="+name, value)
		g.undeclared = hcl.DiagError
		out = append(out, g)
	}
	return out, diags
}

// startOf quotes the part of a bad -var that is certainly not a secret.
func startOf(name string, hasValue bool) string {
	if !hasValue {
		return "; it has no ="
	}
	return "; its name is " + quoted([]string{clip(name)})[0]
}

func textValue(name, from, file, value string) *given {
	end := hcl.Pos{Line: 1, Column: len([]rune(value)) + 1, Byte: len(value)}
	return &given{name: name, from: from, text: value, isText: true,
		rng: hcl.Range{Filename: file, Start: hcl.InitialPos, End: end}}
}

// readVarFile reads one file of assignments.
func (l *loader) readVarFile(file, display string) ([]*given, hcl.Diagnostics) {
	at := hcl.Range{Filename: display, Start: hcl.InitialPos, End: hcl.InitialPos}
	src, err := l.disk.read(file, maxConfigFile)
	if err != nil {
		return nil, fail(VarFileUnreadable, at, "%s cannot be read: %s.", file, err)
	}
	l.varSources[display], l.spec.Paths[display] = src, file
	body, diags := parseConfig(src, display, l.ev.meter)
	attrs, more := body.JustAttributes()
	for _, b := range body.Blocks {
		if b.Type != "variable" {
			diags = append(diags, problem(BlockInVarFile, b.TypeRange, "A variable file holds assignments only, as in name = \"value\".%s",
				suggest(b.Type, l.ev.declared[rootVar])))
			continue
		}
		diags = append(diags, problem(BlockInVarFile, b.TypeRange, "A variable file gives variables their values: name = \"value\". Variables are declared in the configuration, in %s.", configName))
	}
	for _, d := range more {
		if !strings.HasPrefix(d.Summary, "Unexpected ") { // its own diagnostic of the first block
			diags = append(diags, d)
		}
	}
	var out []*given
	for _, name := range sortedKeys(attrs) {
		out = append(out, &given{name: name, from: display, rng: attrs[name].Expr.Range(), expr: attrs[name].Expr, undeclared: hcl.DiagWarning})
	}
	return out, diags
}

// settleVariables gives every declared variable its value, and reports values for variables that are
// not declared: an error on the command line, a warning in a file, nothing in the environment.
func (l *loader) settleVariables(vars Vars, declared map[string]*variable) hcl.Diagnostics {
	all, diags := l.gather(vars)
	strongest := map[string]*given{}
	for _, g := range all {
		if declared[g.name] != nil {
			strongest[g.name] = g
			continue
		}
		if g.undeclared == hcl.DiagInvalid {
			continue
		}
		d := problem(UndeclaredVariable, g.rng, "A value is given for %q, and no variable has that name.%s", clip(g.name), suggest(g.name, l.ev.declared[rootVar]))
		d.Severity = g.undeclared
		diags = append(diags, d)
	}
	for _, name := range sortedKeys(declared) {
		v := declared[name]
		diags = append(diags, v.settle(l.ev, strongest[name], vars)...)
		if v.asked != nil {
			all = append(all, v.asked)
		}
		l.ev.values[rootVar+"."+name] = v.value
	}
	l.publish(all, declared)
	return diags
}

// publish puts the texts of variable values among the sources that diagnostics may show, except those
// of sensitive variables and of files that give one a value.
func (l *loader) publish(all []*given, declared map[string]*variable) {
	hidden := map[string]bool{}
	for _, g := range all {
		v := declared[g.name]
		if v != nil && v.sensitive {
			hidden[g.rng.Filename] = true
		}
		if g.isText && v != nil && !v.sensitive {
			l.spec.Sources[g.rng.Filename] = []byte(g.text)
		}
	}
	for name, src := range l.varSources {
		// A file with syntax errors may hold more than was understood.
		for _, v := range declared {
			if v.sensitive && strings.Contains(string(src), v.name) {
				hidden[name] = true
			}
		}
		if !hidden[name] {
			l.spec.Sources[name] = src
		}
	}
}
