package markdown

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/audit"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// hostile are texts that try to be more than text: names may hold any of it.
var hostile = []string{
	"@everybody", "`@team`", "``` \n@a", "~~~", "</code></summary></details><script>alert(1)</script>", "<!-- ", "![x](http://evil.example/?)",
	"[x](javascript:alert(1))", "| a | b |", "# heading", "\n\n# heading", "`", "``", "a`b", " `x` ", "\x1b[31m", "\u202eevil", "$(id)", "&lt;b&gt;", "#123", "<img src=x>", "",
}

// rest is what is left of a document when code is taken out of it, by the rules of CommonMark: fenced blocks end
// with a fence as long, spans with as many backticks, and nothing within either is markup.
func rest(t *testing.T, doc string) string {
	t.Helper()
	var out []string
	fence := ""
	opening := regexp.MustCompile("^(`{3,})[a-z]*$")
	for _, line := range strings.Split(doc, "\n") {
		switch m := opening.FindStringSubmatch(line); {
		case fence != "" && strings.HasPrefix(line, fence) && strings.Trim(line, "`") == "":
			fence = ""
		case fence != "":
		case m != nil:
			fence = m[1]
		default:
			out = append(out, withoutSpans(line))
		}
	}
	if fence != "" {
		t.Errorf("a code block never ends:\n%s", doc)
	}
	return strings.Join(out, "\n")
}

func withoutSpans(line string) string {
	runs := regexp.MustCompile("`+")
	for {
		open := runs.FindStringIndex(line)
		if open == nil {
			return line
		}
		n := open[1] - open[0]
		end := -1
		for _, r := range runs.FindAllStringIndex(line[open[1]:], -1) {
			if r[1]-r[0] == n {
				end = open[1] + r[1]
				break
			}
		}
		if end < 0 {
			return line // no span: the backticks are text, and what follows is markup
		}
		line = line[:open[0]] + line[end:]
	}
}

var folds = regexp.MustCompile(`<details><summary>(?:<b>[^<]*</b>|[^<]|<code>[^<]*</code>)*</summary>|</details>`)

// tame fails when hostile text got out of its code span.
func tame(t *testing.T, doc string) {
	t.Helper()
	left := folds.ReplaceAllString(rest(t, doc), "")
	for _, bad := range []string{"<", "@", "](", "![", "\x1b", "\u202e", "# heading", "javascript:"} {
		if strings.Contains(left, bad) {
			t.Errorf("%q is not in code:\n%s", bad, left)
		}
	}
	if n, m := strings.Count(rest(t, doc), "<details>"), strings.Count(rest(t, doc), "</details>"); n != m {
		t.Errorf("%d parts are opened and %d closed", n, m)
	}
}

func hostilePlan(name string) *planner.Plan {
	addr := planner.InvocationAddress("x", name)
	field := planner.Field{Path: name, Label: name, Value: planner.JSON(name), Show: planner.Headline}
	changed := planner.Mismatch{Field: field, Want: planner.JSON(name + "\n" + name), Got: planner.JSON([]string{name})}
	return &planner.Plan{
		Scope: planner.Scope{Project: name, Workspace: name},
		Changes: []planner.Change{{Addr: addr.With(planner.PartAgent), Title: name, Kind: planner.KindAgent, Action: planner.ActionReplace,
			Reasons: []planner.Reason{{Code: planner.ReasonDrift, Text: name}}, Before: []planner.Field{field}, After: []planner.Field{{Path: name, Value: planner.JSON("x")}},
			Object: planner.Object{ID: name}}},
		Findings: []planner.Finding{{Kind: planner.FindingDrift, Addr: addr, Mismatch: &changed}, {Kind: planner.FindingDrift, Addr: addr, Text: name}},
	}
}

// TestHostileNames: no name becomes markup, whatever it holds.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		set := permission.Set{Invocation: planner.InvocationAddress("x", name), Image: name, User: name, Read: []string{name}, Command: []string{name}}
		wider := permission.Report{Set: set, Widened: []permission.Widening{{What: "reach", To: name, Because: name}}}
		tame(t, Plan(PlanInput{Plan: hostilePlan(name), Base: name, Notes: []string{name}, Denied: true,
			Permissions: []permission.Report{wider, {Set: set, New: true}},
			Errors:      hcl.Diagnostics{{Summary: name, Detail: name}}}))
		tame(t, Drift(audit.Audit{Scope: planner.Scope{Project: name}, Findings: hostilePlan(name).Findings, Warnings: []string{name}, Code: 2,
			Errors: hcl.Diagnostics{{Summary: name, Detail: name}}, URI: func(s string) string { return s }, Taken: name}))
	}
}

