package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
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
