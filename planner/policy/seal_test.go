package policy

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/hclspec"
)

func TestClaudeCommandLine(t *testing.T) {
	s := fullSpec()
	got := mustSeal(t, s, "invocation.claude_review").Argv()
	want := []string{
		"/usr/local/bin/claude", "-p", "--tools", "Read,Glob,Grep", "--restricted", "--setting-sources=",
		"--strict-mcp-config", "--mcp-config", `{"mcpServers":{}}`, "--disable-slash-commands",
		"--permission-mode", "dontAsk", "--no-session-persistence", "--output-format", "stream-json", "--verbose",
		"--model", "sonnet",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("review (-want +got):\n%s", d)
	}
	got = mustSeal(t, s, "invocation.claude_fix").Argv()
	want = []string{
		"/usr/local/bin/claude", "-p", "--tools", "Read,Glob,Grep,Edit,Write", "--restricted", "--setting-sources=",
		"--strict-mcp-config", "--mcp-config", `{"mcpServers":{}}`, "--disable-slash-commands",
		"--permission-mode", "acceptEdits", "--permission-prompts", "none",
		"--no-session-persistence", "--output-format", "stream-json", "--verbose", "--model", "sonnet",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fix (-want +got):\n%s", d)
	}
}

func TestEnvironmentIsComplete(t *testing.T) {
	s := fullSpec()
	s.Lock.Images = []hclspec.LockImage{{Ref: "ci:1", Config: hclspec.ImageConfig{Env: map[string]string{"PATH": "/opt/node/bin", "FOO": "image"}}}}
	invocationOf(s, "local_fix").Env = []hclspec.EnvVar{{Name: "MODE", Value: set("invocation", 74)}, {Name: "CI", Value: set("1", 74)}}
	tests := []struct {
		name   string
		got    Command
		want   []Env
		reason string
	}{
		{"claude", mustSeal(t, s, "invocation.claude_planning"), []Env{
			{"CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"}, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
			{"CLAUDE_CODE_MAX_RETRIES", "1"}, {"DISABLE_AUTOUPDATER", "1"}, {"ENABLE_TOOL_SEARCH", "false"},
			{"HOME", "/home/agent"}, {"PATH", defaultPath},
		}, "each switch closes something that was seen open"},
		{"codex", mustSeal(t, s, "invocation.codex_planning"), []Env{
			{"CODEX_HOME", "/home/agent/.codex"}, {"HOME", "/home/agent"}, {"PATH", defaultPath},
		}, "its switches are arguments and files"},
		{"custom", mustSeal(t, s, "invocation.local_fix"), []Env{
			{"CI", "1"}, {"HOME", "/home/agent"}, {"MODE", "invocation"}, {"PATH", defaultPath},
		}, "the invocation wins over its vendor"},
	}
	if _, err := SealRunner(s, "invocation.local_fix", "tset"); err == nil || !strings.Contains(err.Error(), `has no runner "tset"; it has test`) {
		t.Errorf("a runner that there is not: %v", err)
	}
	r, err := SealRunner(s, "invocation.local_fix", "test")
	if err != nil {
		t.Fatal(err)
	}
	tests = append(tests, struct {
		name   string
		got    Command
		want   []Env
		reason string
	}{"runner", r, []Env{{"CI", "1"}, {"HOME", "/home/agent"}, {"MODE", "invocation"}, {"PATH", "/opt/node/bin"}},
		"the image's PATH says what npm is; nothing of the vendor's reaches a runner"})
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, tt.got.Env()); d != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", tt.name, tt.reason, d)
		}
	}
}

func TestToolsOfEachPhase(t *testing.T) {
	s := fullSpec()
	look, change := []string{"Glob", "Grep", "Read"}, []string{"Edit", "Glob", "Grep", "Read", "Write"}
	for phase, want := range map[string][]string{"planning": look, "questions": look, "review": look, "execute": change, "fix": change} {
		c := mustSeal(t, s, "invocation.claude_"+phase)
		if !slices.Equal(c.Offered(), want) {
			t.Errorf("claude in %s offers %v, want %v", phase, c.Offered(), want)
		}
		writable := phase == "execute" || phase == "fix"
		if c.Writable() != writable {
			t.Errorf("%s: writable %v", phase, c.Writable())
		}
		x := mustSeal(t, s, "invocation.codex_"+phase)
		wantX, sandbox := []string{"list_dir", "read_file", "search"}, "read-only"
		if writable {
			wantX, sandbox = []string{"apply_patch", "list_dir", "read_file", "search"}, "danger-full-access"
		}
		server := serverOf(t, x)
		if !slices.Equal(x.Offered(), wantX) || server.Sandbox != sandbox || !slices.Equal(server.Tools, []string{"read_file", "list_dir", "search"}) {
			t.Errorf("codex in %s offers %v in its sandbox %s with %v, want %v in %s", phase, x.Offered(), server.Sandbox, server.Tools, wantX, sandbox)
		}
	}
}

