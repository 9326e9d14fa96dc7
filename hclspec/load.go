package hclspec

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// configShape is what a configuration consists of. locals are taken apart by themselves, since their
// attributes have any name.
var configShape = &shape{blocks: map[string]*shape{
	"sandplan": sandplanShape, "provider": providerShape, "variable": variableShape, "locals": {},
	"vendor": vendorShape, "phase": phaseShape, "invocation": invocationShape, "output": outputShape, "check": checkShape,
}}

// loader is one Load.
type loader struct {
	src        Source
	cat        Catalog
	disk       disk
	place      place
	ev         *evaluator
	spec       *Spec
	varSources map[string][]byte
	sections   map[string][]*section // by block type, labels unique
	locals     map[string]*hcl.Attribute
	configs    []string // display names
}

// Load reads and evaluates a configuration. All mistakes are reported in one run, sorted by place. The
// Spec is never nil; with errors it holds what could be read.
//
// With vars.Unknown the Spec is that of `validate`: what depends on a variable is marked Unknown, and a
// block whose number of instances is unknown has one instance that stands for all. With vars.Partial the same
// holds for variables without a value.
func Load(src Source, vars Vars, cat Catalog) (*Spec, hcl.Diagnostics) {
	return load(src, vars, cat, newMeter(allowance))
}

func load(src Source, vars Vars, cat Catalog, m *meter) (*Spec, hcl.Diagnostics) {
	if src.Workspace == "" {
		src.Workspace = "default"
	}
	l := &loader{src: src, cat: cat, disk: newDisk(src.FS), varSources: map[string][]byte{}, sections: map[string][]*section{}, locals: map[string]*hcl.Attribute{}}
	l.spec = &Spec{Workspace: src.Workspace, Sources: map[string][]byte{}, Paths: map[string]string{}, FS: src.FS}
	var diags hcl.Diagnostics
	l.place, diags = src.find()
	l.spec.Dir, l.spec.File = l.place.dir, l.place.file
	l.ev = newEvaluator(l.disk, l.place.dir, m)
	if diags.HasErrors() {
		return l.spec, diags
	}
	diags = append(diags, l.checkWorkspace()...)
	diags = append(diags, l.parse()...)
	diags = append(diags, l.evaluate(vars)...)
	diags = append(diags, l.readLock()...)
	diags = append(diags, m.report()...)
	return l.spec, tidy(diags)
}

func (l *loader) checkWorkspace() hcl.Diagnostics {
	if workspacePattern.MatchString(l.src.Workspace) {
		return nil
	}
	at := hcl.Range{Filename: "-workspace", Start: hcl.InitialPos, End: hcl.InitialPos}
	return fail(InvalidName, at, "%q cannot name a workspace: up to 31 lower-case letters, digits and hyphens, a hyphen not first.", clip(l.src.Workspace))
}

// parse reads all files and takes their blocks apart.
func (l *loader) parse() hcl.Diagnostics {
	var diags hcl.Diagnostics
	broken := false
	all := map[string][]*section{}
	for _, file := range l.place.configs {
		name := l.place.display(file)
		at := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
		src, err := l.disk.read(file, maxConfigFile)
		if err != nil {
			broken = true
			diags = append(diags, problem(ConfigNotFound, at, "%s cannot be read: %s.", file, err))
			continue
		}
		l.spec.Sources[name], l.spec.Paths[name] = src, file
		l.configs = append(l.configs, name)
		body, more := parseConfig(src, name, l.ev.meter)
		broken = broken || more.HasErrors()
		diags = append(diags, more...)
		content, more := body.Content(configShape.schema())
		diags = append(diags, more...)
		for _, b := range content.Blocks {
			if b.Type == "locals" {
				diags = append(diags, l.addLocals(b)...)
				continue
			}
			s, more := configShape.blocks[b.Type].open(b)
			diags = append(diags, more...)
			all[b.Type] = append(all[b.Type], s)
		}
	}
	for _, typ := range sortedKeys(all) {
		list, more := unique(all[typ], typ)
		diags = append(diags, more...)
		sortSections(list)
		l.sections[typ] = list
	}
	l.declare()
	if len(l.sections["sandplan"]) == 0 {
		where := hcl.Range{Filename: l.place.display(l.place.configs[0]), Start: hcl.InitialPos, End: hcl.InitialPos}
		l.spec.Range = where
		if !broken { // else it may stand in what could not be read
			diags = append(diags, problem(MissingSandplan, where, "Every configuration has one block that names the project: sandplan { project = \"my-project\" }."))
		}
	}
	return diags
}

