package audit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/owenrumney/go-sarif/v2/sarif"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

const informationURI = "https://github.com/sandplan/sandplan"

// Log is what a SARIF 2.1.0 log of one run is made from.
type Log struct {
	Version string
	// Category tells runs apart whose alerts must not close each other's.
	Category string
	Rules    []Rule
	Results  []Result
	// Errors are why the run is not whole. A log without results must not read as clean then.
	Errors     []string
	Warnings   []string
	Code       int
	Properties map[string]string
	URI        func(filename string) string
}

// Result is one finding. At is the line that declares what it is about; without one the address alone says so.
type Result struct {
	Rule, Text, Address, Fingerprint string
	At                               hcl.Range
}

// SARIF is the audit as a log, each finding at the line that declares what differs.
func SARIF(a Audit) (string, error) {
	l := Log{Version: a.Version, Category: "sandplan/drift/" + a.Scope.String() + "/", Rules: rules(), Code: a.Code, URI: a.URI, Warnings: a.Warnings,
		Properties: map[string]string{"verdict": a.verdict(), "engineId": a.EngineID, "ignored": fmt.Sprint(a.Ignored)}}
	if a.Taken != "" {
		l.Properties["snapshotTaken"] = a.Taken
	}
	if a.verdict() == verdictError {
		l.Errors = a.errorTexts()
	}
	prints := a.fingerprints()
	for i, f := range a.Findings {
		at, _ := a.decl(f)
		l.Results = append(l.Results, Result{ruleOf(f), string(f.Addr) + ": " + render.FindingText(f), string(f.Addr), prints[i], at})
	}
	return l.SARIF()
}

// SARIF is the log as text.
func (l Log) SARIF() (string, error) {
	report, err := sarif.New(sarif.Version210)
	if err != nil {
		return "", fmt.Errorf("make a SARIF log: %w", err)
	}
	driver := sarif.NewVersionedDriver("sandplan", l.Version).WithInformationURI(informationURI)
	for _, r := range l.Rules {
		driver.AddRule(r.descriptor())
	}
	run := sarif.NewRun(*sarif.NewTool(driver))
	run.AutomationDetails = sarif.NewRunAutomationDetails().WithID(l.Category)
	run.ColumnKind = "unicodeCodePoints"
	run.Invocations = []*sarif.Invocation{l.invocation()}
	for _, r := range l.Results {
		run.Results = append(run.Results, l.result(r))
	}
	properties := sarif.NewPropertyBag()
	for _, name := range slices.Sorted(maps.Keys(l.Properties)) {
		properties.AddString(name, l.Properties[name])
	}
	run.AttachPropertyBag(properties)
	report.AddRun(run)
	var b bytes.Buffer
	if err := report.PrettyWrite(&b); err != nil {
		return "", fmt.Errorf("write a SARIF log: %w", err)
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

func (r Rule) descriptor() *sarif.ReportingDescriptor {
	d := sarif.NewRule(r.ID).WithName(r.Name).
		WithShortDescription(sarif.NewMultiformatMessageString(r.Short)).
		WithFullDescription(sarif.NewMultiformatMessageString(r.Help)).
		WithHelp(sarif.NewMultiformatMessageString(r.Help)).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(r.Level))
	if r.Severity != "" {
		d.WithProperties(sarif.Properties{"tags": []string{"security"}, "security-severity": r.Severity, "precision": "very-high"})
	}
	return d
}

func (l Log) invocation() *sarif.Invocation {
	whole := len(l.Errors) == 0
	inv := &sarif.Invocation{ExecutionSuccessful: &whole, ExitCode: &l.Code}
	for _, told := range []struct {
		level string
		texts []string
	}{{"error", l.Errors}, {"warning", l.Warnings}} {
		for _, text := range told.texts {
			inv.ToolExecutionNotifications = append(inv.ToolExecutionNotifications, &sarif.Notification{Level: told.level, Message: sarif.NewTextMessage(render.Clean(text))})
		}
	}
	return inv
}

func (l Log) result(r Result) *sarif.Result {
	index := slices.IndexFunc(l.Rules, func(rule Rule) bool { return rule.ID == r.Rule })
	res := sarif.NewRuleResult(r.Rule).WithRuleIndex(index).WithLevel(l.Rules[index].Level).WithMessage(sarif.NewTextMessage(r.Text))
	// Code scanning knows the first name only; the value is ours, so that no alert moves when a line does.
	res.PartialFingerprints = map[string]any{"primaryLocationLineHash": r.Fingerprint, "sandplanFinding/v1": r.Fingerprint}
	kind := "resource"
	location := sarif.NewLocation().WithLogicalLocations([]*sarif.LogicalLocation{{FullyQualifiedName: &r.Address, Name: &r.Address, Kind: &kind}})
	if r.At.Filename != "" && r.At.Start.Line > 0 {
		location.WithPhysicalLocation(sarif.NewPhysicalLocation().
			WithArtifactLocation(sarif.NewArtifactLocation().WithUri(l.URI(r.At.Filename)).WithUriBaseId("%SRCROOT%")).
			WithRegion(region(r.At)))
	}
	return res.WithLocations([]*sarif.Location{location})
}

func region(at hcl.Range) *sarif.Region {
	r := sarif.NewRegion().WithStartLine(at.Start.Line)
	if at.Start.Column > 0 {
		r.WithStartColumn(at.Start.Column)
	}
	if at.End.Line >= at.Start.Line && at.End.Column > 0 {
		r.WithEndLine(at.End.Line).WithEndColumn(at.End.Column)
	}
	return r
}
