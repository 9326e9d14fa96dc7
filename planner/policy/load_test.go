package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// load reads a configuration as validate does.
func load(t *testing.T, path string) (*hclspec.Spec, hcl.Diagnostics) {
	t.Helper()
	return hclspec.Load(hclspec.Source{Path: path, Cwd: filepath.Dir(path)}, hclspec.Vars{Unknown: true}, Catalog())
}

// sound is a configuration without a mistake; cases replace parts of it.
const sound = `
sandplan {
  project = "p"
}
vendor "claude" {
  image = "agents/claude:1"
  #claude
  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "T"
  }
}
vendor "codex" {
  image = "agents/codex:1"
  #codex
  credential "OPENAI_API_KEY" {
    source_env = "T"
  }
}
vendor "local" {
  kind    = "custom"
  image   = "agents/local:1"
  command = ["/agent"]
  #local
  host "llm.example" {
    addresses = ["10.1.2.3"]
  }
}
phase "mine" {
  base = "fix"
  #mine
}
phase "plan" {
  base = "planning"
  #plan
}
invocation "a" {
  vendor   = vendor.claude
  phase    = phase.mine
  worktree = "/tmp/w"
  #a
}
invocation "b" {
  vendor   = vendor.codex
  phase    = phase.mine
  worktree = "/tmp/w"
  #b
}
invocation "c" {
  vendor   = vendor.local
  phase    = phase.plan
  worktree = "/tmp/w"
  #inv-c
}
`

