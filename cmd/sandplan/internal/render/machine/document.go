package machine

import (
	"encoding/json"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// FormatVersion is the version of the documents. A minor number more adds, a major number more breaks.
const FormatVersion = "1.0"

// Validation is the document of validate -json.
type Validation struct {
	FormatVersion string       `json:"format_version"`
	Valid         bool         `json:"valid"`
	Errors        int          `json:"error_count"`
	Warnings      int          `json:"warning_count"`
	Diagnostics   []Diagnostic `json:"diagnostics"`
}

// NewValidation is the document for what was found in a configuration.
func NewValidation(diags hcl.Diagnostics, sources map[string][]byte) Validation {
	errs, warnings := render.Split(diags)
	v := Validation{FormatVersion: FormatVersion, Valid: len(errs) == 0, Errors: len(errs), Warnings: len(warnings), Diagnostics: []Diagnostic{}}
	for _, d := range append(errs, warnings...) {
		v.Diagnostics = append(v.Diagnostics, NewDiagnostic(d, sources))
	}
	return v
}

// Document is the text of a document.
func Document(v any) string { return encode(v) + "\n" }

// identity is how documents name an object.
type identity struct {
	Address      string `json:"address"`
	Mode         string `json:"mode"`
	Type         string `json:"type"`
	Name         string `json:"name"`
	Index        any    `json:"index,omitempty"`
	ProviderName string `json:"provider_name"`
}

func newIdentity(a planner.Address, k planner.Kind) identity {
	name, key := nameAndKey(a)
	return identity{Address: string(a), Mode: "managed", Type: string(k), Name: name, Index: key, ProviderName: provider}
}

// stateResource is one object with the values of its settings, by their paths.
type stateResource struct {
	identity
	Schema    string          `json:"schema_version"`
	ID        string          `json:"id,omitempty"`
	Status    string          `json:"status,omitempty"`
	Values    map[string]any  `json:"values"`
	Sensitive map[string]bool `json:"sensitive_values"`
	DependsOn []string        `json:"depends_on,omitempty"`
}

type module struct {
	Resources []stateResource `json:"resources"`
}

type stateValues struct {
	Outputs map[string]Output `json:"outputs,omitempty"`
	Root    module            `json:"root_module"`
}

// State is the document of show -json.
type State struct {
	FormatVersion string      `json:"format_version"`
	Version       string      `json:"sandplan_version"`
	Scope         scope       `json:"scope"`
	EngineID      string      `json:"engine_id"`
	Values        stateValues `json:"values"`
}

type scope struct {
	Project   string `json:"project"`
	Workspace string `json:"workspace"`
}

// NewState is what the engine has.
func NewState(s planner.Snapshot, version string) State {
	ids := planner.IDs{}
	for _, o := range s.Objects {
		ids[o.Addr] = o.ID
	}
	out := State{FormatVersion: FormatVersion, Version: version, Scope: scope(s.Scope), EngineID: s.EngineID, Values: stateValues{Root: module{Resources: []stateResource{}}}}
	for _, o := range s.Objects {
		side := newSide(o.Observed, ids)
		out.Values.Root.Resources = append(out.Values.Root.Resources, stateResource{
			identity: newIdentity(o.Addr, o.Kind), Schema: o.Schema, ID: o.ID, Status: string(o.Status),
			Values: side.values, Sensitive: side.sensitive, DependsOn: texts(o.DependsOn),
		})
	}
	return out
}

func texts(addrs []planner.Address) []string {
	var out []string
	for _, a := range addrs {
		out = append(out, string(a))
	}
	return out
}

// side is one side of an object: values by path, without those that are sensitive or not known yet, which
// have a map of their own each.
type side struct {
	values    map[string]any
	unknown   map[string]bool
	sensitive map[string]bool
}

// newSide takes settings apart. A reference is the engine ID of what it points to, and unknown when that
// has none yet.
func newSide(fields []planner.Field, ids planner.IDs) side {
	s := side{values: map[string]any{}, unknown: map[string]bool{}, sensitive: map[string]bool{}}
	for _, f := range fields {
		if f.Class == planner.ClassIgnored || f.Value.IsZero() {
			continue
		}
		if f.Sensitive {
			s.sensitive[f.Path] = true
			continue
		}
		a, isRef := f.Value.Ref()
		_, isUnknown := f.Value.Unknown()
		switch {
		case isUnknown:
			s.unknown[f.Path] = true
		case !isRef:
			s.values[f.Path] = json.RawMessage(f.Value.Text())
		case ids[a] != "":
			s.values[f.Path] = ids[a]
		default:
			s.unknown[f.Path] = true
		}
	}
	return s
}

// changeDetail is what happens to the values of an object. actions is a list, so that a policy can look
// for "delete" wherever it stands.
type changeDetail struct {
	Actions         []string        `json:"actions"`
	Before          map[string]any  `json:"before"`
	After           map[string]any  `json:"after"`
	AfterUnknown    map[string]bool `json:"after_unknown"`
	BeforeSensitive map[string]bool `json:"before_sensitive"`
	AfterSensitive  map[string]bool `json:"after_sensitive"`
	ReplacePaths    [][]string      `json:"replace_paths,omitempty"`
}

type resourceChange struct {
	identity
	Reason  string       `json:"action_reason,omitempty"`
	Because []string     `json:"because,omitempty"`
	Change  changeDetail `json:"change"`
	// Extra are what the object has that nothing declares.
	Extra []extra `json:"extra,omitempty"`
}

type extra struct {
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

type variable struct {
	Value     json.RawMessage `json:"value,omitempty"`
	Sensitive bool            `json:"sensitive"`
	From      string          `json:"from,omitempty"`
}

type outputChange struct {
	Actions         []string `json:"actions"`
	Before          any      `json:"before"`
	After           any      `json:"after"`
	AfterUnknown    bool     `json:"after_unknown"`
	BeforeSensitive bool     `json:"before_sensitive"`
	AfterSensitive  bool     `json:"after_sensitive"`
}

// newOutputChanges are what becomes of the outputs.
func newOutputChanges(was, will []render.Output) map[string]outputChange {
	out := map[string]outputChange{}
	before, after := NewOutputs(was), NewOutputs(will)
	for _, c := range render.OutputChanges(was, will) {
		change := outputChange{Actions: []string{string(c.Action)}, BeforeSensitive: c.SensitiveBefore, AfterSensitive: c.Sensitive,
			AfterUnknown: !c.Sensitive && after[c.Name].Value == nil}
		if v := after[c.Name].Value; v != nil {
			change.After = v
		}
		if v := before[c.Name].Value; c.Action != render.OutputCreate && v != nil {
			change.Before = v
		}
		out[c.Name] = change
	}
	return out
}

// Plan is the document of show -json PLAN.
type Plan struct {
	FormatVersion string                  `json:"format_version"`
	Version       string                  `json:"sandplan_version"`
	Scope         scope                   `json:"scope"`
	EngineID      string                  `json:"engine_id"`
	Variables     map[string]variable     `json:"variables"`
	Planned       stateValues             `json:"planned_values"`
	Drift         []resourceChange        `json:"resource_drift"`
	Changes       []resourceChange        `json:"resource_changes"`
	Outputs       map[string]outputChange `json:"output_changes"`
	Prior         State                   `json:"prior_state"`
	Timestamp     string                  `json:"timestamp"`
	Applyable     bool                    `json:"applyable"`
	Errored       bool                    `json:"errored"`
	Permissions   []Permission            `json:"permissions"`
	Configuration Configuration           `json:"configuration"`
	Checks        []Check                 `json:"checks"`
}

// PlanInput is what the document of a plan is made from.
type PlanInput struct {
	Plan     *planner.Plan
	Snapshot planner.Snapshot
	// Before are the outputs of what the engine has now, Outputs those of what it will have.
	Before, Outputs []render.Output
	Variables       []Variable
	// Permissions are what every agent may do.
	Permissions []permission.Report
	// Configuration is what it was made from, Checks what came of its checks.
	Configuration Configuration
	Checks        []Check
	Version       string
	Now           time.Time
}

// Variable is one input of the configuration. Value is nil where it is sensitive, or nothing refers to it.
type Variable struct {
	Name, From string
	Sensitive  bool
	Value      json.RawMessage
}

// NewPlan is the document of a plan. Objects that stay as they are are in it.
func NewPlan(in PlanInput) Plan {
	p := Plan{
		FormatVersion: FormatVersion, Version: in.Version, Scope: scope(in.Plan.Scope), EngineID: in.Plan.EngineID,
		Variables: map[string]variable{}, Drift: []resourceChange{}, Changes: []resourceChange{}, Outputs: newOutputChanges(in.Before, in.Outputs),
		Prior: NewState(in.Snapshot, in.Version), Timestamp: in.Now.UTC().Format(time.RFC3339),
		Applyable: !in.Plan.Empty() && len(in.Plan.Conflicts()) == 0, Errored: len(in.Plan.Conflicts()) > 0,
		Permissions: NewPermissions(in.Permissions), Configuration: in.Configuration, Checks: in.Checks,
		Planned: stateValues{Root: module{Resources: []stateResource{}}, Outputs: NewOutputs(in.Outputs)},
	}
	for _, v := range in.Variables {
		p.Variables[v.Name] = variable{Value: v.Value, Sensitive: v.Sensitive, From: v.From}
	}
	before, after := planner.IDs{}, planner.IDs{}
	for _, c := range in.Plan.Changes {
		before[c.Addr] = c.Object.ID
		if c.Action == planner.ActionNoOp || c.Action == planner.ActionRestore {
			after[c.Addr] = c.Object.ID
		}
	}
	for _, c := range in.Plan.Changes {
		p.add(c, before, after)
	}
	return p
}

// add puts one object into the document.
func (p *Plan) add(c planner.Change, before, after planner.IDs) {
	was, will := newSide(c.Before, before), newSide(c.After, after)
	change := resourceChange{identity: newIdentity(c.Addr, c.Kind), Change: changeDetail{
		Actions: actions(c.Action), AfterUnknown: will.unknown, BeforeSensitive: was.sensitive, AfterSensitive: will.sensitive,
	}}
	if c.Before != nil {
		change.Change.Before = was.values
	}
	if c.After != nil {
		change.Change.After = will.values
		p.Planned.Root.Resources = append(p.Planned.Root.Resources, stateResource{
			identity: newIdentity(c.Addr, c.Kind), Schema: planner.Schema, Values: will.values, Sensitive: will.sensitive, DependsOn: texts(c.DependsOn),
		})
	}
	if len(c.Reasons) > 0 {
		change.Reason = string(c.Reasons[0].Code)
	}
	for _, r := range c.Reasons {
		if r.Text != "" {
			change.Because = append(change.Because, r.Text)
		}
	}
	for _, e := range c.Extra {
		change.Extra = append(change.Extra, extra{Path: e.Path, Detail: render.Clean(e.Detail)})
	}
	if c.Action == planner.ActionReplace {
		for _, m := range planner.Compare(c.After, c.Before) {
			if m.Field.Class == planner.ClassReplace || m.Field.Class == planner.ClassAssigned {
				change.Change.ReplacePaths = append(change.Change.ReplacePaths, []string{m.Field.Path})
			}
		}
	}
	p.Changes = append(p.Changes, change)
	if len(c.Drift)+len(c.Extra) > 0 {
		p.Drift = append(p.Drift, drifted(c, change))
	}
}

// drifted is an object that somebody changed: before is what it was made as, after what it is.
func drifted(c planner.Change, change resourceChange) resourceChange {
	d := resourceChange{identity: change.identity, Reason: string(planner.ReasonDrift), Extra: change.Extra, Change: changeDetail{
		Actions: []string{"update"}, Before: map[string]any{}, After: map[string]any{},
		AfterUnknown: map[string]bool{}, BeforeSensitive: map[string]bool{}, AfterSensitive: map[string]bool{},
	}}
	for _, m := range c.Drift {
		if m.Field.Sensitive {
			d.Change.BeforeSensitive[m.Field.Path], d.Change.AfterSensitive[m.Field.Path] = true, true
			continue
		}
		for _, s := range []struct {
			v  planner.Value
			to map[string]any
		}{{m.Want, d.Change.Before}, {m.Got, d.Change.After}} {
			if a, isRef := s.v.Ref(); isRef {
				s.to[m.Field.Path] = string(a)
			} else if s.v.Text() != "" {
				s.to[m.Field.Path] = json.RawMessage(s.v.Text())
			}
		}
	}
	return d
}

func actions(a planner.Action) []string {
	switch a {
	case planner.ActionReplace:
		return []string{"delete", "create"}
	case planner.ActionNoOp:
		return []string{"no-op"}
	}
	return []string{string(a)}
}