func TestNarrowedPhase(t *testing.T) {
	s := fullSpec()
	phaseOf(s, "fix").Writable = set(false, 58)
	c := mustSeal(t, s, "invocation.claude_fix")
	if c.Writable() || flag(c.Argv(), "--tools") != "Read,Glob,Grep" || flag(c.Argv(), "--permission-mode") != "dontAsk" {
		t.Errorf("fix with writable = false: writable %v, %v", c.Writable(), c.Argv())
	}
	s = fullSpec()
	phaseOf(s, "review").Tools = set([]string{}, 57)
	if got := flag(mustSeal(t, s, "invocation.claude_review").Argv(), "--tools"); got != "" {
		t.Errorf("a phase without tools: --tools %q", got)
	}
}

func TestCodexCatalogue(t *testing.T) {
	s := fullSpec()
	for phase, want := range map[string]any{"review": nil, "fix": "freeform"} {
		c := mustSeal(t, s, "invocation.codex_"+phase)
		i := slices.IndexFunc(c.Files(), func(f File) bool { return f.Path == codexCatalogue })
		if i < 0 {
			t.Fatalf("%s: no catalogue among %v", phase, c.Files())
		}
		var cat struct{ Models []map[string]any }
		if err := json.Unmarshal(c.Files()[i].Content, &cat); err != nil {
			t.Fatal(err)
		}
		if len(cat.Models) != 1 {
			t.Fatalf("%s: %d models; another one could be asked for", phase, len(cat.Models))
		}
		m := cat.Models[0]
		if m["apply_patch_tool_type"] != want || m["shell_type"] != "disabled" || m["tool_mode"] != "direct" || m["slug"] != "gpt-5.5" {
			t.Errorf("%s: %v", phase, m)
		}
		if !slices.Contains(serverOf(t, c).Argv, "model_catalog_json="+codexCatalogue) {
			t.Errorf("%s: nothing points to the catalogue", phase)
		}
	}
}

// TestCodexAsksForPatches: Codex applies no patch unasked, and nothing in its configuration can change that.
func TestCodexAsksForPatches(t *testing.T) {
	s := fullSpec()
	for _, c := range []struct{ phase, approval, modes string }{
		{"review", "never", `["read-only"]`},
		{"fix", "untrusted", `["read-only", "danger-full-access"]`},
	} {
		x := mustSeal(t, s, "invocation.codex_"+c.phase)
		server := serverOf(t, x)
		if server.Approval != c.approval || !slices.Equal(server.Protected, []string{".claude", ".codex", ".git", ".mcp.json"}) {
			t.Errorf("%s: approval %q, protected %v", c.phase, server.Approval, server.Protected)
		}
		i := slices.IndexFunc(x.Files(), func(f File) bool { return f.Path == codexRequirements })
		for _, line := range []string{`allowed_approval_policies = ["` + c.approval + `"]`, "allowed_sandbox_modes = " + c.modes} {
			if text := string(x.Files()[i].Content); !strings.Contains(text, line+"\n") {
				t.Errorf("%s: no line %s in the requirements:\n%s", c.phase, line, text)
			}
		}
	}
}

func TestHostsAndCredentials(t *testing.T) {
	s := fullSpec()
	if d := cmp.Diff([]Host{{Name: "llm.corp.example", Port: 8443, Addresses: []string{"10.1.2.3"}, TLS: true, Decl: `vendor.local.host["llm.corp.example"]`}},
		mustSeal(t, s, "invocation.local_fix").Hosts()); d != "" {
		t.Errorf("custom hosts (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Host{
		{Name: OpenAIHost, Port: 443, TLS: true, Decl: "vendor.codex"},
		{Name: ChatGPTHost, Port: 443, TLS: true, Decl: "vendor.codex"},
	}, mustSeal(t, s, "invocation.codex_fix").Hosts()); d != "" {
		t.Errorf("codex hosts (-want +got):\n%s", d)
	}
	for addr, want := range map[string]Credential{
		"invocation.claude_fix": {Name: CredentialClaudeOAuth, Env: CredentialClaudeOAuth, SourceEnv: "T"},
		"invocation.codex_fix":  {Name: CredentialOpenAIKey, Path: "/home/agent/.codex/auth.json", Wrap: `{"OPENAI_API_KEY":"$SECRET"}`, SourceEnv: "T"},
		"invocation.local_fix":  {Name: "token", Path: "/run/sandplan/credentials/token", SourceFile: "/t"},
	} {
		if d := cmp.Diff([]Credential{want}, mustSeal(t, s, addr).Credentials()); d != "" {
			t.Errorf("%s (-want +got):\n%s", addr, d)
		}
	}
	r, err := SealRunner(s, "invocation.codex_fix", "test")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Hosts())+len(r.Credentials())+len(r.Files()) > 0 || r.Stdin() {
		t.Errorf("a runner gets %v %v %v, stdin %v", r.Hosts(), r.Credentials(), r.Files(), r.Stdin())
	}
}

