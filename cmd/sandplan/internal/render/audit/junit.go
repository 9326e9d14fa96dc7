package audit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// JUnit is the audit as a test report: a suite for each invocation and one for what they share, a test for each
// object. Drift and conflicts are failures; what is pending only is a skipped test; an audit that is not
// whole has an error.
func JUnit(a Audit) (string, error) {
	report := junit.Testsuites{Name: "sandplan drift " + a.Scope.String(), Time: "0"}
	suites := map[string]*junit.Testsuite{}
	var order []string
	suite := func(name string) *junit.Testsuite {
		if suites[name] == nil {
			suites[name] = &junit.Testsuite{Name: name, Time: "0"}
			order = append(order, name)
		}
		return suites[name]
	}
	if texts := a.errorTexts(); len(texts) > 0 {
		suite("audit").AddTestcase(junit.Testcase{Name: "audit", Classname: a.Scope.String(), Time: "0",
			Error: &junit.Result{Message: texts[0], Type: "error", Data: printable(strings.Join(texts, "\n"))}})
	}
	found := map[planner.Address][]planner.Finding{}
	for _, f := range a.Findings {
		found[f.Addr] = append(found[f.Addr], f)
	}
	for _, o := range a.cases(found) {
		suite(suiteOf(o.Addr)).AddTestcase(a.testcase(o, found[o.Addr]))
	}
	for i, name := range order {
		suites[name].ID = i
		report.AddSuite(*suites[name])
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := report.WriteXML(&b); err != nil {
		return "", fmt.Errorf("write a JUnit report: %w", err)
	}
	return b.String(), nil
}

// cases are the objects that were looked at, and what is found and not there.
func (a Audit) cases(found map[planner.Address][]planner.Finding) []Object {
	known := map[planner.Address]Object{}
	for _, o := range a.Objects {
		known[o.Addr] = o
	}
	for addr := range found {
		if _, ok := known[addr]; !ok {
			known[addr] = Object{Addr: addr}
		}
	}
	addrs := make([]planner.Address, 0, len(known))
	for addr := range known {
		addrs = append(addrs, addr)
	}
	planner.SortAddresses(addrs)
	out := make([]Object, len(addrs))
	for i, addr := range addrs {
		out[i] = known[addr]
	}
	return out
}

func suiteOf(a planner.Address) string {
	if inv := a.Invocation(); inv != "" {
		return string(inv)
	}
	return "shared"
}

func (a Audit) testcase(o Object, found []planner.Finding) junit.Testcase {
	tc := junit.Testcase{Name: printable(string(o.Addr)), Classname: a.Scope.String(), Time: "0"}
	var failures, pending []string
	kind := ""
	for _, f := range found {
		text := render.FindingText(f)
		if at, ok := a.decl(f); ok {
			text += fmt.Sprintf(" (%s:%d)", a.URI(at.Filename), at.Start.Line)
		}
		if f.Kind == planner.FindingPending {
			pending = append(pending, printable(text))
			continue
		}
		if kind == "" {
			kind = string(f.Kind)
		}
		failures = append(failures, printable(text))
	}
	switch {
	case len(failures) > 0:
		tc.Failure = &junit.Result{Message: failures[0], Type: kind, Data: strings.Join(append(failures, pending...), "\n")}
	case len(pending) > 0:
		tc.Skipped = &junit.Result{Message: "pending: " + pending[0], Type: "pending", Data: strings.Join(pending, "\n")}
	}
	return tc
}

// printable leaves out what XML 1.0 cannot hold at all, not even escaped. Control characters are spelled out by
// then; what is left are surrogates and the two highest characters of the first plane.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF || r < 0x20 && r != '\t' && r != '\n' && r != '\r' {
			return '\uFFFD'
		}
		return r
	}, s)
}
