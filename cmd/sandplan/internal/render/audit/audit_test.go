package audit

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandplan/sandplan/planner"
)

const agent = planner.Address(`invocation.login["a]]> & <b> \"c\""].agent`)

func at(line int) hcl.Range {
	return hcl.Range{Filename: "sub dir/sandplan.hcl", Start: hcl.Pos{Line: line, Column: 3}, End: hcl.Pos{Line: line, Column: 9}}
}

func mismatch(kind planner.FindingKind, class planner.Class, path string, line int, want, got any) planner.Finding {
	decl := at(line)
	f := planner.Finding{Kind: kind, Addr: agent, Decl: decl}
	f.Mismatch = &planner.Mismatch{Field: planner.Field{Path: path, Attr: "limits.x", Class: class, Decl: &decl}, Want: planner.JSON(want), Got: planner.JSON(got)}
	return f
}

// everything is an audit with a finding of each kind and class, and names that attack what reads them.
func everything() Audit {
	secret := mismatch(planner.FindingDrift, planner.ClassReplace, "Config.Secret", 9, "hunter2", "hunter3")
	secret.Mismatch.Field.Sensitive = true
	return Audit{
		Version: "0.1.0-test", Scope: planner.Scope{Project: "demo", Workspace: "default"}, EngineID: "ENGINE", Code: 2,
		Objects: []Object{{Addr: planner.AddrUplink, Kind: planner.KindUplink}, {Addr: agent, Kind: planner.KindAgent, Title: "vendor.x, phase.y"}},
		URI:     func(name string) string { return strings.ReplaceAll(name, " ", "%20") },
		Findings: []planner.Finding{
			{Kind: planner.FindingConflict, Addr: planner.AddrUplink, Text: "is somebody else's"},
			mismatch(planner.FindingDrift, planner.ClassReplace, "HostConfig.Memory", 4, 1, 2),
			mismatch(planner.FindingDrift, planner.ClassSet, "Bridge.arp_ignore", 4, "1", "0"),
			mismatch(planner.FindingDrift, planner.ClassAssigned, "Mac", 4, "a MAC address", "\x1b[2J<script>"),
			secret,
			{Kind: planner.FindingDrift, Addr: agent, Decl: at(3), Extra: &planner.Extra{Path: `Networks["x"]`, Detail: "a\ufffe]]>\u202e\x00 endpoint"}},
			{Kind: planner.FindingDrift, Addr: agent, Decl: at(3), Text: "was started outside a run"},
			{Kind: planner.FindingDrift, Addr: "invocation.gone.network", Text: "is there twice: x (0123456789ab) carries its labels as well"},
			{Kind: planner.FindingDrift, Addr: "invocation.gone.network", Text: "is there twice: x (ba9876543210) carries its labels as well"},
			mismatch(planner.FindingPending, planner.ClassReplace, "HostConfig.PidsLimit", 5, 10, 20),
		},
	}
}

