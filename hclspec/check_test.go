package hclspec

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCheckResults(t *testing.T) {
	dir := t.TempDir()
	const src = `sandplan {
  project = "p"
}

vendor "local" {
  kind    = "custom"
  image   = "agent:1"
  command = ["/agent"]
  host "vendor.example" {}
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = "/work"
}

check "holds" {
  assert {
    condition     = 1 < 2
    error_message = "Never."
  }
}

check "fails" {
  assert {
    condition     = invocation.one.agent_id != ""
    error_message = "Not known."
  }
  assert {
    condition     = 1 > 2
    error_message = "It is wrong."
  }
}

check "later" {
  assert {
    condition     = invocation.one.agent_id != ""
    error_message = "Not known."
  }
}
`
	if err := os.WriteFile(filepath.Join(dir, "sandplan.hcl"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	s, diags := Load(Source{Path: dir, Cwd: dir}, Vars{}, Catalog{Phases: map[string]CatalogPhase{"planning": {Tools: []string{"read"}}}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := []CheckResult{
		{Name: "fails", State: CheckFail, Problems: []string{"It is wrong."}},
		{Name: "holds", State: CheckPass},
		{Name: "later", State: CheckUnknown},
	}
	if diff := cmp.Diff(want, s.CheckResults(nil), cmpopts.IgnoreFields(CheckResult{}, "Range")); diff != "" {
		t.Error(diff)
	}
	live := map[string]Live{"invocation.one": {AgentID: "0123"}}
	if got := s.CheckResults(live)[2]; got.State != CheckPass {
		t.Errorf("once it is known: %+v", got)
	}
}
