package markdown

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// PlanInput is what the text of a plan is made from.
type PlanInput struct {
	Plan *planner.Plan
	// Base is the declaration that it was compared with, "" for an engine.
	Base string
	// Permissions are those that nobody has read yet.
	Permissions []permission.Report
	// Renamed are invocations that are gone and whose names may have changed.
	Notes []string
	// Errors are why the plan must not be applied.
	Errors hcl.Diagnostics
	// Denied says that what is wider fails the command.
	Denied bool
}

// width of the code blocks: what a pull request shows without a scroll bar.
const width = 100

// Plan is a plan as a comment.
func Plan(in PlanInput) string {
	t := &text{}
	r := &render.Renderer{Width: width, NoHints: true}
	t.say("### sandplan plan: %s\n\n", code(in.Plan.Scope.String()))
	if in.Plan.Empty() {
		t.say("**No changes.**")
	} else {
		t.say("**%s**", render.Summary(in.Plan))
	}
	if in.Base != "" {
		t.say(" Compared with %s; no engine was asked.", code(in.Base))
	}
	t.say("\n\n")
	t.wider(in)
	t.errors(in.Errors)
	for _, note := range in.Notes {
		t.say("> %s\n\n", code(clip(note)))
	}
	if changed := r.Changed(in.Plan); changed != "" {
		t.part(foldBlock("<b>Changed behind sandplan's back</b>", "diff", diffLines(changed)))
	}
	for _, g := range r.Groups(in.Plan) {
		t.part(foldBlock(groupSummary(g), "diff", diffLines(g.Text)+same(g.Same)))
	}
	for _, rep := range in.Permissions {
		text := r.Permissions([]permission.Report{rep})
		t.part(foldBlock("What the agent of "+htmlCode(string(rep.Invocation))+" may do", "", text))
	}
	return t.end("sandplan plan")
}

// wider comes before everything else: it is what a reviewer has to see.
func (t *text) wider(in PlanInput) {
	var items []string
	for _, rep := range in.Permissions {
		if rep.New {
			items = append(items, code(clip(string(rep.Invocation)))+" is new: all that it may do is more than before")
			continue
		}
		for _, w := range rep.Widened {
			items = append(items, code(clip(string(rep.Invocation)))+": "+code(clip(render.WideningText(w))))
		}
	}
	if len(items) == 0 {
		if in.Denied {
			t.say("No agent may do more than before.\n\n")
		}
		return
	}
	head := "Agents may do more than before"
	if in.Denied {
		head += ", which is not allowed here"
	}
	t.say("**:warning: %s:**\n\n", head)
	t.list(items, 30)
	t.say("\n")
}

func (t *text) errors(diags hcl.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	t.say("**:x: This plan cannot be applied:**\n\n")
	var items []string
	for _, d := range diags {
		items = append(items, code(clip(strings.TrimSpace(d.Summary+": "+strings.Join(strings.Fields(d.Detail), " ")))))
	}
	t.list(items, 30)
	t.say("\n")
}

func groupSummary(g render.GroupText) string {
	add, change, destroy := g.Actions.Counts()
	var counts []string
	for _, c := range []struct {
		n    int
		verb string
	}{{add, "add"}, {change, "change"}, {destroy, "destroy"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d to %s", c.n, c.verb))
		}
	}
	name := "shared by all invocations"
	if g.Addr != "" {
		name = htmlCode(string(g.Addr))
		if g.Title != "" {
			name += " (" + htmlCode(g.Title) + ")"
		}
	}
	out := name + ": " + strings.Join(counts, ", ")
	if len(g.Same) > 0 {
		out += fmt.Sprintf(", and the same for %d more invocations", len(g.Same))
	}
	return out
}

func same(addrs []planner.Address) string {
	if len(addrs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# The same happens to:")
	for _, a := range addrs {
		b.WriteString("\n#   " + string(a))
	}
	return b.String()
}