func TestCredentialContent(t *testing.T) {
	tests := []struct {
		name   string
		cred   Credential
		secret string
		want   string // "" when it must fail
		reason string
	}{
		{"variable", Credential{Name: "T", Env: "T"}, "abc\n", "abc", "a final newline is the shell's, not the token's"},
		{"wrapped", Credential{Name: "T", Path: "/p", Wrap: `{"K":"$SECRET"}`}, "a\"b\n", `{"K":"a\"b"}`, "the secret is quoted, so that it cannot add members"},
		{"file", Credential{Name: "T", Path: "/p"}, "{\n}\n", "{\n}\n", "a file is the secret as it is"},
		{"empty", Credential{Name: "T", Env: "T"}, " \n", "", "an empty token makes every request fail later"},
		{"two lines", Credential{Name: "T", Env: "T"}, "a\nb", "", "a second line could be a second header"},
		{"two words", Credential{Name: "T", Env: "T"}, "Bearer abc", "", "it becomes a word of a header"},
		{"a mark of the byte order", Credential{Name: "T", Path: "/p", Wrap: `{"K":"$SECRET"}`}, "\ufeffabc", "", "every request would fail, and nobody see why"},
	}
	for _, tt := range tests {
		got, err := tt.cred.Content([]byte(tt.secret))
		if (err == nil) != (tt.want != "") || string(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q (%s)", tt.name, got, err, tt.want, tt.reason)
		}
		if err != nil && strings.Contains(err.Error(), strings.TrimSpace(tt.secret)) && strings.TrimSpace(tt.secret) != "" {
			t.Errorf("%s: the error shows the secret: %v", tt.name, err)
		}
	}
}

func TestCommandIsForOneContainer(t *testing.T) {
	s := fullSpec()
	c := mustSeal(t, s, "invocation.claude_fix")
	if err := c.Check("invocation.claude_fix", "claude", "fix"); err != nil {
		t.Fatalf("its own container: %v", err)
	}
	r, err := SealRunner(s, "invocation.claude_fix", "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckRunner("invocation.claude_fix", "claude", "fix", "test"); err != nil {
		t.Fatalf("its own runner: %v", err)
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"another invocation", c.Check("invocation.claude_execute", "claude", "fix"), "was made for invocation"},
		{"another vendor", c.Check("invocation.claude_fix", "codex", "fix"), "was made for vendor claude, not for codex"},
		{"another phase", c.Check("invocation.claude_fix", "claude", "review"), "was made for phase"},
		{"an agent's as a runner's", c.CheckRunner("invocation.claude_fix", "claude", "fix", "test"), "was made for runner (none)"},
		{"a runner's as an agent's", r.Check("invocation.claude_fix", "claude", "fix"), "was made for runner test, not for (none)"},
		{"another runner", r.CheckRunner("invocation.claude_fix", "claude", "fix", "lint"), "was made for runner"},
		{"no runner", c.CheckRunner("invocation.claude_fix", "claude", "fix", ""), "no runner was named"},
		{"never sealed", Command{}.Check("", "", ""), "nothing has sealed"},
		{"changed afterwards", func() Command { d := c; d.argv = []string{"/bin/sh"}; return d }().Check("invocation.claude_fix", "claude", "fix"), "nothing has sealed"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.name, tt.err, tt.want)
		}
	}
}

