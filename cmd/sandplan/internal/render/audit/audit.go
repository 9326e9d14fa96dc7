package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// Audit is what was found in one scope.
type Audit struct {
	Version  string
	Scope    planner.Scope
	EngineID string
	// Recorded says that objects were held against their own labels, and not against a configuration.
	Recorded bool
	// Taken is when the engine was looked at, where that was another day: an audit of a snapshot.
	Taken string
	// Objects are all that were looked at, sorted.
	Objects  []Object
	Findings []planner.Finding
	// Ignored is the number of findings that the caller asked to leave out.
	Ignored  int
	Warnings []string
	// Errors are why the audit is not whole. It is never clean then.
	Errors hcl.Diagnostics
	// Code is the exit code.
	Code int
	// Sources are the files that ranges point into, and URI names one of them relative to its repository.
	Sources map[string][]byte
	URI     func(filename string) string
	// Block is where the configuration as a whole is declared, for findings that have no line of their own.
	Block hcl.Range
}

// Object is one object of the scope.
type Object struct {
	Addr  planner.Address
	Kind  planner.Kind
	Title string
}

// verdicts of an audit, in its own words.
const (
	verdictClean   = "clean"
	verdictDrift   = "drift"
	verdictPending = "pending"
	verdictError   = "error"
)

func (a Audit) verdict() string {
	switch {
	case len(a.Errors) > 0 || a.Code == 1:
		return verdictError
	case len(a.Findings) == 0:
		return verdictClean
	}
	for _, f := range a.Findings {
		if f.Kind != planner.FindingPending {
			return verdictDrift
		}
	}
	return verdictPending
}

func (a Audit) count(k planner.FindingKind) int {
	n := 0
	for _, f := range a.Findings {
		if f.Kind == k {
			n++
		}
	}
	return n
}

// decl is the line of a finding; ok is false where nothing declares it.
func (a Audit) decl(f planner.Finding) (hcl.Range, bool) {
	for _, r := range []hcl.Range{f.Decl, a.Block} {
		if r.Filename != "" && r.Start.Line > 0 {
			return r, true
		}
	}
	return hcl.Range{}, false
}

// engineIDs are what differs between two objects of one declaration.
var engineIDs = regexp.MustCompile(`[0-9a-f]{12,64}`)

// Fingerprint identifies a finding over time: what is wrong with which setting of which object of which scope,
// and neither the values, nor the line, nor the engine.
func Fingerprint(s planner.Scope, f planner.Finding) string {
	what := f.Path()
	if what == "" {
		what = engineIDs.ReplaceAllString(f.Text, "…")
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"sandplan/1", s.Project, s.Workspace, string(f.Kind), string(f.Addr), what}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// fingerprints are those of all findings; what would be the same twice is numbered.
func (a Audit) fingerprints() []string {
	seen := map[string]int{}
	out := make([]string, len(a.Findings))
	for i, f := range a.Findings {
		fp := Fingerprint(a.Scope, f)
		seen[fp]++
		out[i] = fp + ":" + strconv.Itoa(seen[fp])
	}
	return out
}

// class is the rule that a finding breaks.
func class(f planner.Finding) string {
	switch {
	case f.Mismatch != nil:
		return f.Mismatch.Field.Class.String()
	case f.Extra != nil:
		return "extra"
	}
	return "object"
}

// errorTexts are the errors of an audit, as sentences.
func (a Audit) errorTexts() []string {
	var out []string
	for _, d := range a.Errors {
		text := d.Summary
		if d.Detail != "" {
			text += ": " + d.Detail
		}
		out = append(out, render.Clean(strings.Join(strings.Fields(text), " ")))
	}
	if len(out) == 0 && a.Code == 1 {
		out = append(out, "something could not be looked at; see the findings")
	}
	return out
}
