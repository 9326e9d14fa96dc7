package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

func TestMistakes(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*hclspec.Spec)
		summary string
		detail  string // a part of it
		line    int
		addr    string // the invocation that cannot be sealed; "" for a mistake that spoils none
		reason  string
	}{
		{
			"phase writes beyond its base", func(s *hclspec.Spec) { phaseOf(s, "review").Writable = set(true, 51) },
			SummaryWritableWiden, "read-only in review", 51, "invocation.claude_review",
			"a ceiling is not for a configuration to lift",
		},
		{
			"tools beyond the base", func(s *hclspec.Spec) { phaseOf(s, "planning").Tools = set([]string{"read", "write"}, 52) },
			SummaryToolsWiden, `"write" is not among the tools of planning`, 52, "invocation.claude_planning",
			"a ceiling is not for a configuration to lift",
		},
		{
			"own phase based on nothing", func(s *hclspec.Spec) { phaseOf(s, "fix").Name = "mine"; phaseOf(s, "mine").Base = set("all", 53) },
			SummaryUnknownBase, `"all" is no built-in phase`, 53, "", "a phase without a ceiling would have none",
		},
		{
			"own phase held to its base", func(s *hclspec.Spec) {
				p := phaseOf(s, "fix")
				p.Name, p.Base, p.Writable = "mine", set("questions", 53), set(true, 54)
				p.Runners = nil
				invocationOf(s, "claude_fix").Phase = set("mine", 72)
			},
			SummaryWritableWiden, "read-only in questions", 54, "invocation.claude_fix", "a new name must not be a way round",
		},
		{
			"builtin name with another base", func(s *hclspec.Spec) { phaseOf(s, "review").Base = set("fix", 53) },
			SummaryUnknownBase, "is built in and has no base", 53, "invocation.claude_review", "a built-in name must keep its ceiling",
		},
		{
			"runner in planning", func(s *hclspec.Spec) {
				phaseOf(s, "planning").Runners = []hclspec.Runner{{Name: "t", Argv: set([]string{"x"}, 56), Range: line(55)}}
			},
			SummaryRunnersForbidden, `runner "t"`, 55, "invocation.claude_planning", "planning approves no command",
		},
		{
			"runner as one string", func(s *hclspec.Spec) { phaseOf(s, "fix").Runners[0].Argv = set([]string{"npm test"}, 61) },
			SummaryRunnerArgv, "no shell reads", 61, "invocation.claude_fix", "it would be looked for as one program and fail at run time",
		},
		{
			"edit with a read-only worktree", func(s *hclspec.Spec) {
				phaseOf(s, "fix").Tools, phaseOf(s, "fix").Writable = set([]string{"edit"}, 57), set(false, 58)
			},
			SummaryToolsReadOnly, "writable = false", 57, "invocation.claude_fix", "a tool that can only fail is a mistake",
		},
		{
			"user 0 where it may write", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").User = set("0", 73) },
			SummaryUserRoot, "user 0", 73, "invocation.claude_fix", "root without capabilities still leaves root's files on the host",
		},
		{
			"user 0 with a group", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").User = set("0:1000", 73) },
			SummaryUserRoot, "user 0", 73, "invocation.claude_fix", "the group changes nothing",
		},
		{
			"the user of the proxies", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").User = set("65531:1000", 73) },
			SummaryUser, "the proxies run as", 73, "invocation.claude_fix", "what the kernel counts for each user is theirs",
		},
		{
			"fewer tunnels than the proof opens", func(s *hclspec.Spec) { invocationOf(s, "codex_fix").Limits.Tunnels = set[int64](2, 75) },
			SummaryTunnels, "at least 3", 75, "invocation.codex_fix", "the proof would be refused, and no run begin",
		},
		{
			"user root by name", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").User = set("root", 73) },
			SummaryUser, "not a number", 73, "invocation.claude_fix", "a name means what the image says",
		},
		{
			"user 0 in other digits", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").User = set("00", 73) },
			SummaryUser, "plain spelling", 73, "invocation.claude_fix", "one spelling, or the check has holes",
		},
		{
			"model that is a flag", func(s *hclspec.Spec) { vendorOf(s, "claude").Model = set("--dangerously-skip-permissions", 12) },
			SummaryModel, "cannot be a model's name", 12, "invocation.claude_fix", "the model becomes an argument of the command line",
		},
		{
			"model that Codex does not know", func(s *hclspec.Spec) { vendorOf(s, "codex").Model = set("gpt-4", 22) },
			SummaryModelUnknown, "gpt-5.5", 22, "invocation.codex_fix", "the model stands in our catalogue, or Codex fetches its own",
		},
		{
			"version without proof", func(s *hclspec.Spec) { vendorOf(s, "claude").Version = set("2.2.0", 14) },
			SummaryVersion, "Proven: 2.1.332", 14, "invocation.claude_fix", "flags are known for versions, not for ever",
		},
		{
			"model on a custom vendor", func(s *hclspec.Spec) { vendorOf(s, "local").Model = set("x", 40) },
			SummaryNotEnforced, "`model`", 40, "invocation.local_fix", "an attribute that does nothing is an error",
		},
		{
			"command on a built-in vendor", func(s *hclspec.Spec) { vendorOf(s, "claude").Command = set([]string{"/bin/sh"}, 15) },
			SummaryNotEnforced, "`command`", 15, "invocation.claude_fix", "the command line of a built-in vendor is what holds its tools",
		},
		{
			"host beyond the pinned ones", func(s *hclspec.Spec) { vendorOf(s, "claude").Hosts = pinned("evil.example") },
			SummaryHost, AnthropicHost, 10, "invocation.claude_fix", "pinned means pinned",
		},
		{
			"pinned host on another port", func(s *hclspec.Spec) { vendorOf(s, "claude").Hosts[0].Port = set(8443, 16) },
			SummaryHost, "port 443", 10, "invocation.claude_fix", "pinned means pinned",
		},
		{
			"pinned host at a fixed address", func(s *hclspec.Spec) {
				vendorOf(s, "claude").Hosts[0].Addresses = set([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, 17)
			},
			SummaryHost, AnthropicHost, 10, "invocation.claude_fix", "it would send the credential somewhere else",
		},
		{
			"proxy variable", func(s *hclspec.Spec) {
				vendorOf(s, "local").Env = []hclspec.EnvVar{{Name: "https_PROXY", Value: set("http://x", 34)}}
			},
			SummaryEnvReserved, "https_PROXY", 34, "invocation.local_fix", "libraries read it in any case",
		},
		{
			"vendor switch from an invocation", func(s *hclspec.Spec) {
				invocationOf(s, "claude_fix").Env = []hclspec.EnvVar{{Name: "CLAUDE_CODE_EXTRA_BODY", Value: set("{}", 74)}}
			},
			SummaryEnv, "only these may be set", 74, "invocation.claude_fix", "variables can add tools to a request",
		},
		{
			"unknown credential", func(s *hclspec.Spec) { vendorOf(s, "codex").Credentials[0].Name = "OPENAI_KEY" },
			SummaryCredentialName, CredentialOpenAIKey, 23, "invocation.codex_fix", "nothing would read it",
		},
		{
			"credential name that leaves its directory", func(s *hclspec.Spec) { vendorOf(s, "local").Credentials[0].Name = "../prompt" },
			SummaryCredentialName, CredentialDir, 38, "invocation.local_fix", "it becomes a file's name",
		},
		{
			"two credentials", func(s *hclspec.Spec) {
				v := vendorOf(s, "claude")
				v.Credentials = append(v.Credentials, hclspec.Credential{Name: CredentialClaudeKey, Range: line(18)})
			},
			SummaryCredentialTwice, "Keep one", 18, "invocation.claude_fix", "which one is used would be the CLI's choice",
		},
		{
			"no credential", func(s *hclspec.Spec) { vendorOf(s, "claude").Credentials = nil },
			SummaryCredentialMissing, CredentialClaudeKey, 10, "", "a warning: validate must work before there is one",
		},
		{
			"relative command", func(s *hclspec.Spec) { vendorOf(s, "local").Command = set([]string{"agent"}, 33) },
			SummaryCommand, "absolute path", 33, "invocation.local_fix", "the agent's program is not searched for",
		},
		{
			"host that is an address", func(s *hclspec.Spec) { vendorOf(s, "local").Hosts[0].Name = "10.1.2.3" },
			SummaryHost, "Name the host", 35, "invocation.local_fix", "TLS has no name to be held against",
		},
		{
			"fixed address of a metadata service", func(s *hclspec.Spec) {
				vendorOf(s, "local").Hosts[0].Addresses = set([]netip.Addr{netip.MustParseAddr("169.254.169.254")}, 37)
			},
			SummaryHostLinkLocal, "metadata", 37, "invocation.local_fix", "it hands out the host's credentials",
		},
		{
			"fixed loopback address", func(s *hclspec.Spec) {
				vendorOf(s, "local").Hosts[0].Addresses = set([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, 37)
			},
			SummaryHostAddress, "the proxy itself", 37, "invocation.local_fix", "users mean their host and would reach the proxy",
		},
		{
			"image with another CLI", func(s *hclspec.Spec) {
				s.Lock.Images = []hclspec.LockImage{{Ref: "agents/claude:1", CLI: "2.0.0"}}
			},
			SummaryImageCLI, "version 2.0.0", 11, "invocation.claude_fix", "the flags were proven for one version",
		},
		{
			"image with a shell", func(s *hclspec.Spec) {
				s.Lock.Images = []hclspec.LockImage{{Ref: "agents/claude:1", CLI: "2.1.332", Shell: true}}
			},
			SummaryImageShell, "hooks", 11, "invocation.claude_fix", "hooks that a server delivers run where there is a shell",
		},
		{
			"tools on a custom vendor", func(s *hclspec.Spec) { phaseOf(s, "review").Tools = set([]string{"read"}, 57) },
			SummaryToolsCustom, "phase.review", 71, "invocation.local_review", "nothing enforces them there",
		},
		{
			"edit without write for Codex", func(s *hclspec.Spec) { phaseOf(s, "fix").Tools = set([]string{"edit"}, 57) },
			SummaryToolsCodex, "both or neither", 71, "invocation.codex_fix", "its one tool does both",
		},
		{
			"NUL in a prompt", func(s *hclspec.Spec) { invocationOf(s, "claude_fix").Prompt = set("a\x00b", 75) },
			SummaryPrompt, "NUL", 75, "invocation.claude_fix", "no CLI reads past it",
		},
		{
			"huge prompt", func(s *hclspec.Spec) {
				invocationOf(s, "claude_fix").Prompt = set(strings.Repeat("x", MaxPrompt+1), 75)
			},
			SummaryPrompt, "1048576 bytes", 75, "invocation.claude_fix", "it would not fit one frame",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := fullSpec()
			tt.change(s)
			found := find(checkAll(s), tt.summary)
			if found == nil {
				t.Fatalf("no diagnostic %q (%s); there are:\n%v", tt.summary, tt.reason, checkAll(s))
			}
			if !strings.Contains(found.Detail, tt.detail) {
				t.Errorf("detail %q does not say %q", found.Detail, tt.detail)
			}
			if found.Subject == nil || found.Subject.Start.Line != tt.line {
				t.Errorf("points to %v, want line %d", found.Subject, tt.line)
			}
			if tt.addr == "" {
				return
			}
			if found.Severity != hcl.DiagError {
				t.Errorf("is no error (%s)", tt.reason)
			}
			if c, err := Seal(s, tt.addr); err == nil {
				t.Errorf("Seal(%s) made %v in spite of it (%s)", tt.addr, c.Argv(), tt.reason)
			} else if !strings.Contains(err.Error(), tt.summary) {
				t.Errorf("Seal(%s): %v, does not name %q", tt.addr, err, tt.summary)
			}
		})
	}
}

