package markdown

import (
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/audit"
	"github.com/sandplan/sandplan/planner"
)

// Drift is an audit as a comment or a step summary.
func Drift(a audit.Audit) string {
	t := &text{}
	t.say("### sandplan drift: %s\n\n", code(a.Scope.String()))
	switch {
	case len(a.Errors) > 0 || a.Code == 1:
		t.say("**:x: The audit is not whole.**\n\n")
		t.errorList(a)
	case len(a.Findings) == 0:
		t.say("**No drift.** %s as declared.", objects(len(a.Objects)))
	default:
		t.say("**%s**", render.Summarise(a.Findings))
	}
	if a.Ignored > 0 {
		t.say(" %d findings were left out, as asked.", a.Ignored)
	}
	t.say("\n\n")
	if a.Taken != "" {
		t.say("Of a snapshot that was taken at %s.\n\n", code(a.Taken))
	}
	for _, w := range a.Warnings {
		t.say("> %s\n\n", code(clip(w)))
	}
	var order []planner.Address
	texts := map[planner.Address][]string{}
	kinds := map[planner.Address]string{}
	for _, f := range a.Findings {
		if texts[f.Addr] == nil {
			order = append(order, f.Addr)
			kinds[f.Addr] = string(f.Kind) // sorted: the worst first
		}
		line := fmt.Sprintf("%-8s  %s", f.Kind, render.FindingText(f))
		if f.Decl.Filename != "" {
			line += fmt.Sprintf("  # %s:%d", a.URI(f.Decl.Filename), f.Decl.Start.Line)
		}
		texts[f.Addr] = append(texts[f.Addr], line)
	}
	for _, addr := range order {
		t.part(foldBlock(htmlCode(string(addr))+": "+kinds[addr], "", strings.Join(texts[addr], "\n")))
	}
	return t.end("sandplan drift")
}

func (t *text) errorList(a audit.Audit) {
	var items []string
	for _, d := range a.Errors {
		items = append(items, code(clip(d.Summary+": "+strings.Join(strings.Fields(d.Detail), " "))))
	}
	t.list(items, 30)
}

func objects(n int) string {
	if n == 1 {
		return "The object of the scope is"
	}
	return fmt.Sprintf("The %d objects of the scope are", n)
}
