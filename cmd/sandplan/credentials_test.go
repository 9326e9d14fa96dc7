package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := map[string]string{"TOKEN": "t-1", "EMPTY": ""}
	a := &app{getenv: func(n string) string { return env[n] }}
	val := func(s string) hclspec.Val[string] { return hclspec.Val[string]{V: s, Set: s != ""} }
	for _, c := range []struct {
		reason, env, file string
		want, warn, fail  string
	}{
		{"from the environment", "TOKEN", "", "t-1", "", ""},
		{"the variable is missing", "NOWHERE", "", "", "", "NOWHERE is not set"},
		{"the variable is empty", "EMPTY", "", "", "", "EMPTY is not set, or is empty"},
		{"from a file of the caller alone", "", file("mine", "t-2", 0o600), "t-2", "", ""},
		{"others can read the file", "", file("open", "t-3", 0o644), "t-3", "mode 0644", ""},
		{"the file is missing", "", filepath.Join(dir, "nowhere"), "", "", "there is no file"},
		{"a directory", "", dir, "", "", "no regular file"},
		{"the wrong file, and a large one", "", file("large", strings.Repeat("x", maxSecretFile+1), 0o600), "", "", "no credential has more"},
	} {
		got, warnings, err := a.secret(hclspec.Credential{Name: "X", SourceEnv: val(c.env), SourceFile: val(c.file)})
		warned := strings.Join(warnings, "; ")
		if string(got) != c.want || !strings.Contains(warned, c.warn) || (warned == "") != (c.warn == "") {
			t.Errorf("%s: %q, warnings %q; want %q, %q", c.reason, got, warned, c.want, c.warn)
		}
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: error %v, want %q in it", c.reason, err, c.fail)
		}
	}
}

// TestSecretsAreJudgedTogether: whatever is to be said of a credential is said, and in words of its vendor's kind.
func TestSecretsAreJudgedTogether(t *testing.T) {
	ta := newTestApp(t)
	ta.file("auth.json", fmt.Sprintf(`{"tokens":{"access_token":"h.%s.s"}}`, base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1800}`))))
	for _, c := range []struct{ kind, want string }{
		{policy.KindCodex, "mode 0644.*ChatGPT login.*expires at 1970-01-01T00:30:00Z"},
		{policy.KindCustom, "mode 0644"},
	} {
		val := func(s string) hclspec.Val[string] { return hclspec.Val[string]{V: s, Set: true} }
		v := hclspec.Vendor{Name: "v", Kind: val(c.kind), Image: val("i:1"), Command: hclspec.Val[[]string]{V: []string{"/c"}, Set: true},
			Credentials: []hclspec.Credential{{Name: policy.CredentialCodexAuth, SourceFile: val(filepath.Join(ta.dir, "auth.json"))}}}
		if c.kind == policy.KindCodex {
			v.Command, v.Hosts = hclspec.Val[[]string]{}, []hclspec.Host{{Name: policy.OpenAIHost, Port: hclspec.Val[int]{V: 443}, TLS: hclspec.Val[bool]{V: true}}}
		}
		spec := &hclspec.Spec{Vendors: []hclspec.Vendor{v}, Phases: []hclspec.Phase{{Name: "review"}},
			Invocations: []hclspec.Invocation{{Address: "invocation.x", Vendor: val("v"), Phase: val("review")}}}
		command, err := policy.Seal(spec, "invocation.x")
		if err != nil {
			t.Fatal(err)
		}
		ta.err.Reset()
		u := ta.ui()
		u.quiet = true
		got, err := ta.secrets(u, spec, command)
		if err != nil || len(got[policy.CredentialCodexAuth]) == 0 {
			t.Errorf("%s: %v, %v", c.kind, got, err)
		}
		told := strings.Join(strings.Fields(ta.err.String()), " ")
		if !regexp.MustCompile(c.want).MatchString(told) || c.kind == policy.KindCustom && strings.Contains(told, "ChatGPT") {
			t.Errorf("%s: %q, want %q in it", c.kind, told, c.want)
		}
	}
}

func TestReadPrompt(t *testing.T) {
	ta := newTestApp(t)
	for _, c := range []struct{ reason, text, fails string }{
		{"a task", "Look.\n", ""},
		{"as it stands", "\ufeff/compact\r\n", ""},
		{"nothing", "", "is empty"},
		{"nothing but blanks", " \r\n\t", "is empty"},
		{"a NUL", "a\x00b", "NUL"},
		{"no text", "\xff\xfe", "not UTF-8"},
		{"much too large", strings.Repeat("x", 10<<20), "more than 1048576 bytes"},
		{"cut within a letter where it is much too large", strings.Repeat("é", 5<<20), "more than 1048576 bytes"},
	} {
		ta.file("prompt", c.text)
		for from, u := range map[string]*ui{filepath.Join(ta.dir, "prompt"): ta.ui(), "-": {lines: bufio.NewReader(strings.NewReader(c.text))}} {
			got, err := ta.readPrompt(u, from)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || err == nil && string(got) != c.text {
				t.Errorf("%s from %s: %.20q, %v; want %q", c.reason, from, got, err, c.fails)
			}
		}
	}
}