// addLocals reads a locals block, of which there may be several.
func (l *loader) addLocals(b *hcl.Block) hcl.Diagnostics {
	attrs, diags := b.Body.JustAttributes()
	for _, name := range sortedKeys(attrs) {
		attr := attrs[name]
		if first, ok := l.locals[name]; ok {
			diags = append(diags, problem(DuplicateName, attr.NameRange, "A local named %q is already defined at %s.", clip(name), first.NameRange))
			continue
		}
		l.locals[name] = attr
	}
	return diags
}

// declare tells the evaluator all names, before anything is evaluated.
func (l *loader) declare() {
	names := func(typ string) []string {
		var out []string
		for _, s := range l.sections[typ] {
			out = append(out, s.name)
		}
		return out
	}
	d := l.ev.declared
	d[rootVar], d[rootVendor], d[rootInvocation] = names("variable"), names("vendor"), names("invocation")
	d[rootLocal] = sortedKeys(l.locals)
	l.spec.Blocks = d[rootInvocation]
	phases := map[string]bool{}
	for _, n := range append(names("phase"), sortedKeys(l.cat.Phases)...) {
		phases[n] = true
	}
	d[rootPhase] = sortedKeys(phases)
}

// evaluate computes everything, in the order in which things can depend on each other.
func (l *loader) evaluate(vars Vars) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, s := range l.sections["sandplan"] {
		diags = append(diags, l.ev.decodeSandplan(s, l.spec, l.src.Version)...)
	}
	l.ev.values["path.root"] = cty.StringVal(l.place.dir)
	l.ev.values["path.cwd"] = cty.StringVal(filepath.Clean(l.src.Cwd))
	l.ev.values["sandplan.workspace"] = cty.StringVal(l.src.Workspace)
	declared := map[string]*variable{}
	for _, s := range l.sections["variable"] {
		v, more := l.ev.decodeVariable(s)
		diags = append(diags, more...)
		declared[v.name] = v
	}
	diags = append(diags, l.settleVariables(vars, declared)...)
	for _, name := range sortedKeys(declared) {
		l.spec.Variables = append(l.spec.Variables, declared[name].declaration())
	}
	diags = append(diags, l.evaluateGraph()...)
	for _, name := range sortedKeys(declared) {
		diags = append(diags, declared[name].validate(l.ev)...)
	}
	diags = append(diags, l.evaluateProvider()...)
	diags = append(diags, l.evaluateInvocations()...)
	return append(diags, l.evaluateLate()...)
}

// evaluateGraph evaluates locals, vendors and phases in the order of their references.
func (l *loader) evaluateGraph() hcl.Diagnostics {
	g := &graph{nodes: map[string]*node{}}
	for _, name := range sortedKeys(l.locals) {
		attr := l.locals[name]
		l.addNode(g, rootLocal, name, attr.Range, []hcl.Expression{attr.Expr}, cty.DynamicPseudoType, func() (cty.Value, hcl.Diagnostics) {
			return l.ev.value(attr.Expr, generalScope())
		})
	}
	for _, s := range l.sections["vendor"] {
		l.addNode(g, rootVendor, s.name, s.block.DefRange, s.expressions(), vendorType, func() (cty.Value, hcl.Diagnostics) {
			v, diags := l.ev.decodeVendor(s, l.cat)
			l.spec.Vendors = append(l.spec.Vendors, v)
			return v.object(), diags
		})
	}
	written := map[string]bool{}
	for _, s := range l.sections["phase"] {
		written[s.name] = true
		l.addNode(g, rootPhase, s.name, s.block.DefRange, s.expressions(), phaseType, func() (cty.Value, hcl.Diagnostics) {
			p, diags := l.ev.decodePhase(s, l.cat)
			l.spec.Phases = append(l.spec.Phases, p)
			return p.object(), diags
		})
	}
	for _, name := range sortedKeys(l.cat.Phases) {
		if !written[name] {
			p := builtinPhase(name, l.cat.Phases[name], l.spec.Range)
			l.spec.Phases = append(l.spec.Phases, p)
			l.ev.values[rootPhase+"."+name] = p.object()
		}
	}
	g.connect(l.ev)
	diags := g.evaluate()
	sort.Slice(l.spec.Vendors, func(i, j int) bool { return l.spec.Vendors[i].Name < l.spec.Vendors[j].Name })
	sort.Slice(l.spec.Phases, func(i, j int) bool { return l.spec.Phases[i].Name < l.spec.Phases[j].Name })
	return diags
}