func find(diags hcl.Diagnostics, summary string) *hcl.Diagnostic {
	for _, d := range diags {
		if d.Summary == summary {
			return d
		}
	}
	return nil
}

func TestNoMistake(t *testing.T) {
	s := fullSpec()
	for _, d := range checkAll(s) {
		if d.Severity == hcl.DiagError {
			t.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
}

func TestCheckSaysEachThingOnce(t *testing.T) {
	s := fullSpec()
	i := invocationOf(s, "claude_fix")
	i.User = set("0", 73)
	again := *i
	again.Address = `invocation.claude_fix["b"]`
	s.Invocations = append(s.Invocations, again)
	n := 0
	for _, d := range Check(s) {
		if d.Summary == SummaryUserRoot {
			n++
		}
	}
	if n != 1 {
		t.Errorf("two instances of one block: %d diagnostics for its one mistake", n)
	}
}

func TestUnknownValuesAreNoMistakes(t *testing.T) {
	s := fullSpec()
	invocationOf(s, "claude_fix").User = hclspec.Val[string]{Set: true, Unknown: true}
	vendorOf(s, "codex").Model = hclspec.Val[string]{Set: true, Unknown: true}
	vendorOf(s, "local").Command = hclspec.Val[[]string]{Set: true, Unknown: true}
	phaseOf(s, "review").Tools = hclspec.Val[[]string]{Set: true, Unknown: true}
	phaseOf(s, "fix").Runners[0].Argv = hclspec.Val[[]string]{Set: true, Unknown: true}
	for _, d := range checkAll(s) {
		if d.Severity == hcl.DiagError {
			t.Errorf("a value that is not known yet is called wrong: %s: %s", d.Summary, d.Detail)
		}
	}
}
