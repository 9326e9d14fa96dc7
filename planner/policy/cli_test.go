package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionsAreNamedAlike: every place that names a version of a CLI names the newest proven one, and what
// says how it is known says the same.
func TestVersionsAreNamedAlike(t *testing.T) {
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	newest := map[string]string{}
	for _, kind := range builtinKinds() {
		p, _ := profileOf(kind)
		newest[kind] = p.versions[0]
		for _, v := range p.versions {
			sum := ""
			for _, b := range binaries {
				if b.kind == kind && b.version == v {
					sum = b.sha256
				}
			}
			if sum == "" {
				t.Fatalf("%s %s counts as proven, and no executable is known by its SHA-256", kind, v)
			}
			if of, version, ok := IdentifyCLI(sum); !ok || of != kind || version != v {
				t.Errorf("%s is %s %s, want %s %s", sum, of, version, kind, v)
			}
			if line := fmt.Sprintf("| `%s` | %s | `%s` | `%s` |", kind, v, CLIPath(kind), sum); !strings.Contains(read("docs/vendors.md"), line) {
				t.Errorf("docs/vendors.md has no line %s", line)
			}
		}
	}
	claude, codex := newest[KindClaude], newest[KindCodex]
	for file, texts := range map[string][]string{
		"scripts/vendor-matrix": {`rows=("` + claude + " " + codex + `")`},
		"scripts/test-vendors":  {"${CLAUDE:-" + claude + "}", "${CODEX:-" + codex + "}"},
		"scripts/agent-image":   {"claude " + claude, "codex " + codex},
		"examples/claude.hcl":   {claude},
		"examples/codex.hcl":    {codex},
		"docs/vendors.md": {"scripts/agent-image claude " + claude, "scripts/agent-image codex  " + codex, "claude-code-linux-x64@" + claude + " ", "codex@" + codex + "-linux-x64 ",
			"| claude | " + claude + " | ok", "| codex | " + codex + " | ok"},
	} {
		for _, text := range texts {
			if !strings.Contains(read(file), text) {
				t.Errorf("%s does not name %q", file, text)
			}
		}
	}
}

func TestNamesOfInterpreters(t *testing.T) {
	for name, want := range map[string]bool{
		"/bin/sh": true, "sh": true, "/opt/x/bash-static": true, "/usr/bin/python3": true, "/usr/bin/lua5.4": true, "/x/ksh93": true,
		"/usr/local/bin/claude": false, "/usr/local/bin/codex": false, "/lib/libsh.so": false, "/bin/shasum": false, "/bin/ssh": false, "/sh/x": false, "/usr/bin/rg": false,
	} {
		if got := IsInterpreter(name); got != want {
			t.Errorf("%s is one: %t", name, got)
		}
	}
}
