package policy

import (
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/hclspec"
)

// ProxyEnv are the variables that lead every client to the proxy. Programs disagree on which case
// they read, and some let NO_PROXY of one case win over the other: both are set, and equal.
func ProxyEnv(proxy netip.AddrPort) []Env {
	url := "http://" + proxy.String()
	return []Env{
		{"HTTPS_PROXY", url},
		{"HTTP_PROXY", url},
		{"NODE_USE_ENV_PROXY", "1"}, // Node's fetch ignores the others without it
		{"NO_PROXY", ""},
		{"http_proxy", url},
		{"https_proxy", url},
		{"no_proxy", ""},
	}
}

// everywhere are variables that change how text looks and nothing else.
var everywhere = []string{"COLORTERM", "FORCE_COLOR", "LANG", "LANGUAGE", "LC_*", "NO_COLOR", "TERM", "TZ"}

// neverSet are variables that load code, or that sandplan sets itself. A trailing * stands for any
// rest; the comparison knows no case, since libraries do not agree on it either.
var neverSet = []string{
	// ways to the network
	"*_PROXY", "NODE_USE_ENV_PROXY", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES", "RESOLV_*",
	// the dynamic loader and the C library
	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "GETCONF_DIR", "LOCPATH", "NLSPATH", "MALLOC_*", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES",
	// interpreters and their package managers
	"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_*", "BUN_*", "DENO_*", "NPM_CONFIG_*", "YARN_*", "PYTHON*", "PIP_*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*",
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "MAVEN_*", "GRADLE_OPTS", "LUA_*", "PHP*", "R_*", "GUILE_*", "TCLLIBPATH", "CORECLR_*", "DOTNET_*", "COR_*",
	// shells, and programs that start others
	"BASH_*", "BASHOPTS", "SHELLOPTS", "ENV", "IFS", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "SHELL", "EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE",
	"GIT_*", "SSH_*",
	// sandplan's own
	"HOME", "CODEX_HOME", "SANDPLAN_*", "HOSTNAME",
}

// matches compares without case: "*_PROXY" and "LD_*" have their star at one end.
func matches(pattern, name string) bool {
	p, n := strings.ToUpper(pattern), strings.ToUpper(name)
	switch {
	case strings.HasPrefix(p, "*"):
		return strings.HasSuffix(n, p[1:])
	case strings.HasSuffix(p, "*"):
		return strings.HasPrefix(n, p[:len(p)-1])
	}
	return p == n
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// isEnvName: what POSIX calls a name. Shells cannot pass on anything else.
func isEnvName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// envMistake says why a declared variable cannot be, or "".
func envMistake(kind string, v hclspec.EnvVar) string {
	switch {
	case !isEnvName(v.Name):
		return "a name is letters, digits and _, and begins with no digit"
	case strings.ContainsRune(v.Value.V, 0):
		return "its value holds a NUL byte"
	}
	if p, ok := profileOf(kind); ok {
		// The CLIs of built-in kinds read hundreds of variables, some of which add tools, hosts or commands,
		// and newer versions read more: what is not known to be harmless is refused.
		allowed := append(slices.Clone(everywhere), p.envAllowed...)
		if !matchesAny(allowed, v.Name) {
			sort.Strings(allowed)
			return "for the kind " + kind + " these may be set: " + strings.Join(allowed, ", ")
		}
		return ""
	}
	if matchesAny(neverSet, v.Name) {
		return "variables that lead to another network, load code or belong to sandplan cannot be declared"
	}
	return ""
}

// joinEnv is the environment of a command: later lists win, the result is sorted by name.
func joinEnv(lists ...[]Env) []Env {
	values := map[string]string{}
	for _, l := range lists {
		for _, e := range l {
			values[e.Name] = e.Value
		}
	}
	out := make([]Env, 0, len(values))
	for n, v := range values {
		out = append(out, Env{n, v})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func declared(vars []hclspec.EnvVar) []Env {
	out := make([]Env, 0, len(vars))
	for _, v := range vars {
		out = append(out, Env{v.Name, v.Value.V})
	}
	return out
}
