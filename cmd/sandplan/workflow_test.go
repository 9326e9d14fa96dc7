package main

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// readYAML decodes a document into v by way of JSON.
func readYAML(t *testing.T, text string, v any) {
	t.Helper()
	typ, err := ctyyaml.Standard.ImpliedType([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	value, err := ctyyaml.Standard.Unmarshal([]byte(text), typ)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ctyjson.SimpleJSONValue{Value: value}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
}

// ciStep is a step of a workflow or of an action, as far as a runner's shell sees it.
type ciStep struct {
	Name, Uses, Run, If string
	Env                 map[string]string
}

type ciJob struct {
	Steps       []ciStep
	Script      []string
	AfterScript []string `json:"after_script"`
}

// TestActionsArePinned: a tag of somebody else's action can be moved, to where it reads this project's tokens.
func TestActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	found := 0
	for _, file := range []string{"../../action.yml", "../../docs/ci.md", "../../.github/workflows/ci.yml", "../../.github/workflows/release.yml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			found++
			if own := regexp.MustCompile(`^sandplan/sandplan@v\d+\.\d+\.\d+$`); !pinned.MatchString(m[1]) && !own.MatchString(m[1]) {
				t.Errorf("%s uses %s, which names no commit, or not its release", file, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d actions are used", found)
	}
}

// workflows are the two of docs/ci.md: GitHub's and GitLab's.
func workflows(t *testing.T) (github, gitlab map[string]ciJob) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/ci.md has %d workflows", len(blocks))
	}
	var hub struct{ Jobs map[string]ciJob }
	readYAML(t, blocks[0][1], &hub)
	var lab map[string]json.RawMessage
	readYAML(t, blocks[1][1], &lab)
	gitlab = map[string]ciJob{}
	for _, name := range []string{"review", "agents", "audit"} {
		var j ciJob
		if err := json.Unmarshal(lab[name], &j); err != nil || len(j.Script) == 0 || len(hub.Jobs[name].Steps) == 0 {
			t.Fatalf("the job %s: %v", name, err)
		}
		gitlab[name] = j
	}
	return hub.Jobs, gitlab
}