// addNode adds a declaration to the graph. One that is part of a cycle has an unknown value of its type.
func (l *loader) addNode(g *graph, root, name string, rng hcl.Range, exprs []hcl.Expression, ty cty.Type, eval func() (cty.Value, hcl.Diagnostics)) {
	key := root + "." + name
	g.add(&node{key: key, rng: rng, expressions: exprs, evaluate: func(broken bool) hcl.Diagnostics {
		l.ev.values[key] = cty.UnknownVal(ty)
		if broken {
			return nil
		}
		var v cty.Value
		var diags hcl.Diagnostics
		l.ev.files[key] = l.ev.record(func() { v, diags = eval() })
		l.ev.values[key] = v
		return diags
	}})
}

func (l *loader) evaluateProvider() hcl.Diagnostics {
	var diags hcl.Diagnostics
	var docker *section
	for _, s := range l.sections["provider"] {
		diags = append(diags, s.checkProviderName()...)
		if s.name == "docker" {
			docker = s
		}
	}
	p, more := l.ev.decodeProvider(docker, l.spec.Range)
	l.spec.Provider = p
	return append(diags, more...)
}

func (l *loader) evaluateInvocations() hcl.Diagnostics {
	var diags hcl.Diagnostics
	total := 0
	for _, s := range l.sections["invocation"] {
		diags = append(diags, s.checkName()...)
		f, more := l.ev.expand(s)
		diags = append(diags, more...)
		l.ev.forms[s.name] = f
		l.ev.values[rootInvocation+"."+s.name] = f.liveValue(s.name, nil)
		if total += len(f.keys); total > maxInstances {
			diags = append(diags, problem(TooManyInstances, s.block.DefRange, "With this block the configuration has %d instances, and at most %d are allowed.", total, maxInstances))
			break
		}
		is, more := l.ev.decodeInvocations(s, f)
		diags = append(diags, more...)
		l.spec.Invocations = append(l.spec.Invocations, is...)
	}
	sortInvocations(l.spec.Invocations)
	return diags
}

// evaluateLate looks for mistakes in outputs and checks, with everything unknown that is not known
// before planning, and keeps what they refer to. What they say is for EvalOutputs and EvalChecks.
func (l *loader) evaluateLate() hcl.Diagnostics {
	var diags hcl.Diagnostics
	used := map[string]bool{}
	sc := liveScope()
	for _, typ := range []string{"output", "check"} {
		for _, s := range l.sections[typ] {
			for _, expr := range s.expressions() {
				refs, _ := l.ev.references(expr, sc)
				for _, r := range refs {
					used[r.key()] = true
				}
			}
		}
	}
	for _, s := range l.sections["output"] {
		_, more := l.ev.decodeOutput(s)
		diags = append(diags, more...)
	}
	for _, s := range l.sections["check"] {
		for _, d := range l.ev.decodeCheck(s) {
			if d.Summary != FailedCheck {
				diags = append(diags, d)
			}
		}
	}
	l.spec.Scope.Configs = l.configs
	l.spec.Scope.save(l.ev, used)
	return diags
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