// TestDigestCoversEveryMember changes each member of a command in turn.
func TestDigestCoversEveryMember(t *testing.T) {
	base := mustSeal(t, fullSpec(), "invocation.codex_fix")
	typ := reflect.TypeFor[Command]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if name == "digest" {
			continue
		}
		c := base
		switch name {
		case "invocation":
			c.invocation += "x"
		case "vendor":
			c.vendor += "x"
		case "kind":
			c.kind += "x"
		case "phase":
			c.phase += "x"
		case "base":
			c.base += "x"
		case "runner":
			c.runner += "x"
		case "version":
			c.version += "x"
		case "argv":
			c.argv = append(c.Argv(), "x")
		case "env":
			c.env = append(c.Env(), Env{"X", "x"})
		case "files":
			c.files = c.Files()
			c.files[0].Content[0] ^= 1
		case "stdin":
			c.stdin = !c.stdin
		case "preamble":
			c.preamble += "x"
		case "tools":
			c.tools = append(c.Tools(), "x")
		case "offered":
			c.offered = append(c.Offered(), "x")
		case "writable":
			c.writable = !c.writable
		case "hosts":
			c.hosts = c.Hosts()
			c.hosts[0].TLS = !c.hosts[0].TLS
		case "creds":
			c.creds = c.Credentials()
			c.creds[0].Path += "x"
		default:
			t.Fatalf("this test knows no member %q: teach it, and sum too", name)
		}
		if c.sum() == base.digest {
			t.Errorf("the digest does not cover %s", name)
		}
	}
}

func TestAccessorsGiveCopies(t *testing.T) {
	c := mustSeal(t, fullSpec(), "invocation.codex_fix")
	c.Argv()[0] = "/bin/sh"
	c.Env()[0].Value = "x"
	c.Files()[0].Content[0] ^= 1
	c.Offered()[0] = "shell"
	c.Credentials()[0].Path = "/x"
	c.Hosts()[0].Name = "evil.example"
	l := mustSeal(t, fullSpec(), "invocation.local_fix")
	l.Hosts()[0].Addresses[0] = "1.2.3.4"
	if err := c.Check("invocation.codex_fix", "codex", "fix"); err != nil {
		t.Errorf("a caller has changed the command: %v", err)
	}
	if err := l.Check("invocation.local_fix", "local", "fix"); err != nil {
		t.Errorf("a caller has changed the command: %v", err)
	}
}

func TestSealDoesNotShareWithTheSpec(t *testing.T) {
	s := fullSpec()
	c := mustSeal(t, s, "invocation.local_fix")
	vendorOf(s, "local").Command.V[0] = "/bin/sh"
	if err := c.Check("invocation.local_fix", "local", "fix"); err != nil || c.Argv()[0] != "/agent" {
		t.Errorf("the spec has changed the command: %v, %v", c.Argv(), err)
	}
}

func TestSealTwiceIsTheSame(t *testing.T) {
	a, b := mustSeal(t, fullSpec(), "invocation.local_fix"), mustSeal(t, fullSpec(), "invocation.local_fix")
	if a.Digest() != b.Digest() {
		t.Errorf("two seals of one configuration differ: %s, %s", a.Digest(), b.Digest())
	}
	s := fullSpec()
	for i := range s.Invocations {
		s.Invocations[i].Range = line(99)
	}
	if c := mustSeal(t, s, "invocation.local_fix"); c.Digest() != a.Digest() {
		t.Error("moving a block changes the command, and would replace the container")
	}
}

func TestProxyEnvComesInPairs(t *testing.T) {
	values := map[string]string{}
	for _, e := range ProxyEnv(netip.MustParseAddrPort("10.213.4.2:3128")) {
		values[e.Name] = e.Value
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		lower, ok := values[strings.ToLower(name)]
		if upper := values[name]; !ok || upper != lower {
			t.Errorf("%s is %q in capitals and %q in small letters", name, upper, lower)
		}
	}
	if values["HTTPS_PROXY"] != "http://10.213.4.2:3128" || values["NODE_USE_ENV_PROXY"] != "1" {
		t.Errorf("%v", values)
	}
}

func TestParseUser(t *testing.T) {
	tests := []struct {
		in     string
		want   string // "" when it must fail
		reason string
	}{
		{"1000", "1000:1000", "the group follows the user"},
		{"1000:20", "1000:20", "or is named"},
		{"0", "0:0", "root is a user; where it may not be is for CheckUser"},
		{"", "", "nothing is not a user"},
		{"agent", "", "names are the image's"},
		{"+0", "", "another spelling of 0"},
		{"-0", "", "another spelling of 0"},
		{"0x0", "", "another spelling of 0"},
		{" 0", "", "another spelling of 0"},
		{"٠", "", "a digit, but not one of ours"},
		{"1000:", "", "half a pair"},
		{":1000", "", "half a pair"},
		{"1000:1000:1000", "", "one too many"},
		{"4294967296", "", "wraps round to 0"},
		{"4294967295", "", "means no change to the kernel"},
	}
	for _, tt := range tests {
		u, err := ParseUser(tt.in)
		if got := u.String(); (err == nil) != (tt.want != "") || err == nil && got != tt.want {
			t.Errorf("ParseUser(%q) = %s, %v; want %q (%s)", tt.in, got, err, tt.want, tt.reason)
		}
	}
}
