package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Usage is a mistake on the command line, and where to read on.
func (r *Renderer) Usage(message, command string) string {
	p := &page{r: r}
	p.put(boldRed, "Error: ")
	p.line(bold, message)
	p.line(plain, "For the options and an example: ", command, " -help")
	return p.String()
}

// LockText says who holds a lock, and what can be done.
func LockText(i planner.LockInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "It is held by:\n    operation  %s\n    who        %s (pid %d)\n    since      %s\n    version    %s\n    lock ID    %s\n",
		Clean(i.Operation), Clean(i.Who), i.PID, i.Created.UTC().Format(time.RFC3339), Clean(i.Version), shortID(i.ID))
	fmt.Fprintf(&b, "Wait for it to end, or give it time with -lock-timeout=1m. Only if nothing runs there any more: sandplan force-unlock %s", shortID(i.ID))
	return b.String()
}

// AskVariable is the question for the value of a variable.
func (r *Renderer) AskVariable(name, description string, sensitive bool) string {
	p := &page{r: r}
	p.line(bold, "var.", name)
	if description != "" {
		p.paragraph(plain, "  ", Clean(description))
	}
	if sensitive {
		p.line(faint, "  It is sensitive, and does not show while you type.")
	}
	p.nl()
	p.put(bold, "  Its value: ")
	return p.String()
}

// LineDiff shows which lines of a file change.
func (r *Renderer) LineDiff(old, new string) string {
	p := &page{r: r}
	for _, n := range lineDifference(old, new, 0) {
		st, sym := n.sym.style(), string(n.sym)
		if n.note {
			st = faint
		}
		p.line(st, fmt.Sprintf("%2s ", sym), untab(n.text))
	}
	return p.String()
}

// Interrupted is said at the first and at the second Ctrl-C.
func (r *Renderer) Interrupted(n int) string {
	p := &page{r: r}
	p.nl()
	if n == 1 {
		p.line(boldAmber, "Interrupted: what is under way finishes, nothing new starts. Press Ctrl-C again to break it off.")
	} else {
		p.line(boldRed, "Interrupted twice: breaking off. What was under way may be half made; the next plan shows it.")
	}
	return p.String()
}

// Approval is the question before a plan is carried out.
func (r *Renderer) Approval(pl *planner.Plan) string {
	p := &page{r: r}
	p.nl()
	if pl.Destroy {
		what := "everything"
		for _, c := range pl.Changes { // a target leaves some
			if c.Action == planner.ActionNoOp && c.Object.ID != "" {
				what = "this"
			}
		}
		p.line(bold, "Shall sandplan destroy ", what, " of ", pl.Scope.String(), " on this engine?")
		p.line(plain, "  There is no undo. Worktrees and pinned images stay as they are.")
	} else {
		p.line(bold, "Shall sandplan do this to ", pl.Scope.String(), " on this engine?")
	}
	p.line(plain, `  Only "yes" is taken for a yes.`)
	p.nl()
	p.put(bold, "  Your answer: ")
	return p.String()
}

// Cancelled is said when the answer was not yes.
func (r *Renderer) Cancelled(pl *planner.Plan) string {
	p := &page{r: r}
	what := "Apply"
	if pl.Destroy {
		what = "Destroy"
	}
	p.line(bold, what, " cancelled.")
	return p.String()
}

// Waiting is said when a lock is held by somebody else and there is time to wait for it.
func (r *Renderer) Waiting(what string, i planner.LockInfo) string {
	p := &page{r: r}
	p.line(plain, "Waiting for the lock of ", what, ", held by ", i.Who, " (", i.Operation, ", pid ", fmt.Sprint(i.PID), ")...")
	return p.String()
}

// Applied is the last line of an apply.
func (r *Renderer) Applied(added, changed, destroyed int) string {
	p := &page{r: r}
	p.nl()
	p.line(boldGreen, fmt.Sprintf("Apply complete! Resources: %d added, %d changed, %d destroyed.", added, changed, destroyed))
	return p.String()
}

// Destroyed is the last line of a destroy.
func (r *Renderer) Destroyed(n int) string {
	p := &page{r: r}
	p.nl()
	p.line(boldGreen, fmt.Sprintf("Destroy complete! Resources: %d destroyed.", n))
	return p.String()
}

// Ignored says how many findings a report leaves out because it was told to.
func (r *Renderer) Ignored(n int) string {
	if n == 0 {
		return ""
	}
	p := &page{r: r}
	p.line(plain, plural(n, "finding"), " left out because of -ignore.")
	return p.String()
}

// RunInterrupted is said at the first and at the second Ctrl-C of a run.
func (r *Renderer) RunInterrupted(n int) string {
	p := &page{r: r}
	p.nl()
	if n == 1 {
		p.line(boldAmber, "Interrupted: asking the agent to stop. Press Ctrl-C again to kill it.")
	} else {
		p.line(boldRed, "Interrupted twice: killing the agent.")
	}
	return p.String()
}