func failed() Audit {
	return Audit{Version: "0.1.0-test", Scope: planner.Scope{Project: "demo", Workspace: "default"}, Code: 1, URI: func(s string) string { return s },
		Errors: hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot reach the engine", Detail: "It does not answer."}}}
}

func clean() Audit {
	return Audit{Version: "0.1.0-test", Scope: planner.Scope{Project: "demo", Workspace: "default"}, URI: func(s string) string { return s },
		Objects: []Object{{Addr: planner.AddrUplink, Kind: planner.KindUplink}}}
}

func schema(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSARIF(t *testing.T, a Audit) string {
	t.Helper()
	text, err := SARIF(a)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSARIF holds the logs to the official schema, and the schema to something that it must refuse.
func TestSARIF(t *testing.T) {
	official := schema(t, "testdata/sarif-2.1.0.json")
	validate := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return official.Validate(v)
	}
	for name, a := range map[string]Audit{"everything": everything(), "failed": failed(), "clean": clean()} {
		if err := validate(mustSARIF(t, a)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if validate(strings.Replace(mustSARIF(t, everything()), `"startLine": 4`, `"startLine": 0`, 1)) == nil {
		t.Error("the schema lets line 0 pass: it proves nothing")
	}
}

type log struct {
	Runs []struct {
		Tool struct {
			Driver struct {
				Rules []struct{ ID string }
			}
		}
		Invocations []struct {
			ExecutionSuccessful        bool
			ToolExecutionNotifications []struct{ Message struct{ Text string } }
		}
		Results []struct {
			RuleID              string
			RuleIndex           int
			Level               string
			Message             struct{ Text string }
			PartialFingerprints map[string]string
			Locations           []struct {
				PhysicalLocation *struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine int }
				}
			}
		}
	}
}

func parse(t *testing.T, text string) log {
	t.Helper()
	var l log
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestResults: the line that declares a setting, a rule for each class, and nothing of a secret.
func TestResults(t *testing.T) {
	text := mustSARIF(t, everything())
	run := parse(t, text).Runs[0]
	var rules []string
	for _, r := range run.Results {
		rules = append(rules, r.RuleID)
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("%s points to rule %s", r.RuleID, run.Tool.Driver.Rules[r.RuleIndex].ID)
		}
	}
	want := []string{"sandplan.conflict", "sandplan.drift.replace", "sandplan.drift.set", "sandplan.drift.assigned", "sandplan.drift.replace",
		"sandplan.drift.extra", "sandplan.drift.object", "sandplan.drift.object", "sandplan.drift.object", "sandplan.pending"}
	if !slices.Equal(rules, want) {
		t.Errorf("rules %q, want %q", rules, want)
	}
	if p := run.Results[1].Locations[0].PhysicalLocation; p == nil || p.ArtifactLocation.URI != "sub%20dir/sandplan.hcl" || p.Region.StartLine != 4 {
		t.Errorf("the changed limit stands at %+v", p)
	}
	if run.Results[9].Level != "warning" || run.Results[1].Level != "error" {
		t.Error("what is pending only is a warning, and drift is an error")
	}
	junit, err := JUnit(everything())
	if err != nil {
		t.Fatal(err)
	}
	for format, text := range map[string]string{"SARIF": text, "JUnit": junit, "JSON": JSON(everything())} {
		if strings.Contains(text, "hunter") {
			t.Errorf("%s shows a sensitive value", format)
		}
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\u202e") {
			t.Errorf("%s holds a character that acts on who reads it", format)
		}
	}
}

// TestFingerprints: an alert stays the same one while lines move and values change, and two findings are never
// one.
func TestFingerprints(t *testing.T) {
	prints := everything().fingerprints()
	slices.Sort(prints)
	if n := len(slices.Compact(slices.Clone(prints))); n != len(everything().Findings) {
		t.Errorf("%d fingerprints for %d findings", n, len(everything().Findings))
	}
	moved := everything()
	for i := range moved.Findings {
		f := &moved.Findings[i]
		f.Decl = at(99)
		if f.Mismatch != nil {
			m := *f.Mismatch
			m.Got, m.Field.Decl, f.Mismatch = planner.JSON("something else"), &f.Decl, &m
		}
	}
	moved.EngineID, moved.Version = "ANOTHER", "0.2.0"
	moved.Findings[7].Text = "is there twice: x (cafecafecafe) carries its labels as well"
	again := moved.fingerprints()
	slices.Sort(again)
	if !slices.Equal(prints, again) {
		t.Errorf("fingerprints moved:\n%q\n%q", prints, again)
	}
	other := everything()
	other.Scope.Workspace = "other"
	if slices.Contains(other.fingerprints(), prints[0]) {
		t.Error("the same finding in another workspace has the same fingerprint")
	}
}

// TestFailedIsNeverClean: whoever looks at a report alone must see that there was no audit.
func TestFailedIsNeverClean(t *testing.T) {
	run := parse(t, mustSARIF(t, failed())).Runs[0]
	if len(run.Invocations) != 1 || run.Invocations[0].ExecutionSuccessful || len(run.Invocations[0].ToolExecutionNotifications) != 1 {
		t.Errorf("SARIF: %+v", run.Invocations)
	}
	if run := parse(t, mustSARIF(t, clean())).Runs[0]; !run.Invocations[0].ExecutionSuccessful || len(run.Results) != 0 {
		t.Errorf("SARIF of a clean scope: %+v", run)
	}
	// What could not be verified is told, and is no failure.
	warned := clean()
	warned.Warnings = []string{"the engine shows X, which nobody knows"}
	if inv := parse(t, mustSARIF(t, warned)).Runs[0].Invocations[0]; !inv.ExecutionSuccessful || len(inv.ToolExecutionNotifications) != 1 {
		t.Errorf("SARIF with a warning: %+v", inv)
	}
	text, err := JUnit(failed())
	if err != nil || !strings.Contains(text, `errors="1"`) || !strings.Contains(text, "Cannot reach the engine") {
		t.Errorf("JUnit: %s (%v)", text, err)
	}
	for verdict, a := range map[string]Audit{"error": failed(), "clean": clean(), "drift": everything()} {
		if doc := JSON(a); !strings.Contains(doc, `"verdict":"`+verdict+`"`) {
			t.Errorf("want the verdict %s: %s", verdict, doc)
		}
	}
	// One object that cannot be looked at: there are findings, and the audit is not whole all the same.
	half := everything()
	half.Code = 1
	if run := parse(t, mustSARIF(t, half)).Runs[0]; run.Invocations[0].ExecutionSuccessful || !strings.Contains(JSON(half), `"verdict":"error"`) {
		t.Error("an audit with an object that cannot be read counts as whole")
	}
}

// TestSameBytes: the same findings give the same bytes.
func TestSameBytes(t *testing.T) {
	all := func() string {
		junit, err := JUnit(everything())
		if err != nil {
			t.Fatal(err)
		}
		return junit + JSON(everything()) + mustSARIF(t, everything())
	}
	first := all()
	for range 3 {
		if all() != first {
			t.Fatal("two reports of the same audit differ")
		}
	}
}

// TestDriftSchema holds the document to docs/schema.
func TestDriftSchema(t *testing.T) {
	s := schema(t, "../../../../../docs/schema/drift.json")
	for name, a := range map[string]Audit{"everything": everything(), "failed": failed(), "clean": clean()} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(JSON(a)))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJUnit holds the reports to the schema that Jenkins reads them with: by xmllint where it is installed, and
// always by the names that the schema knows.
func TestJUnit(t *testing.T) {
	elements, attributes := known(t)
	for name, a := range map[string]Audit{"everything": everything(), "failed": failed(), "clean": clean()} {
		text, err := JUnit(a)
		if err != nil {
			t.Fatal(err)
		}
		file := t.TempDir() + "/report.xml"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if xmllint, err := exec.LookPath("xmllint"); err == nil {
			if out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", "testdata/junit-10.xsd", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
			}
		}
		for dec := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if !elements[start.Name.Local] {
				t.Errorf("%s: the schema knows no %s", name, start.Name.Local)
			}
			for _, attr := range start.Attr {
				if !attributes[start.Name.Local+"/"+attr.Name.Local] {
					t.Errorf("%s: the schema knows no %s of %s", name, attr.Name.Local, start.Name.Local)
				}
			}
		}
	}
	text, _ := JUnit(everything())
	if strings.Contains(text, "<skipped") {
		t.Errorf("an object that drifted and is pending is a failure: %s", text)
	}
	if n := strings.Count(text, "<failure "); n != 3 {
		t.Errorf("%d failures, want one for each object:\n%s", n, text)
	}
}

// known are the elements of the schema, and their attributes.
func known(t *testing.T) (elements, attributes map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/junit-10.xsd")
	if err != nil {
		t.Fatal(err)
	}
	elements, attributes = map[string]bool{}, map[string]bool{}
	element := ""
	for dec := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, attr := range start.Attr {
			switch fmt.Sprint(start.Name.Local, " ", attr.Name.Local) {
			case "element name":
				element = attr.Value
				elements[element] = true
			case "attribute name":
				attributes[element+"/"+attr.Value] = true
			}
		}
	}
	if len(elements) < 10 || len(attributes) < 20 {
		t.Fatalf("read %d elements and %d attributes from the schema", len(elements), len(attributes))
	}
	return elements, attributes
}