// TestLoadingAndCheckingTogether: every mistake is told of, and told of once; what neither of the two
// reports can be sealed.
func TestLoadingAndCheckingTogether(t *testing.T) {
	tests := []struct {
		name    string
		replace [2]string
		summary string // "" when loading reports it, under a name of its own
	}{
		{"nothing", [2]string{"", ""}, "none"},
		{"tools beyond the ceiling", [2]string{"#plan", `tools = ["edit"]`}, ""},
		{"writable beyond the ceiling", [2]string{"#plan", `writable = true`}, ""},
		{"runner in planning", [2]string{"#plan", "runner \"t\" {\n argv = [\"t\"]\n image = \"i:1\"\n }"}, ""},
		{"runner as one word", [2]string{"#mine", "runner \"t\" {\n argv = [\"npm test\"]\n image = \"i:1\"\n }"}, ""},
		{"unknown base", [2]string{`base = "planning"`, `base = "plan"`}, ""},
		{"unknown kind", [2]string{`"custom"`, `"customs"`}, ""},
		{"model that is a flag", [2]string{"#claude", `model = "--x"`}, ""},
		{"command on a built-in vendor", [2]string{"#claude", `command = ["/x"]`}, ""},
		{"model on a custom vendor", [2]string{"#local", `model = "x"`}, ""},
		{"version on a custom vendor", [2]string{"#local", `version = "1.0.0"`}, ""},
		{"hosts beyond the pinned ones", [2]string{"#claude", `hosts = ["evil.example"]`}, ""},
		{"no hosts", [2]string{"#claude", `hosts = []`}, ""},
		{"host block on a built-in vendor", [2]string{"#claude", `host "a.example" {}`}, ""},
		{"host that is an address", [2]string{`"llm.example"`, `"10.1.2.3"`}, ""},
		{"host with a pattern", [2]string{`"llm.example"`, `"*.example"`}, ""},
		{"loopback address", [2]string{`"10.1.2.3"`, `"127.0.0.1"`}, ""},
		{"IPv6 address", [2]string{`"10.1.2.3"`, `"fd00::1"`}, ""},
		{"empty command", [2]string{`["/agent"]`, `[]`}, ""},
		{"command as one word", [2]string{`["/agent"]`, `["/agent --json"]`}, ""},
		{"unknown credential", [2]string{`"OPENAI_API_KEY"`, `"OPENAI_KEY"`}, ""},
		{"loader variable", [2]string{"#local", `env = { LD_PRELOAD = "x" }`}, ""},
		{"proxy variable for an invocation", [2]string{"#a", `env = { https_proxy = "x" }`}, ""},
		{"user by name", [2]string{"#a", `user = "root"`}, ""},
		{"user in other digits", [2]string{"#a", `user = "00:0"`}, ""},
		{"huge prompt", [2]string{"#a", fmt.Sprintf("prompt = %q", strings.Repeat("x", MaxPrompt+1))}, ""},

		{"user 0 where it may write", [2]string{"#a", `user = "0:0"`}, SummaryUserRoot},
		{"user 0 where it may write, with a group", [2]string{"#b", `user = "0:1000"`}, SummaryUserRoot},
		{"user 0 where it may not", [2]string{"#inv-c", `user = "0:0"`}, "none"},
		{"vendor switch", [2]string{"#a", `env = { CLAUDE_CODE_EXTRA_BODY = "{}" }`}, SummaryEnv},
		{"vendor switch of the vendor", [2]string{"#codex", `env = { CODEX_HOME = "/x" }`}, SummaryEnv},
		{"harmless variable", [2]string{"#a", `env = { LC_ALL = "C" }`}, "none"},
		{"variable of a custom vendor", [2]string{"#local", `env = { CLAUDE_X = "1" }`}, "none"},
		{"model that Codex does not know", [2]string{"#codex", `model = "gpt-4"`}, SummaryModelUnknown},
		{"longer context", [2]string{"#claude", `model = "sonnet[1m]"`}, "none"},
		{"version without proof", [2]string{"#claude", `version = "9.9.9"`}, SummaryVersion},
		{"two credentials", [2]string{"#claude", "credential \"ANTHROPIC_API_KEY\" {\n source_env = \"K\"\n }"}, SummaryCredentialTwice},
		{"no credential", [2]string{"credential \"OPENAI_API_KEY\" {\n    source_env = \"T\"\n  }", ""}, SummaryCredentialMissing},
		{"relative command", [2]string{`["/agent"]`, `["agent"]`}, SummaryCommand},
		{"fewer tunnels than the proof opens", [2]string{"#a", "limits {\n tunnels = 1\n }"}, SummaryTunnels},
		{"fewer new tunnels than the proof opens", [2]string{"#b", "limits {\n tunnels_per_second = 1\n }"}, SummaryTunnels},
		{"as many tunnels as the proof opens", [2]string{"#inv-c", "limits {\n tunnels = 3\n tunnels_per_second = 3\n }"}, "none"},
		{"metadata address", [2]string{`"10.1.2.3"`, `"169.254.169.254"`}, SummaryHostLinkLocal},
		{"tools on a custom vendor", [2]string{"#plan", `tools = ["read"]`}, SummaryToolsCustom},
		{"edit without write", [2]string{"#mine", `tools = ["read", "edit"]`}, SummaryToolsCodex},
		{"edit and read-only", [2]string{"#mine", "tools = [\"edit\", \"write\"]\n  writable = false"}, SummaryToolsReadOnly},
	}
	shown := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(sound, tt.replace[0]) {
				t.Fatalf("%q is not in the configuration", tt.replace[0])
			}
			path := filepath.Join(t.TempDir(), "sandplan.hcl")
			if err := os.WriteFile(path, []byte(strings.Replace(sound, tt.replace[0], tt.replace[1], 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, loaded := load(t, path)
			checked := Check(s)
			for _, d := range append(append(hcl.Diagnostics{}, loaded...), checked...) {
				shown[d.Summary] = true
			}
			switch {
			case tt.summary == "" && (!loaded.HasErrors() || checked.HasErrors()):
				t.Errorf("loading says\n%v\nand checking\n%v", loaded, checked)
			case tt.summary == "none" && (loaded.HasErrors() || checked.HasErrors()):
				t.Errorf("this is a mistake to loading\n%v\nor to checking\n%v", loaded, checked)
			case tt.summary != "" && tt.summary != "none" && (loaded.HasErrors() || find(checked, tt.summary) == nil):
				t.Errorf("loading says\n%v\nand checking\n%v\nwithout %q", loaded, checked, tt.summary)
			}
			if !loaded.HasErrors() && !checked.HasErrors() {
				sealAll(t, s)
			}
		})
	}
	for _, summary := range []string{SummaryUserRoot, SummaryEnv, SummaryModelUnknown, SummaryVersion, SummaryCredentialTwice, SummaryCredentialMissing,
		SummaryCommand, SummaryHostLinkLocal, SummaryToolsCustom, SummaryToolsCodex, SummaryToolsReadOnly, SummaryTunnels} {
		if !shown[summary] {
			t.Errorf("no configuration shows %q", summary)
		}
	}
}

func sealAll(t *testing.T, s *hclspec.Spec) {
	t.Helper()
	for _, i := range s.Invocations {
		if i.Vendor.Unknown || i.Phase.Unknown {
			continue // depends on a variable
		}
		if _, err := Seal(s, i.Address); err != nil {
			t.Errorf("nobody reports a mistake, and yet: %v", err)
		}
		for _, p := range s.Phases {
			if p.Name != i.Phase.V {
				continue
			}
			for _, r := range p.Runners {
				if _, err := SealRunner(s, i.Address, r.Name); err != nil {
					t.Errorf("nobody reports a mistake, and yet: %v", err)
				}
			}
		}
	}
}

func TestExamplesCanBeSealed(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		t.Run(filepath.Base(path), func(t *testing.T) {
			abs, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			s, loaded := load(t, abs)
			if loaded.HasErrors() || Check(s).HasErrors() {
				t.Fatalf("%v\n%v", loaded, Check(s))
			}
			sealAll(t, s)
		})
	}
}
