package render

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// expression parses a piece of the example, as the loader has it in diagnostics.
func (e example) expression(text string) hcl.Expression {
	e.t.Helper()
	rng := e.at(text)
	expr, diags := hclsyntax.ParseExpression([]byte(text), e.name, rng.Start)
	if diags.HasErrors() {
		e.t.Fatal(diags)
	}
	return expr
}

func brokenDiagnostics(e example) hcl.Diagnostics {
	object := func(root, name string, v cty.Value) *hcl.EvalContext {
		return &hcl.EvalContext{Variables: map[string]cty.Value{root: cty.ObjectVal(map[string]cty.Value{name: v})}}
	}
	bad := func(summary, at, detail string) *hcl.Diagnostic {
		rng := e.at(at)
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &rng}
	}
	timeout := bad("Not a duration", `"${var.minutes} minutes"`,
		`The value is "30 minutes". A duration is a number and a unit, as in "90s", "30m" or "1h30m".`)
	timeout.Expression = e.expression(`"${var.minutes} minutes"`)
	timeout.EvalContext = object("var", "minutes", cty.NumberIntVal(30))
	tree := bad("Worktree not found", `"../checkout/${each.key}"`,
		"There is no directory /home/dev/checkout/auth. A worktree is an existing directory: create it, or name another one.")
	tree.Expression = e.expression(`"../checkout/${each.key}"`)
	tree.EvalContext = object("each", "key", cty.StringVal("auth"))
	tree.Extra = About(login)
	return hcl.Diagnostics{
		timeout, tree,
		bad("Unsupported argument", "modell", `An argument named "modell" is not expected here. Did you mean "model"?`),
		{Severity: hcl.DiagWarning, Summary: "Value for undeclared variable", Detail: `No variable "minuets" is declared. Did you mean "minutes"?`,
			Subject: &hcl.Range{Filename: "sandplan.spvars.hcl", Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: 8, Byte: 7}}},
	}
}

func TestDiagnostics(t *testing.T) {
	e := readExample(t, "broken.hcl")
	r := e.renderer()
	r.Sources["sandplan.spvars.hcl"] = []byte("minuets = 45\n")
	errs, warnings := Split(brokenDiagnostics(e))
	got := r.Warnings(warnings, false) + r.Problems(errs, warnings)
	golden(t, filepath.Join(outputDir, "validate-errors.txt"), got)
}

func TestDiagnosticsInColor(t *testing.T) {
	e := readExample(t, "broken.hcl")
	r := e.renderer()
	r.Color, r.Width = true, 60
	errs, _ := Split(brokenDiagnostics(e))
	golden(t, "testdata/diagnostics-color.txt", strings.ReplaceAll(r.Diagnostics(errs), "\x1b", "␛"))
}

// TestLongSummary: a summary breaks within its box, and stays one line where programs look for it.
func TestLongSummary(t *testing.T) {
	diags := hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "There is something of a rather long name in the way", Detail: "Remove it."}}
	boxed := (&Renderer{Color: true, Width: 30}).Diagnostics(diags)
	lines := strings.Split(strings.TrimSpace(boxed), "\n")
	if len(lines) != 6 {
		t.Errorf("a summary of two lines, a detail and their frame are %d lines:\n%s", len(lines), boxed)
	}
	for _, l := range lines[1 : len(lines)-1] {
		if !strings.Contains(l, "│") || strings.Count(l, "Error:") > 1 {
			t.Errorf("a line without its frame: %q", l)
		}
	}
	if plain := (&Renderer{Width: 30}).Diagnostics(diags); !strings.HasPrefix(plain, "Error: There is something of a rather long name in the way\n") {
		t.Errorf("without colour: %q", plain)
	}
}

