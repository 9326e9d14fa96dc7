package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// TestForeignCommandsAreRefused: whoever seals, a container gets the command that was sealed for it alone, with
// its vendor's hosts and its phase's worktree.
func TestForeignCommandsAreRefused(t *testing.T) {
	dir := t.TempDir()
	config := strings.ReplaceAll(paperConfig, "WORKTREE", filepath.Join(dir, "src")) + `
vendor "other" {
  kind    = "custom"
  image   = "registry.example/agent:1"
  command = ["/agent"]
  host "elsewhere.example" {}
}
invocation "c" {
  vendor   = vendor.other
  phase    = phase.review
  worktree = "` + filepath.Join(dir, "src") + `"
}
`
	for name, text := range map[string]string{"sandplan.hcl": config, ".sandplan.lock.hcl": paperLock} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: dir, Cwd: dir, Version: "0.1.0"}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	must := func(invocation, runner string) policy.Command {
		c, err := sealed(spec, invocation, runner)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	inPhase := *spec
	inPhase.Invocations = append([]hclspec.Invocation(nil), spec.Invocations...)
	for i := range inPhase.Invocations {
		if inPhase.Invocations[i].Address == "invocation.a" {
			inPhase.Invocations[i].Phase.V = "fix"
		}
	}
	inFix, err := policy.Seal(&inPhase, "invocation.a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason        string
		agent, runner policy.Command // of invocation.a; a zero one is its own
		says          string
	}{
		{"its own", policy.Command{}, policy.Command{}, ""},
		{"another invocation's, with the same vendor", must("invocation.b", ""), policy.Command{}, "was made for invocation"},
		{"another vendor's, with another network", must("invocation.c", ""), policy.Command{}, "was made for"},
		{"of a phase that may write", inFix, policy.Command{}, "was made for phase fix, not for review"},
		{"a runner's", must("invocation.a", "test"), policy.Command{}, "was made for runner test"},
		{"an agent's as a runner's", policy.Command{}, must("invocation.a", ""), "was made for runner (none)"},
		{"another invocation's runner", policy.Command{}, must("invocation.c", "test"), "was made for invocation"},
	} {
		_, diags := NoEngine(dir).CompileSealed(t.Context(), spec, planner.Snapshot{}, func(s *hclspec.Spec, invocation, runner string) (policy.Command, error) {
			switch given := map[bool]policy.Command{true: c.agent, false: c.runner}[runner == ""]; {
			case invocation == "invocation.a" && given.Digest() != "":
				return given, nil
			default:
				return sealed(s, invocation, runner)
			}
		})
		if diags.HasErrors() != (c.says != "") || !strings.Contains(diags.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", c.reason, diags, c.says)
		}
	}
	_, diags = NoEngine(dir).CompileSealed(t.Context(), spec, planner.Snapshot{}, func(*hclspec.Spec, string, string) (policy.Command, error) { return policy.Command{}, nil })
	if !strings.Contains(diags.Error(), "nothing has sealed") {
		t.Errorf("a command that nobody has sealed: %v", diags)
	}
}
