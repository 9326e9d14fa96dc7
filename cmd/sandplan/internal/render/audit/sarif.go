package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/owenrumney/go-sarif/v2/sarif"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

const informationURI = "https://github.com/sandplan/sandplan"

// SARIF is the audit as a SARIF 2.1.0 log with one run, each finding at the line that declares what differs.
func SARIF(a Audit) (string, error) {
	report, err := sarif.New(sarif.Version210)
	if err != nil {
		return "", fmt.Errorf("make a SARIF log: %w", err)
	}
	driver := sarif.NewVersionedDriver("sandplan", a.Version).WithInformationURI(informationURI)
	for _, r := range rules() {
		driver.AddRule(r.descriptor())
	}
	run := sarif.NewRun(*sarif.NewTool(driver))
	// One category for each scope: the alerts of one must not close those of another.
	run.AutomationDetails = sarif.NewRunAutomationDetails().WithID("sandplan/drift/" + a.Scope.String() + "/")
	run.ColumnKind = "unicodeCodePoints"
	run.Invocations = []*sarif.Invocation{a.invocation()}
	prints := a.fingerprints()
	for i, f := range a.Findings {
		at, known := a.decl(f)
		text := string(f.Addr) + ": " + render.FindingText(f)
		run.Results = append(run.Results, result(a, ruleOf(f), text, string(f.Addr), prints[i], at, known))
	}
	properties := sarif.NewPropertyBag()
	properties.AddString("verdict", a.verdict())
	properties.AddString("engineId", a.EngineID)
	properties.AddInteger("ignored", a.Ignored)
	if a.Taken != "" {
		properties.AddString("snapshotTaken", a.Taken)
	}
	run.AttachPropertyBag(properties)
	report.AddRun(run)
	var b bytes.Buffer
	if err := report.PrettyWrite(&b); err != nil {
		return "", fmt.Errorf("write a SARIF log: %w", err)
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

func (r rule) descriptor() *sarif.ReportingDescriptor {
	d := sarif.NewRule(r.id).WithName(r.name).
		WithShortDescription(sarif.NewMultiformatMessageString(r.short)).
		WithFullDescription(sarif.NewMultiformatMessageString(r.help)).
		WithHelp(sarif.NewMultiformatMessageString(r.help)).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(r.level))
	if r.severity != "" {
		d.WithProperties(sarif.Properties{"tags": []string{"security", "drift"}, "security-severity": r.severity, "precision": "very-high"})
	}
	return d
}

// invocation says whether the audit is whole. A log without results of one that is not must not read as clean.
func (a Audit) invocation() *sarif.Invocation {
	whole := a.verdict() != verdictError
	inv := &sarif.Invocation{ExecutionSuccessful: &whole, ExitCode: &a.Code}
	for _, text := range a.errorTexts() {
		inv.ToolExecutionNotifications = append(inv.ToolExecutionNotifications, &sarif.Notification{
			Level: "error", Message: sarif.NewTextMessage(text), Descriptor: sarif.NewReportingDescriptorReference().WithId("sandplan.error"),
		})
	}
	return inv
}

func result(a Audit, id, text, address, fingerprint string, at hcl.Range, known bool) *sarif.Result {
	index := slices.IndexFunc(rules(), func(r rule) bool { return r.id == id })
	res := sarif.NewRuleResult(id).WithRuleIndex(index).WithLevel(rules()[index].level).WithMessage(sarif.NewTextMessage(text))
	// Code scanning knows the first name only; the value is ours, so that no alert moves when a line does.
	res.PartialFingerprints = map[string]any{"primaryLocationLineHash": fingerprint, "sandplanFinding/v1": fingerprint}
	kind := "resource"
	location := sarif.NewLocation().WithLogicalLocations([]*sarif.LogicalLocation{{FullyQualifiedName: &address, Name: &address, Kind: &kind}})
	if known {
		location.WithPhysicalLocation(sarif.NewPhysicalLocation().
			WithArtifactLocation(sarif.NewArtifactLocation().WithUri(a.URI(at.Filename)).WithUriBaseId("%SRCROOT%")).
			WithRegion(region(at)))
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
