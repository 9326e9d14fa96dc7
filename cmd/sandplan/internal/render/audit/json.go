package audit

import (
	"encoding/json"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/planner"
)

type document struct {
	FormatVersion string               `json:"format_version"`
	Version       string               `json:"sandplan_version"`
	Scope         scope                `json:"scope"`
	EngineID      string               `json:"engine_id"`
	Against       string               `json:"against"`
	Taken         string               `json:"snapshot_taken,omitempty"`
	Verdict       string               `json:"verdict"`
	ExitCode      int                  `json:"exit_code"`
	Counts        counts               `json:"counts"`
	Findings      []finding            `json:"findings"`
	Warnings      []string             `json:"warnings"`
	Errors        []machine.Diagnostic `json:"errors"`
}

type scope struct {
	Project   string `json:"project"`
	Workspace string `json:"workspace"`
}

type counts struct {
	Objects   int `json:"objects"`
	Conflicts int `json:"conflicts"`
	Drift     int `json:"drift"`
	Pending   int `json:"pending"`
	Ignored   int `json:"ignored"`
}

// finding is one finding. Values of a sensitive setting are left out.
type finding struct {
	Kind        string          `json:"kind"`
	Address     string          `json:"address"`
	Class       string          `json:"class"`
	Path        string          `json:"path,omitempty"`
	Attribute   string          `json:"attribute,omitempty"`
	Want        json.RawMessage `json:"want,omitempty"`
	Got         json.RawMessage `json:"got,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Text        string          `json:"text"`
	File        string          `json:"file,omitempty"`
	Line        int             `json:"line,omitempty"`
	Fingerprint string          `json:"fingerprint"`
}

// JSON is the audit as one document; docs/schema/drift.json says what it holds.
func JSON(a Audit) string {
	d := document{
		FormatVersion: machine.FormatVersion, Version: a.Version, Scope: scope(a.Scope), EngineID: a.EngineID, Against: "configuration", Taken: a.Taken,
		Verdict: a.verdict(), ExitCode: a.Code,
		Counts:   counts{len(a.Objects), a.count(planner.FindingConflict), a.count(planner.FindingDrift), a.count(planner.FindingPending), a.Ignored},
		Findings: []finding{}, Warnings: append([]string{}, a.Warnings...), Errors: []machine.Diagnostic{},
	}
	if a.Recorded {
		d.Against = "labels"
	}
	prints := a.fingerprints()
	for i, f := range a.Findings {
		one := finding{Kind: string(f.Kind), Address: string(f.Addr), Class: class(f), Path: f.Path(), Text: render.FindingText(f), Fingerprint: prints[i]}
		if at, ok := a.decl(f); ok {
			one.File, one.Line = a.URI(at.Filename), at.Start.Line
		}
		if m := f.Mismatch; m != nil {
			one.Attribute, one.Sensitive = m.Field.Attr, m.Field.Sensitive
			if !m.Field.Sensitive {
				one.Want, one.Got = value(m.Want), value(m.Got)
			}
		}
		d.Findings = append(d.Findings, one)
	}
	for _, e := range a.Errors {
		d.Errors = append(d.Errors, machine.NewDiagnostic(e, a.Sources))
	}
	return machine.Document(d)
}

// value is one side; an engine ID that the scope knows stands there as the address of its object.
func value(v planner.Value) json.RawMessage {
	if addr, isRef := v.Ref(); isRef {
		return json.RawMessage(planner.JSON(string(addr)).Text())
	}
	if v.Text() == "" {
		return nil
	}
	return json.RawMessage(v.Text())
}
