package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// line makes ranges that differ, so that a test can tell where a diagnostic points.
func line(n int) hcl.Range {
	return hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: n, Column: 1}, End: hcl.Pos{Line: n, Column: 9}}
}

func set[T any](v T, at int) hclspec.Val[T] { return hclspec.Val[T]{V: v, Range: line(at), Set: true} }

func unset[T any](v T) hclspec.Val[T] { return hclspec.Val[T]{V: v} }

// pinned are the hosts of a built-in kind as loading makes them.
func pinned(names ...string) []hclspec.Host {
	var out []hclspec.Host
	for _, n := range names {
		out = append(out, hclspec.Host{Name: n, Port: unset(443), TLS: unset(true), Range: line(10)})
	}
	return out
}

// fullSpec has one vendor of each kind, all built-in phases, and an invocation of each vendor in each
// phase: invocation.claude_review and so on.
func fullSpec() *hclspec.Spec {
	s := &hclspec.Spec{
		Vendors: []hclspec.Vendor{
			{
				Name: "claude", Kind: unset(KindClaude), Image: set("agents/claude:1", 11), Range: line(10),
				Model: set("sonnet", 12), Version: unset("2.1.332"), Hosts: pinned(AnthropicHost),
				Credentials: []hclspec.Credential{{Name: CredentialClaudeOAuth, SourceEnv: set("T", 13), Range: line(13)}},
			},
			{
				Name: "codex", Kind: unset(KindCodex), Image: set("agents/codex:1", 21), Range: line(20),
				Version: unset("0.171.0"), Hosts: pinned(OpenAIHost, ChatGPTHost),
				Credentials: []hclspec.Credential{{Name: CredentialOpenAIKey, SourceEnv: set("T", 23), Range: line(23)}},
			},
			{
				Name: "local", Kind: set(KindCustom, 31), Image: set("agents/local:1", 32), Range: line(30),
				Command: set([]string{"/agent", "--json"}, 33),
				Env:     []hclspec.EnvVar{{Name: "MODE", Value: set("vendor", 34)}},
				Hosts: []hclspec.Host{{
					Name: "llm.corp.example", Port: set(8443, 36), TLS: unset(true), Range: line(35),
					Addresses: set([]netip.Addr{netip.MustParseAddr("10.1.2.3")}, 37),
				}},
				Credentials: []hclspec.Credential{{Name: "token", SourceFile: set("/t", 39), Range: line(38)}},
			},
		},
	}
	for _, name := range builtinPhases() {
		s.Phases = append(s.Phases, hclspec.Phase{Name: name, Base: unset(name), Range: line(50)})
	}
	phaseOf(s, "fix").Runners = []hclspec.Runner{{Name: "test", Argv: set([]string{"npm", "test"}, 61), Image: set("ci:1", 62), Range: line(60)}}
	for _, v := range s.Vendors {
		for _, p := range s.Phases {
			s.Invocations = append(s.Invocations, hclspec.Invocation{
				Address: "invocation." + v.Name + "_" + p.Name, Name: v.Name + "_" + p.Name,
				Vendor: set(v.Name, 71), Phase: set(p.Name, 72), Range: line(70),
			})
		}
	}
	return s
}

func vendorOf(s *hclspec.Spec, name string) *hclspec.Vendor {
	for i := range s.Vendors {
		if s.Vendors[i].Name == name {
			return &s.Vendors[i]
		}
	}
	panic("no vendor " + name)
}

func phaseOf(s *hclspec.Spec, name string) *hclspec.Phase {
	for i := range s.Phases {
		if s.Phases[i].Name == name {
			return &s.Phases[i]
		}
	}
	panic("no phase " + name)
}

func invocationOf(s *hclspec.Spec, name string) *hclspec.Invocation {
	for i := range s.Invocations {
		if s.Invocations[i].Name == name {
			return &s.Invocations[i]
		}
	}
	panic("no invocation " + name)
}

func mustSeal(t *testing.T, s *hclspec.Spec, addr string) Command {
	t.Helper()
	c, err := Seal(s, addr)
	if err != nil {
		t.Fatalf("Seal(%s): %v", addr, err)
	}
	return c
}

// flag is the argument after the first name of a flag.
func flag(argv []string, name string) string {
	for i, a := range argv {
		if a == name && i+1 < len(argv) {
			return argv[i+1]
		}
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v
		}
	}
	return "(absent)"
}
