package hclspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// TestExamples holds that each example validates, plans with no more than a worktree given, and is in
// canonical layout.
func TestExamples(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob("../examples/*.hcl")
	count := 0
	for _, p := range paths {
		if strings.HasSuffix(p, ".lock.hcl") || strings.HasSuffix(p, ".spvars.hcl") {
			continue
		}
		count++
		src, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if string(hclwrite.Format(src)) != string(src) {
			t.Errorf("%s is not formatted", p)
		}
		vars := Vars{Env: []string{"SANDPLAN_VAR_worktree=/srv/worktree"}}
		for _, v := range []Vars{{Unknown: true}, vars} {
			spec, diags := Load(Source{Path: p, Cwd: cwd, Version: "0.1.0"}, v, testCatalog)
			if len(diags) > 0 {
				t.Errorf("%s (validate: %v):\n%s", p, v.Unknown, details(diags))
				continue
			}
			if v.Unknown {
				continue
			}
			if _, diags := spec.EvalOutputs(nil); len(diags) > 0 {
				t.Errorf("%s: outputs:\n%s", p, details(diags))
			}
			if diags := spec.EvalChecks(nil); len(diags) > 0 {
				t.Errorf("%s: checks:\n%s", p, details(diags))
			}
		}
	}
	if count < 4 {
		t.Errorf("%d examples found, want at least 4", count)
	}
}
