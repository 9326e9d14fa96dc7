package proof

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// report has a finding of each status, and text that attacks what reads it.
func report() verify.Report {
	s := verify.Subject{Addr: `invocation.login["a]]> & <b>"]`, Took: 3400 * time.Millisecond}
	for i, a := range probe.Attempts() {
		status := []verify.Status{verify.Held, verify.Escaped, verify.Unproven, verify.Moot}[min(i, 3)]
		s.Findings = append(s.Findings, verify.Finding{Attempt: a, Status: status, Detail: "x\x1b[2J\ufffe]]><y>", Proof: "it succeeded"})
	}
	return verify.Report{Scope: planner.Scope{Project: "demo", Workspace: "verify-1a2b3c4d"}, Engine: "20.10.24", Took: 9 * time.Second, Subjects: []verify.Subject{s}}
}

func reports() map[string]verify.Report {
	unfinished := report()
	unfinished.Subjects[0].Decision = &launch.Decision{Code: launch.CodeDrift, Reason: "the sandbox changed while it ran"}
	return map[string]verify.Report{
		"whole": report(), "unfinished": unfinished,
		"failed": {Scope: planner.Scope{Project: "demo", Workspace: "verify-1a2b3c4d"}, Decision: &launch.Decision{Code: launch.CodeRefused, Reason: "it cannot be verified"}, Unsettled: errors.New("a network is left")},
	}
}

func TestJSONHoldsToTheSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../../../../docs/schema/verify.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range reports() {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(JSON("0.1.0-test", r)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var got struct {
		ExitCode int `json:"exit_code"`
		Subjects []struct {
			Counts map[string]int
		}
	}
	if err := json.Unmarshal([]byte(JSON("", report())), &got); err != nil {
		t.Fatal(err)
	}
	if got.ExitCode != 121 || got.Subjects[0].Counts["escaped"] != 1 || got.Subjects[0].Counts["moot"] != len(probe.Attempts())-3 {
		t.Errorf("the document says %+v", got)
	}
}

func TestJUnit(t *testing.T) {
	for name, r := range reports() {
		text := JUnit(r)
		var got suites
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s is no XML: %v\n%s", name, err, text)
			continue
		}
		cases := 0
		for _, s := range got.Suites {
			cases += len(s.Cases)
		}
		if got.Tests != cases || strings.ContainsAny(text, "\x1b\ufffe") {
			t.Errorf("%s: %d tests, %d cases, and the text is %q…", name, got.Tests, cases, text[:80])
		}
		if failed := got.Failures+got.Errors > 0; failed != (r.Code() != 0) {
			t.Errorf("%s: %d failures and %d errors at exit code %d", name, got.Failures, got.Errors, r.Code())
		}
	}
	one := reports()["whole"]
	var got suites
	if err := xml.Unmarshal([]byte(JUnit(one)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Failures != 1 || got.Errors != 1 || got.Skipped != len(probe.Attempts())-3 {
		t.Errorf("%d failures, %d errors, %d skipped", got.Failures, got.Errors, got.Skipped)
	}
}
