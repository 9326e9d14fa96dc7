package proof

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandplan/sandplan/planner"
)

// TestSARIF holds the logs to the official schema. What escaped and what is not proven are results, and a
// verification that did not come to its end says so.
func TestSARIF(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	official, err := c.Compile("../audit/testdata/sarif-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	places := Places{
		Block: func(planner.Address) hcl.Range {
			return hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 7, Column: 1}}
		},
		URI: func(s string) string { return "ci/" + s },
	}
	for name, r := range reports() {
		text, err := SARIF("0.1.0-test", r, places)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = official.Validate(doc)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got struct {
			Runs []struct {
				Invocations []struct{ ExecutionSuccessful bool }
				Results     []struct {
					RuleID, Level string
					Locations     []struct {
						PhysicalLocation struct {
							ArtifactLocation struct{ URI string }
							Region           struct{ StartLine int }
						}
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		run := got.Runs[0]
		if run.Invocations[0].ExecutionSuccessful != (name == "whole") {
			t.Errorf("%s counts as whole: %v", name, run.Invocations[0].ExecutionSuccessful)
		}
		if name == "failed" {
			continue
		}
		if len(run.Results) != 2 || !strings.HasPrefix(run.Results[0].RuleID, "sandplan.escaped.") || run.Results[0].Level != "error" || run.Results[1].Level != "warning" {
			t.Errorf("%s: %+v, want what escaped and what is not proven", name, run.Results)
			continue
		}
		if at := run.Results[0].Locations[0].PhysicalLocation; at.ArtifactLocation.URI != "ci/sandplan.hcl" || at.Region.StartLine != 7 {
			t.Errorf("%s stands at %+v", name, at)
		}
	}
}