// TestLimit: however long a plan is, it is a comment, and says what is missing.
func TestLimit(t *testing.T) {
	pl := &planner.Plan{Scope: planner.Scope{Project: "p", Workspace: "default"}}
	var reports []permission.Report
	for i := range 500 {
		inv := planner.InvocationAddress("job", i)
		// Each is another one, so that none stands for the others.
		pl.Changes = append(pl.Changes, planner.Change{Addr: inv.With(planner.PartAgent), Kind: planner.KindAgent, Action: planner.ActionCreate, Title: fmt.Sprint("phase.", i),
			After: []planner.Field{{Path: "a", Value: planner.JSON(strings.Repeat("`ü", 400)), Show: planner.Headline}}})
		reports = append(reports, permission.Report{Set: permission.Set{Invocation: inv}, New: true})
	}
	doc := Plan(PlanInput{Plan: pl, Permissions: reports})
	if len(doc) > Limit {
		t.Errorf("%d bytes, the most is %d", len(doc), Limit)
	}
	if len(doc) < Limit/2 || !strings.Contains(doc, "have no room in a comment") || !strings.HasPrefix(doc, "### sandplan plan") || !strings.Contains(doc, "**Plan: 500 to add") {
		t.Errorf("the summary comes first, and what is missing is said at the end: %s … %s", doc[:200], doc[len(doc)-200:])
	}
	tame(t, doc)
	pl.Changes = pl.Changes[:1]
	pl.Changes[0].After[0].Value = planner.JSON(strings.Repeat("x", 3*Limit))
	if doc := Plan(PlanInput{Plan: pl}); len(doc) > Limit {
		t.Errorf("one endless value: %d bytes", len(doc))
	}
	var findings []planner.Finding
	for i := range 2000 {
		findings = append(findings, planner.Finding{Kind: planner.FindingDrift, Addr: planner.InvocationAddress("job", i), Text: strings.Repeat("y", 100)})
	}
	if doc := Drift(audit.Audit{Findings: findings, Code: 2, URI: func(s string) string { return s }}); len(doc) > Limit || !strings.Contains(doc, "have no room") {
		t.Errorf("2000 findings: %d bytes", len(doc))
	}
}

// TestVerdicts: each outcome can be told from the first lines.
func TestVerdicts(t *testing.T) {
	empty := &planner.Plan{Scope: planner.Scope{Project: "p", Workspace: "default"}}
	uri := func(s string) string { return s }
	drifted := []planner.Finding{{Kind: planner.FindingDrift, Addr: planner.AddrUplink, Text: "is missing"}}
	for _, tt := range []struct{ doc, want, never, reason string }{
		{Plan(PlanInput{Plan: empty}), "**No changes.**", ":warning:", "nothing differs"},
		{Plan(PlanInput{Plan: empty, Base: "main", Denied: true}), "No agent may do more than before.", ":warning:", "compared with a base"},
		{Plan(PlanInput{Plan: empty, Denied: true, Permissions: []permission.Report{{New: true}}}), "not allowed here", "No agent", "wider"},
		{Drift(audit.Audit{URI: uri}), "**No drift.**", ":x:", "clean"},
		{Drift(audit.Audit{URI: uri, Code: 1}), "The audit is not whole", "No drift", "an error without findings"},
		{Drift(audit.Audit{URI: uri, Code: 2, Findings: drifted}), "1 object was changed", "No drift", "drift"},
	} {
		if !strings.Contains(tt.doc, tt.want) || strings.Contains(tt.doc, tt.never) {
			t.Errorf("%s: %s", tt.reason, tt.doc)
		}
	}
}

// TestDiffLines: symbols stand where a block of the language diff has its own.
func TestDiffLines(t *testing.T) {
	in := "  # a will be created\n  + agent {\n      ~ x = 1 -> 2\n-/+ b {\n      - gone\n    }"
	want := "#   a will be created\n+  agent {\n!      x = 1 -> 2\n!b {\n-      gone\n     }"
	if got := diffLines(in); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
