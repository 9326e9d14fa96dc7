package machine

import (
	"encoding/json"
	"fmt"
	"strings"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// change is what a line says of one object.
type change struct {
	Resource resource `json:"resource"`
	Action   string   `json:"action"`
	Reason   string   `json:"reason,omitempty"`
	// Fields are the paths of the settings that differ, Extra those of what nothing declares, Text what
	// differs as a whole.
	Fields []string `json:"fields,omitempty"`
	Extra  []string `json:"extra,omitempty"`
	Text   []string `json:"text,omitempty"`
}

type counts struct {
	Add       int    `json:"add"`
	Change    int    `json:"change"`
	Import    int    `json:"import"`
	Remove    int    `json:"remove"`
	Operation string `json:"operation"`
}

// Plan is one line per object that drifted, one per object that the plan changes, and the summary.
func (s *Stream) Plan(pl *planner.Plan, v render.PlanView) string {
	var b strings.Builder
	kinds := map[planner.Address]planner.Kind{}
	for _, c := range pl.Changes {
		kinds[c.Addr] = c.Kind
	}
	b.WriteString(s.found(pl.Findings, kinds, planner.FindingDrift))
	for _, c := range pl.Changes {
		if c.Action == planner.ActionNoOp {
			continue
		}
		text, _ := render.Verdict(c)
		b.WriteString(s.line(levelInfo, "planned_change", string(c.Addr)+" "+text, map[string]any{"change": planned(c)}))
	}
	b.WriteString(s.Permissions(v.Permissions))
	add, chg, destroy := pl.Counts()
	operation := "plan"
	message := render.Summary(pl)
	if pl.Empty() {
		message = "No changes."
	}
	b.WriteString(s.line(levelInfo, "change_summary", message, map[string]any{
		"changes": counts{Add: add, Change: chg, Remove: destroy, Operation: operation},
	}))
	return b.String()
}

func planned(c planner.Change) change {
	out := change{Resource: newResource(c.Addr, c.Kind), Action: string(c.Action)}
	if len(c.Reasons) > 0 {
		out.Reason = string(c.Reasons[0].Code)
	}
	if c.Before != nil && c.After != nil {
		for _, m := range planner.Compare(c.After, c.Before) {
			out.Fields = append(out.Fields, m.Field.Path)
		}
	}
	for _, e := range c.Extra {
		out.Extra = append(out.Extra, e.Path)
	}
	return out
}

// lineTypes are the types of lines about findings.
var lineTypes = map[planner.FindingKind]string{
	planner.FindingDrift: "resource_drift", planner.FindingPending: "resource_pending", planner.FindingConflict: "resource_conflict",
}

// found is one line per object and kind of finding.
func (s *Stream) found(fs []planner.Finding, kinds map[planner.Address]planner.Kind, only ...planner.FindingKind) string {
	var b strings.Builder
	for _, kind := range only {
		var order []planner.Address
		at := map[planner.Address]*change{}
		for _, f := range fs {
			if f.Kind != kind {
				continue
			}
			c := at[f.Addr]
			if c == nil {
				c = &change{Resource: newResource(f.Addr, kindAt(kinds, f.Addr)), Action: "update"}
				at[f.Addr], order = c, append(order, f.Addr)
			}
			switch {
			case f.Mismatch != nil:
				c.Fields = append(c.Fields, f.Mismatch.Field.Path)
			case f.Extra != nil:
				c.Extra = append(c.Extra, f.Extra.Path)
			default:
				c.Text = append(c.Text, render.Clean(f.Text))
			}
		}
		for _, a := range order {
			b.WriteString(s.line(levelInfo, lineTypes[kind], fmt.Sprintf("%s: %s", a, words[kind]), map[string]any{"change": at[a]}))
		}
	}
	return b.String()
}

var words = map[planner.FindingKind]string{
	planner.FindingDrift: "changed since the last apply", planner.FindingPending: "declared otherwise than applied",
	planner.FindingConflict: "an object of somebody else is in the way",
}

func kindAt(kinds map[planner.Address]planner.Kind, a planner.Address) planner.Kind {
	if k, ok := kinds[a]; ok {
		return k
	}
	part, _, _ := strings.Cut(a.Part(), "[")
	switch {
	case a.Invocation() != "" && part == "":
		return kindInvocation
	case a.Invocation() == "" && !strings.HasPrefix(string(a), "sandplan."):
		return planner.KindPinned // of a vendor or a runner
	}
	return planner.Kind(part)
}

// kindInvocation is what lines call an invocation of which nothing is there yet.
const kindInvocation planner.Kind = "invocation"

// Drift is one line per object that differs, and a summary.
func (s *Stream) Drift(scope planner.Scope, objects int, fs []planner.Finding, titles map[planner.Address]string) string {
	n := map[planner.FindingKind]map[planner.Address]bool{}
	for kind := range lineTypes {
		n[kind] = map[planner.Address]bool{}
	}
	for _, f := range fs {
		n[f.Kind][f.Addr] = true
	}
	message := s.human.Drift(scope, objects, nil, titles)
	if len(fs) > 0 {
		message = fmt.Sprintf("Drift: %d drifted, %d pending, %d in conflict.",
			len(n[planner.FindingDrift]), len(n[planner.FindingPending]), len(n[planner.FindingConflict]))
	}
	return s.found(fs, nil, planner.FindingConflict, planner.FindingDrift, planner.FindingPending) +
		s.line(levelInfo, "drift_summary", message, map[string]any{"drift": map[string]any{
			"scope": scope.String(), "objects": objects, "drift": len(n[planner.FindingDrift]),
			"pending": len(n[planner.FindingPending]), "conflict": len(n[planner.FindingConflict]),
		}})
}

// Ignored says how many findings a report leaves out.
func (s *Stream) Ignored(n int) string { return s.log(levelInfo, s.human.Ignored(n)) }

// Applied is the summary of an apply.
func (s *Stream) Applied(added, changed, destroyed int) string {
	return s.line(levelInfo, "change_summary", s.human.Applied(added, changed, destroyed), map[string]any{
		"changes": counts{Add: added, Change: changed, Remove: destroyed, Operation: "apply"},
	})
}

// Destroyed is the summary of a destroy.
func (s *Stream) Destroyed(n int) string {
	return s.line(levelInfo, "change_summary", s.human.Destroyed(n), map[string]any{
		"changes": counts{Remove: n, Operation: "destroy"},
	})
}

// Output is one output as JSON has it: the value of a sensitive or unknown one is left out.
type Output struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type"`
	Value     json.RawMessage `json:"value,omitempty"`
}

// NewOutputs are outputs by their names.
func NewOutputs(outs []render.Output) map[string]Output {
	all := map[string]Output{}
	for _, o := range outs {
		out := Output{Sensitive: o.Sensitive, Type: json.RawMessage(`"dynamic"`)}
		if kind, err := ctyjson.MarshalType(o.Value.Type()); err == nil {
			out.Type = kind
		}
		if !o.Sensitive && o.Value.IsWhollyKnown() {
			if b, err := ctyjson.Marshal(o.Value, o.Value.Type()); err == nil {
				out.Value = b
			}
		}
		all[o.Name] = out
	}
	return all
}

// Outputs is the line that ends an apply.
func (s *Stream) Outputs(outs []render.Output) string {
	return s.line(levelInfo, "outputs", fmt.Sprintf("Outputs: %d", len(outs)), map[string]any{"outputs": NewOutputs(outs)})
}
