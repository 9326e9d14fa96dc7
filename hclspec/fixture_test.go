package hclspec

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
)

// testCatalog is a catalogue like the program's own.
var testCatalog = Catalog{
	Vendors: map[string]CatalogVendor{
		"claude": {Hosts: []string{"api.anthropic.com"}, Credentials: []string{"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY"}, Version: "2.1.332"},
		"codex":  {Hosts: []string{"api.openai.com", "chatgpt.com"}, Credentials: []string{"OPENAI_API_KEY", "auth.json"}, Version: "0.171.0"},
	},
	Phases: map[string]CatalogPhase{
		"planning":  {Tools: []string{"read", "list", "search"}},
		"questions": {Tools: []string{"read", "list", "search"}},
		"review":    {Tools: []string{"read", "list", "search"}, Runners: true},
		"execute":   {Tools: []string{"read", "list", "search", "edit", "write"}, Writable: true, Runners: true},
		"fix":       {Tools: []string{"read", "list", "search", "edit", "write"}, Writable: true, Runners: true},
	},
}

// A fixture is a configuration in testdata. Comments in it say what is expected:
//
//	x = 1        # ERROR: summary          on the line where the diagnostic begins
//	# ELSEWHERE -var=x:1 ERROR: summary    in a place that can hold no comment
//	# OPTION var NAME=VALUE                and env, var-file, validate, version, workspace
type fixture struct {
	path    string
	options map[string][]string
	expect  []string // file:line severity: summary
}

var (
	expectComment    = regexp.MustCompile(`# (ERROR|WARNING): ([^#\n]+)`)
	elsewhereComment = regexp.MustCompile(`(?m)^# ELSEWHERE (\S+) (ERROR|WARNING): (.+)$`)
	optionComment    = regexp.MustCompile(`(?m)^# OPTION (\S+) ?(.*)$`)
)

func fixtures(t testing.TB) []fixture {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var out []fixture
	for _, e := range entries {
		name := e.Name()
		if name == "fuzz" || name == "files" || strings.HasSuffix(name, ".lock.hcl") || strings.HasSuffix(name, ".spvars.hcl") || !e.IsDir() && !strings.HasSuffix(name, ".hcl") {
			continue
		}
		out = append(out, readFixture(t, filepath.Join("testdata", name)))
	}
	return out
}

func readFixture(t testing.TB, path string) fixture {
	f := fixture{path: path, options: map[string][]string{}}
	files := []string{path, strings.TrimSuffix(path, ".hcl") + ".lock.hcl"}
	if info, _ := os.Stat(path); info.IsDir() {
		files, _ = filepath.Glob(path + "/*.hcl") // the lock file too
	}
	for i := 0; i < len(files); i++ {
		src, err := os.ReadFile(files[i])
		if err != nil {
			continue // no lock file
		}
		for _, m := range optionComment.FindAllStringSubmatch(string(src), -1) {
			f.options[m[1]] = append(f.options[m[1]], m[2])
			if m[1] == "var-file" {
				files = append(files, m[2])
			}
		}
		for _, m := range elsewhereComment.FindAllStringSubmatch(string(src), -1) {
			f.expect = append(f.expect, fmt.Sprintf("%s %s: %s", m[1], m[2], m[3]))
		}
		for n, line := range strings.Split(string(src), "\n") {
			if strings.HasPrefix(line, "# ELSEWHERE") {
				continue
			}
			for _, m := range expectComment.FindAllStringSubmatch(line, -1) {
				f.expect = append(f.expect, fmt.Sprintf("%s:%d %s: %s", files[i], n+1, m[1], strings.TrimSpace(m[2])))
			}
		}
	}
	sort.Strings(f.expect)
	return f
}

func (f fixture) load(t testing.TB) (*Spec, hcl.Diagnostics) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	first := func(name string) string { return strings.Join(f.options[name], "") }
	vars := Vars{Env: f.options["env"], Unknown: f.options["validate"] != nil}
	for _, v := range f.options["var"] {
		vars.Args = append(vars.Args, VarArg{Assign: v})
	}
	for _, v := range f.options["var-file"] {
		vars.Args = append(vars.Args, VarArg{File: v})
	}
	spec, diags := Load(Source{Path: f.path, Cwd: cwd, Workspace: first("workspace"), Version: first("version")}, vars, testCatalog)
	if !diags.HasErrors() && !vars.Unknown {
		_, more := spec.EvalOutputs(nil)
		diags = append(diags, more...)
		diags = append(diags, spec.EvalChecks(nil)...)
	}
	return spec, diags
}

func describe(diags hcl.Diagnostics) []string {
	var out []string
	for _, d := range diags {
		severity := "ERROR"
		if d.Severity == hcl.DiagWarning {
			severity = "WARNING"
		}
		if d.Subject == nil {
			out = append(out, fmt.Sprintf("without a range %s: %s", severity, d.Summary))
			continue
		}
		out = append(out, fmt.Sprintf("%s:%d %s: %s", d.Subject.Filename, d.Subject.Start.Line, severity, d.Summary))
	}
	sort.Strings(out)
	return out
}

func TestFixtures(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(filepath.Base(f.path), func(t *testing.T) {
			_, diags := f.load(t)
			if diff := cmp.Diff(f.expect, describe(diags)); diff != "" {
				t.Errorf("diagnostics differ (- expected, + found):\n%s\n%s", diff, details(diags))
			}
		})
	}
}

func details(diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&b, "%s: %s\n    %s\n", d.Subject, d.Summary, d.Detail)
	}
	return b.String()
}

// TestEverySummaryHasAFixture fails for a summary that nothing shows.
func TestEverySummaryHasAFixture(t *testing.T) {
	shown := map[string]bool{}
	for _, f := range fixtures(t) {
		for _, e := range f.expect {
			_, summary, _ := strings.Cut(e, ": ")
			shown[summary] = true
		}
	}
	for _, c := range unfixable(t) {
		shown[c] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "summary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		count++
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil || !shown[text] {
			t.Errorf("no fixture shows %s (%q)", v.Names[0], text)
		}
		return true
	})
	if count < 50 {
		t.Errorf("only %d summaries found in summary.go", count)
	}
}
