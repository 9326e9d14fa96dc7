package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/audit"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// Places say where what was verified is declared.
type Places struct {
	Block func(planner.Address) hcl.Range
	URI   func(filename string) string
}

// SARIF is the report as a log for code scanning: a rule for each attempt, and a result at the block of the
// invocation for each that got out or is not proven. What held, and what is moot, is no result.
func SARIF(version string, r verify.Report, places Places) (string, error) {
	// The workspace of a verification is another one each time.
	l := audit.Log{Version: version, Category: "sandplan/verify/" + r.Scope.Project + "/", Code: r.Code(), URI: places.URI,
		Properties: map[string]string{"engineVersion": r.Engine}}
	for _, a := range probe.Attempts() {
		help := fmt.Sprintf("The attempt: %s. It would be seen at: %s. Its control: %s. It comes from: %s.", a.What, a.Where, a.Control, a.Source)
		l.Rules = append(l.Rules,
			audit.Rule{ID: "sandplan.escaped." + a.ID, Name: "Escaped", Short: "An agent can get out: " + a.What, Help: help, Level: "error", Severity: "9.5"},
			audit.Rule{ID: "sandplan.unproven." + a.ID, Name: "NotProven", Short: "Not proven to be held: " + a.What, Help: help, Level: "warning"})
	}
	for _, s := range r.Subjects {
		for _, f := range s.Findings {
			if f.Status == verify.Escaped || f.Status == verify.Unproven {
				l.Results = append(l.Results, found(r.Scope.Project, s.Addr, f, places.Block(s.Addr)))
			}
		}
		if s.Decision != nil {
			l.Errors = append(l.Errors, render.Clean(string(s.Addr)+": "+s.Decision.Error()))
		}
	}
	if r.Decision != nil {
		l.Errors = append(l.Errors, render.Clean(r.Decision.Error()))
	}
	if r.Unsettled != nil {
		l.Errors = append(l.Errors, render.Clean(r.Unsettled.Error()))
	}
	return l.SARIF()
}

func found(project string, addr planner.Address, f verify.Finding, at hcl.Range) audit.Result {
	verb := map[verify.Status]string{verify.Escaped: "got out", verify.Unproven: "is not proven to be held"}[f.Status]
	sum := sha256.Sum256([]byte(strings.Join([]string{"sandplan/1", project, string(addr), string(f.Status), f.ID}, "\x00")))
	return audit.Result{Rule: "sandplan." + string(f.Status) + "." + f.ID, Address: string(addr), At: at, Fingerprint: hex.EncodeToString(sum[:16]) + ":1",
		Text: render.Clean(fmt.Sprintf("%s: what tries to %s %s: %s", addr, f.What, verb, f.Detail))}
}
