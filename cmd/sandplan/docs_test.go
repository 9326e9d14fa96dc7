package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs holds docs/cli.md to the program: every command, every exit code of a run, every environment variable.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, c := range newTestApp(t).rootCommand().Commands() {
		if c.Name() != "help" && !strings.Contains(doc, "| `"+c.Name()) && !strings.Contains(doc, "`"+c.Name()+" ") {
			t.Errorf("the command %s is not documented", c.Name())
		}
	}
	table := doc[strings.Index(doc, "## Exit codes"):strings.Index(doc, "## Which objects")]
	for _, code := range []string{"119", "120", "121", "122", "123", "124", "125", "126", "127", "130", "137"} {
		if !strings.Contains(table, code) {
			t.Errorf("exit code %s is not documented", code)
		}
	}
	read := regexp.MustCompile(`getenv\("([A-Z_]+)"\)`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		src, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range read.FindAllStringSubmatch(string(src), -1) {
			if name := m[1]; !slices.Contains([]string{"TERM"}, name) && !strings.Contains(doc, "`"+name) {
				t.Errorf("%s reads %s, which is not documented", f.Name(), name)
			}
		}
	}
}
