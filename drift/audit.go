package drift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// Codes that drift exits with.
const (
	CodeClean   = 0
	CodeError   = 1 // something could not be looked at
	CodeDrift   = 2 // drift or conflict
	CodePending = 3 // only pending
)

// Report is what an audit found.
type Report struct {
	// Findings are those that count, Ignored those that the caller asked to ignore; both sorted.
	Findings []planner.Finding
	Ignored  []planner.Finding
	// Conflicts, Drift, Pending and Unreadable count Findings. What could not be looked at is nothing that
	// somebody did, and nothing that may be ignored.
	Conflicts, Drift, Pending, Unreadable int
}

// Code is the exit code of the report.
func (r Report) Code() int {
	switch {
	case r.Conflicts+r.Drift > 0:
		return CodeDrift
	case r.Unreadable > 0:
		return CodeError
	case r.Pending > 0:
		return CodePending
	}
	return CodeClean
}

// Audit counts what a plan found. What is ignored is ignored for this report only: the gate knows no
// exceptions.
func Audit(p *planner.Plan, ignore ...Ignore) Report {
	var r Report
	unreadable := map[planner.Address]bool{} // whatever else is said of such an object follows from it
	for _, f := range p.Findings {
		unreadable[f.Addr] = unreadable[f.Addr] || f.Unreadable()
	}
	for _, f := range p.Findings {
		if slices.ContainsFunc(ignore, func(i Ignore) bool { return i.covers(f) }) {
			r.Ignored = append(r.Ignored, f)
			continue
		}
		r.Findings = append(r.Findings, f)
		switch f.Kind {
		case planner.FindingConflict:
			r.Conflicts++
		case planner.FindingDrift:
			if unreadable[f.Addr] {
				r.Unreadable++
				continue
			}
			r.Drift++
		case planner.FindingPending:
			r.Pending++
		}
	}
	return r
}

// Ignore names one field of one object, or of all objects that an address contains.
type Ignore struct {
	Addr planner.Address
	// Path is the field's path or the user's attribute.
	Path string
}

// ParseIgnore reads ADDRESS.FIELD. A field's path has dots of its own: the address is the longest prefix
// that is one.
func ParseIgnore(s string) (Ignore, error) {
	i := len(s)
	if _, err := planner.ParseAddress(s); err == nil || strings.HasSuffix(s, ".") {
		i = 0 // a whole object cannot be ignored
	}
	for i > 0 {
		if i = strings.LastIndexByte(s[:i], '.'); i <= 0 {
			break
		}
		if a, err := planner.ParseAddress(s[:i]); err == nil {
			return Ignore{Addr: a, Path: s[i+1:]}, nil
		}
	}
	return Ignore{}, fmt.Errorf("%q does not name a field of an object; write ADDRESS.FIELD, for example "+
		"invocation.login.agent.HostConfig.Memory", s)
}

// covers reports whether a finding is about the ignored field. Findings about whole objects and
// conflicts have no field, so they cannot be ignored.
func (i Ignore) covers(f planner.Finding) bool {
	if f.Path() == "" || f.Unreadable() || !i.Addr.Contains(f.Addr) {
		return false
	}
	return f.Path() == i.Path || f.Mismatch != nil && f.Mismatch.Field.Attr == i.Path
}
