package hclspec

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// reservedEnv are variables that would change which program runs, what it loads or whom it talks to, by
// what they are. A name that ends in * stands for all that begin so. Case does not matter: programs read
// http_proxy and HTTP_PROXY alike.
var reservedEnv = []struct{ why, names string }{
	{"it chooses a proxy, and sandplan sets the only one", "*_PROXY"},
	{"it changes what the dynamic loader loads", "LD_* DYLD_* GLIBC_* GCONV_PATH MALLOC_* LOCPATH"},
	{"it changes how names are resolved", "HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_*"},
	{"it makes an interpreter run or load other code", "NODE_* BUN_* DENO_* NPM_CONFIG_* PYTHON* PERL* RUBY* GEM_* JAVA_* " +
		"_JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_* PHPRC PHP_INI_SCAN_DIR GODEBUG DOTNET_* CORECLR_* COR_* " +
		"ELECTRON_* ERL_* JULIA_* R_* RUSTC_* CARGO_* MAKEFLAGS GNUMAKEFLAGS MAKEFILES CURL_HOME WGETRC"},
	{"it changes what a shell runs", "BASH_* BASHOPTS SHELLOPTS ENV IFS PS4 PROMPT_COMMAND CDPATH FPATH ZDOTDIR SHELL"},
	{"it changes what git runs", "GIT_*"},
	{"it changes which certificates are trusted", "SSL_CERT_* CURL_CA_BUNDLE REQUESTS_CA_BUNDLE CODEX_CA_CERTIFICATE SSLKEYLOGFILE OPENSSL_* AWS_CA_BUNDLE"},
	{"it starts another program", "EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS CC CXX LD"},
	{"sandplan sets it itself", "PATH HOME HOSTNAME PWD OLDPWD USER LOGNAME TMPDIR TMP TEMP XDG_* SANDPLAN_*"},
}

// checkEnvName accepts the name of a variable that may be set in a sandbox.
func checkEnvName(s string) error {
	if !envPattern.MatchString(s) {
		return fmt.Errorf("%q is not the name of an environment variable: letters, digits and _, a digit not first, 128 at most", clip(s))
	}
	up := strings.ToUpper(s)
	for _, group := range reservedEnv {
		for _, name := range strings.Fields(group.names) {
			if matchStar(name, up) {
				return fmt.Errorf("%s cannot be set: %s", s, group.why)
			}
		}
	}
	return nil
}

func matchStar(pattern, s string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, p)
	}
	if p, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(s, p)
	}
	return s == pattern
}

// readEnv reads the env attribute: a map whose values may be unknown one by one, and whose names are
// checked all the same.
func readEnv(r *reader) []EnvVar {
	attr := r.attrs["env"]
	if attr == nil {
		return nil
	}
	v, diags := r.ev.value(attr.Expr, r.sc)
	r.diags = append(r.diags, diags...)
	if diags.HasErrors() {
		return nil
	}
	bad := func(summary string, at hcl.Range, format string, args ...any) {
		d := problem(summary, at, format, args...)
		d.Context = attr.Range.Ptr()
		r.diags = append(r.diags, d)
	}
	conv, err := convert.Convert(v, cty.Map(cty.String))
	if err != nil {
		bad(WrongType, locate(attr.Expr, errorPath(err)), "%s%s.", wrongType("env", v, cty.Map(cty.String)), within(err))
		return nil
	}
	v, marks := conv.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	var out []EnvVar
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		name := k.AsString()
		keyAt, valueAt := attr.Expr.Range(), attr.Expr.Range()
		if k, v := mapPair(attr.Expr, name); k != nil {
			keyAt, valueAt = k.Range(), v.Range()
		}
		if err := checkEnvName(name); err != nil {
			bad(InvalidEnvName, keyAt, "env: %s.", err)
			continue
		}
		if len(marks) > 0 || isSensitive(e) {
			bad(SensitiveValue, valueAt, "The environment is visible on the engine. A sensitive value can only be a prompt, or reach the agent as a credential block of its vendor.")
			continue
		}
		val := Val[string]{Range: attr.Range, Set: true}
		if mapAt := valueAt; mapAt != attr.Expr.Range() {
			val.Range = mapAt
		}
		switch {
		case e.IsNull(): // as if it were not there
			continue
		case !e.IsKnown():
			val.Unknown = true
		default:
			val.V = e.AsString()
			if err := checkEnvValue(val.V); err != nil {
				bad(InvalidEnvValue, valueAt, "%s: %s.", name, err)
			}
		}
		out = append(out, EnvVar{Name: name, Value: val})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func checkEnvValue(s string) error {
	switch {
	case strings.ContainsRune(s, 0):
		return errors.New("the value holds a NUL character")
	case len(s) > 32<<10:
		return fmt.Errorf("the value has %d bytes, and at most %d are allowed", len(s), 32<<10)
	}
	return nil
}