// TestSnippet: offsets are bytes, what a terminal shows are cells, and a range need not fit its file.
func TestSnippet(t *testing.T) {
	for _, tt := range []struct {
		src        string
		start, end int
		line       int
		want       string
		reason     string
	}{
		{"a = 1\n", 4, 5, 1, "   1: a = 1\n          ^\n", "plain"},
		{"\tname = \"x\"\n", 8, 11, 1, "   1:     name = \"x\"\n                 ^^^\n", "a tab is four columns"},
		{"ä = \"日本\"\n", 5, 13, 1, "   1: ä = \"日本\"\n          ^^^^^^\n", "wide characters take two columns"},
		{"a = \"\x1b[31m\"\r\n", 4, 9, 1, "   1: a = \"\\x1b[31m\"\n          ^^^^^^^^\n", "control characters are marked as they are shown"},
		{"a = 1\n", 40, 90, 1, "   1: a = 1\n           ^\n", "beyond the line: its end is marked"},
		{"", 0, 0, 1, "", "an empty file has no lines"},
	} {
		p := &page{r: &Renderer{}}
		p.source([]byte(tt.src), hcl.Range{Start: hcl.Pos{Line: tt.line, Byte: tt.start}, End: hcl.Pos{Line: tt.line, Byte: tt.end}})
		if got := p.String(); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.reason, got, tt.want)
		}
	}
}

// TestValuesOfSensitiveVariables: a diagnostic may say that a value is sensitive, never what it is.
func TestValuesOfSensitiveVariables(t *testing.T) {
	e := readExample(t, "broken.hcl")
	rng := e.at(`"${var.minutes} minutes"`)
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "S", Detail: "D.", Subject: &rng, Expression: e.expression(`"${var.minutes} minutes"`),
		EvalContext: &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
			"minutes": cty.StringVal("hunter2").Mark("sensitive")})}}}
	got := e.renderer().Diagnostics(hcl.Diagnostics{d})
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "var.minutes has a sensitive value") {
		t.Errorf("rendered:\n%s", got)
	}
}

// TestFailedCall: a function that failed is shown with the names of its parameters.
func TestFailedCall(t *testing.T) {
	const src = `regex(var.pattern, "a")`
	expr, diags := hclsyntax.ParseExpression([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	ctx := (&hcl.EvalContext{Functions: map[string]function.Function{"regex": stdlib.RegexFunc}}).NewChild()
	ctx.Variables = map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"pattern": cty.StringVal("(")})}
	_, diags = expr.Value(ctx)
	got := (&Renderer{Sources: map[string][]byte{"x.hcl": []byte(src)}}).Diagnostics(diags)
	if want := "      where var.pattern is \"(\"\n      while calling regex(pattern, string)\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
}

// TestErrorsOfOnePlace: what is wrong with each instance of a block is told once, and of which ones in a list.
func TestErrorsOfOnePlace(t *testing.T) {
	diags := func(n int) hcl.Diagnostics {
		var out hcl.Diagnostics
		for i := range n {
			out = append(out, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Refused", Detail: fmt.Sprintf("/w/%d is no repository. Run git init.", i),
				Subject: &hcl.Range{Filename: "x.hcl", Start: hcl.Pos{Line: 1, Column: 1}}})
		}
		return append(out, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Refused", Detail: "Elsewhere.", Subject: &hcl.Range{Filename: "y.hcl"}})
	}
	if got := (&Renderer{}).Diagnostics(diags(2)); strings.Count(got, "Error: Refused") != 3 || strings.Contains(got, "The same") {
		t.Errorf("two are two:\n%s", got)
	}
	got := (&Renderer{}).Diagnostics(diags(20))
	if strings.Count(got, "Error: Refused") != 2 || strings.Count(got, "git init") != 1 || !strings.Contains(got, "/w/0 is no repository. Run git init.\n\nThe same holds here:\n  /w/1 is no repository\n") ||
		!strings.Contains(got, "  /w/10 is no repository\n  and 9 more\n") {
		t.Errorf("twenty are one and a list:\n%s", got)
	}
}

// TestWarningsAreConsolidated: forty warnings of one kind are one text and a number.
func TestWarningsAreConsolidated(t *testing.T) {
	var diags hcl.Diagnostics
	for i := range 4 {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Same", Detail: "Text.",
			Subject: &hcl.Range{Filename: "x.hcl", Start: hcl.Pos{Line: i + 1, Column: 1, Byte: i}}})
	}
	got := (&Renderer{}).Diagnostics(diags)
	if strings.Count(got, "Warning: Same") != 1 || !strings.Contains(got, "(and 3 more like it)") {
		t.Errorf("rendered:\n%s", got)
	}
	if short := (&Renderer{}).Warnings(diags[:1], true); short != "Warning: Same (x.hcl line 1)\n\n" {
		t.Errorf("short form: %q", short)
	}
}
