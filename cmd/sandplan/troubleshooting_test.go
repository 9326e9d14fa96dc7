package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/applier/launch"
)

var troubleEntry = regexp.MustCompile("(?m)^### `([^`]+)`$")

// TestTroubleshooting: every entry of docs/troubleshooting.md is a message of the program, and what ends a run, or
// refuses a worktree, an image or a host, has an entry.
func TestTroubleshooting(t *testing.T) {
	doc, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for _, m := range troubleEntry.FindAllStringSubmatch(string(doc), -1) {
		if slices.Contains(entries, m[1]) {
			t.Errorf("there are two entries for %q", m[1])
		}
		entries = append(entries, m[1])
	}
	said := programTexts(t)
	if len(entries) < 40 || len(said.due) < 30 {
		t.Fatalf("found %d entries, and %d messages that must have one", len(entries), len(said.due))
	}
	for _, e := range entries {
		if !slices.ContainsFunc(said.all, func(s string) bool { return holdsInOrder(s, strings.Split(e, "…")) }) {
			t.Errorf("no message of the program reads %q", e)
		}
	}
	for text, code := range said.codes {
		for _, m := range regexp.MustCompile("### `([^`]+)`\nExit code ([0-9]+)").FindAllStringSubmatch(string(doc), -1) {
			if want := codesOfRuns[code]; holdsInOrder(text, strings.Split(m[1], "…")) && len(m[1]) > len(text)/2 && m[2] != fmt.Sprint(int(want)) {
				t.Errorf("%q ends with %d, and the page says %s", text, want, m[2])
			}
		}
	}
	for _, text := range said.due {
		if !slices.ContainsFunc(entries, func(e string) bool {
			return holdsInOrder(text, strings.Split(e, "…"))
		}) {
			t.Errorf("the message %q has no entry", text)
		}
	}
}

// holdsInOrder reports whether a text has all pieces, one after the other.
func holdsInOrder(text string, pieces []string) bool {
	for _, p := range pieces {
		p = strings.TrimSpace(p)
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

// codesOfRuns are the exit codes by the names that the program gives them.
var codesOfRuns = map[string]launch.Code{
	"CodeBound": launch.CodeBound, "CodeDrift": launch.CodeDrift, "CodeProof": launch.CodeProof, "CodeEngine": launch.CodeEngine,
	"CodeProxy": launch.CodeProxy, "CodeTimeout": launch.CodeTimeout, "CodeRefused": launch.CodeRefused,
	"CodeCancelled": launch.CodeCancelled, "CodeKilled": launch.CodeKilled,
}

// texts are the string literals of the program. due are those that the page must have, codes the exit codes of
// those that end a run, by the name of the code.
type texts struct {
	all, due []string
	codes    map[string]string
}

func programTexts(t *testing.T) texts {
	t.Helper()
	out := texts{codes: map[string]string{}}
	for _, dir := range []string{"applier", "cmd", "drift", "hclspec", "planner", "providers"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool { out.note(path, n); return true })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (x *texts) note(path string, n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr, *ast.BasicLit:
		if s := literal(n.(ast.Expr)); s != "" {
			x.all = append(x.all, s)
		}
	case *ast.KeyValueExpr: // why a run ended
		key, ok := n.Key.(*ast.Ident)
		if s := literal(n.Value); ok && key.Name == "Reason" && s != "" && filepath.Base(filepath.Dir(path)) == "launch" {
			x.due = append(x.due, s)
		}
	case *ast.CompositeLit:
		var code, reason string
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				key, _ := kv.Key.(*ast.Ident)
				value, _ := kv.Value.(*ast.Ident)
				switch {
				case key != nil && key.Name == "Code" && value != nil:
					code = value.Name
				case key != nil && key.Name == "Reason":
					reason = literal(kv.Value)
				}
			}
		}
		if code != "" && reason != "" {
			x.codes[reason] = code
		}
	case *ast.ValueSpec: // what is wrong with a worktree, an image, the host
		for i, name := range n.Names {
			if strings.HasPrefix(name.Name, "summary") && i < len(n.Values) && filepath.Base(filepath.Dir(path)) == "docker" {
				x.due = append(x.due, literal(n.Values[i]))
			}
		}
	}
}

// literal is the text of a literal, or of several that are put together; … stands for what is no literal.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, _ := strconv.Unquote(e.Value)
			return s
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	}
	return ""
}
