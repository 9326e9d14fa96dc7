package policy

import (
	"fmt"
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

// matchesAny: a trailing * stands for any rest, and case counts.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}

// envMistake says why a declared variable cannot be, under which summary; "" when it can.
func envMistake(kind string, v hclspec.EnvVar) (summary, why string) {
	if err := hclspec.CheckEnvName(v.Name); err != nil {
		return SummaryEnvReserved, err.Error()
	}
	if strings.ContainsRune(v.Value.V, 0) {
		return SummaryEnvReserved, "the value of " + v.Name + " holds a NUL character"
	}
	p, builtin := profileOf(kind)
	if !builtin {
		return "", ""
	}
	// The CLIs of built-in kinds read hundreds of variables, some of which add tools, hosts or commands,
	// and newer versions read more: what is not known to be harmless is refused.
	allowed := append(slices.Clone(everywhere), p.envAllowed...)
	if matchesAny(allowed, v.Name) {
		return "", ""
	}
	sort.Strings(allowed)
	return SummaryEnv, fmt.Sprintf("%s cannot be set for the kind %s: its CLI reads variables that add tools, hosts or commands, so that only these may be set: %s",
		v.Name, kind, strings.Join(allowed, ", "))
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
