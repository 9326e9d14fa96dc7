package policy

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
)

// wish is a declaration that asks for as much as it likes.
type wish struct {
	phase, base, tools, model, version, envName, envValue, host, prompt string
	setTools, writable                                                  bool
	port                                                                int
}

// spec is fullSpec with the wish in a vendor, in a phase of its own or the built-in one that it names, and in
// the one invocation.
func (w wish) spec(kind string) *hclspec.Spec {
	s := fullSpec()
	p := hclspec.Phase{Name: w.phase, Base: set(w.base, 53), Range: line(50)}
	if w.setTools {
		p.Tools = set(strings.Split(w.tools, ","), 57)
	}
	if w.writable {
		p.Writable = set(true, 58)
	}
	s.Phases = []hclspec.Phase{p}
	v := vendorOf(s, kind)
	v.Model, v.Version = set(w.model, 12), set(w.version, 14)
	if w.model == "" {
		v.Model = hclspec.Val[string]{}
	}
	v.Env = []hclspec.EnvVar{{Name: w.envName, Value: set(w.envValue, 15)}}
	if w.host != "" {
		v.Hosts = append(v.Hosts, hclspec.Host{Name: w.host, Port: set(w.port, 16), TLS: unset(true)})
	}
	if a, err := netip.ParseAddr(w.host); err == nil {
		v.Hosts[0].Addresses = set([]netip.Addr{a}, 17)
	}
	s.Invocations = []hclspec.Invocation{{Address: "invocation.x", Name: "x", Vendor: set(kind, 71), Phase: set(w.phase, 72), Prompt: set(w.prompt, 75), Range: line(70)}}
	return s
}

// FuzzCeilings: whatever a declaration says, what can be sealed is within the ceiling of its phase, reaches the
// pinned hosts, and has the command line that was proven.
func FuzzCeilings(f *testing.F) {
	f.Add("review", "", "read,write", "sonnet", "2.1.332", "LANG", "C", "", "hi", true, false, 443)
	f.Add("mine", "fix", "read,edit,write", "gpt-5.5", "0.171.0", "TZ", "UTC", "", "/compact", true, true, 443)
	f.Add("mine", "planning", "Bash", "--dangerously-skip-permissions", "", "ANTHROPIC_BASE_URL", "https://evil", "evil.example", "", false, true, 8443)
	f.Add("execute", "execute", "read", "x\x00", "9.9.9", "HOME", "/work", "10.0.0.1", "@/etc/passwd", false, false, 443)
	f.Add("fix", "fix", "", "opus[1m]", "", "CLAUDE_CODE_MAX_RETRIES", "99", "api.anthropic.com", "x", false, false, 443)
	f.Fuzz(func(t *testing.T, phase, base, tools, model, version, envName, envValue, host, prompt string, setTools, writable bool, port int) {
		w := wish{phase, base, tools, model, version, envName, envValue, host, prompt, setTools, writable, port}
		for _, kind := range builtinKinds() {
			if c, err := Seal(w.spec(kind), "invocation.x"); err == nil {
				checkCeiling(t, w, c)
			}
		}
	})
}

func checkCeiling(t *testing.T, w wish, c Command) {
	limit, ok := ceilingOf(c.Base())
	if !ok || c.Writable() && !limit.writable {
		t.Errorf("%+v: base %q, writable %t", w, c.Base(), c.Writable())
	}
	changes := false
	for _, tool := range c.Tools() {
		changes = changes || tool == ToolEdit || tool == ToolWrite
		if !slices.Contains(limit.tools, tool) || changes && !c.Writable() {
			t.Errorf("%+v: has the tool %q", w, tool)
		}
	}
	p, _ := profileOf(c.Kind())
	for _, h := range c.Hosts() {
		if !slices.Contains(p.hosts, h.Name) || h.Port != 443 || !h.TLS || len(h.Addresses) > 0 {
			t.Errorf("%+v: reaches %+v", w, h)
		}
	}
	// What the builder makes of the tools that are left, and nothing else.
	b, err := p.build(agent{kind: c.Kind(), tools: c.Tools(), model: w.model, version: c.version})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Argv(), b.argv) || !slices.Equal(c.Offered(), b.offered) || c.Preamble() != b.preamble {
		t.Errorf("%+v: %q offers %q", w, c.Argv(), c.Offered())
	}
	for _, f := range b.files {
		if !slices.ContainsFunc(c.Files(), func(g File) bool { return reflect.DeepEqual(f, g) }) {
			t.Errorf("%+v: %s is not as it was proven", w, f.Path)
		}
	}
	known := append(b.env, Env{"HOME", Home}, Env{"PATH", defaultPath})
	for _, e := range c.Env() {
		if !slices.Contains(known, e) && (e.Name != w.envName || !matchesAny(append(slices.Clone(everywhere), p.envAllowed...), e.Name)) {
			t.Errorf("%+v: has the variable %s=%s", w, e.Name, e.Value)
		}
	}
	for _, e := range known {
		if !slices.Contains(c.Env(), e) {
			t.Errorf("%+v: lacks the variable %s=%s", w, e.Name, e.Value)
		}
	}
	if m := flag(c.Argv(), "--model"); c.Kind() == KindClaude && w.model != "" && (m != w.model || strings.HasPrefix(m, "-")) {
		t.Errorf("%+v: the model is %q", w, m)
	}
}
