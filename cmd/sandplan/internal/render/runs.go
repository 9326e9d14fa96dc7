package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
)

// RunLine is one run of a list: Record is nil when there is none that can be read, and Note says why.
type RunLine struct {
	ID     string
	Record *launch.Record
	Note   string
}

// Runs lists runs, one a line.
func (r *Renderer) Runs(runs []RunLine) string {
	p := &page{r: r}
	for _, l := range runs {
		if l.Record == nil {
			p.put(plain, l.ID, "  ")
			p.line(faint, l.Note)
			continue
		}
		rec := l.Record
		p.put(plain, l.ID, "  ", fmt.Sprintf("%-28s", subjectOf(rec)), "  ")
		p.line(plain, fmt.Sprintf("%8s  ", tenths(tookOf(rec))), endOf(rec))
	}
	return p.String()
}

// RunRecord explains one run to a person.
func (r *Renderer) RunRecord(rec *launch.Record) string {
	p := &page{r: r}
	row := func(label, text string) {
		if text != "" {
			p.put(bold, fmt.Sprintf("%-13s", label))
			p.line(plain, text)
		}
	}
	row("Run", rec.ID)
	row("Of", subjectOf(rec)+" (vendor "+rec.Vendor+", phase "+rec.Phase+") in "+rec.Scope)
	row("Began", rec.Began.UTC().Format(time.RFC3339))
	if rec.Running != nil {
		row("Command ran", tenths(rec.Ended.Sub(*rec.Running))+", after "+tenths(rec.Running.Sub(rec.Began))+" of preparation")
	} else {
		row("Command ran", "never: nothing of the agent got its prompt")
	}
	row("Ended", endOf(rec))
	row("Why", rec.Exit.Reason)
	for _, f := range rec.Exit.Findings {
		p.line(plain, "             - ", string(f.Addr), " ", findingLine(f.Path(), f.Text))
	}
	for _, c := range rec.Exit.Checks {
		p.line(plain, "             - ", c.Name, ": ", c.Detail)
	}
	row("Command", strings.Join(rec.Argv, " "))
	row("Tools", strings.Join(rec.Tools, ", "))
	mode := "read-only"
	if rec.Writable {
		mode = "writable"
	}
	if rec.Worktree != "" {
		row("Worktree", rec.Worktree+" ("+mode+")")
	}
	row("", treeText(rec))
	row("Might reach", orNone(strings.Join(rec.Hosts, ", ")))
	row("Reached", egressText(rec.Egress)+fmt.Sprintf("; %d bytes up, %d down", rec.Egress.Up, rec.Egress.Down))
	if rec.Report != nil {
		row("Proof", plural(len(rec.Report.Checks), "check")+" from the inside before the prompt")
	}
	if len(rec.Objects) > 0 {
		row("Compared", plural(len(rec.Objects), "object")+" with the declaration before the start")
	}
	row("Left", rec.Unsettled)
	files := rec.Files()
	for _, what := range sortedKeys(files) {
		row(what, files[what])
	}
	return p.String()
}

func findingLine(path, text string) string {
	if text == "" {
		return path + " differed"
	}
	return text
}

// subjectOf is what ran.
func subjectOf(rec *launch.Record) string {
	if rec.Runner != "" {
		return string(rec.Invocation.Runner(rec.Runner))
	}
	return string(rec.Invocation)
}

func tookOf(rec *launch.Record) time.Duration { return rec.Ended.Sub(rec.Began) }

// endOf says how a run ended and who decided that.
func endOf(rec *launch.Record) string {
	if rec.Exit.By == launch.ByAgent {
		return fmt.Sprintf("exit code %d, the command's own", rec.Exit.Code)
	}
	return fmt.Sprintf("exit code %d, decided by sandplan", rec.Exit.Code)
}

// treeText says what became of the worktree.
func treeText(rec *launch.Record) string {
	t := rec.Tree
	switch {
	case t == nil:
		return ""
	case t.Failed != "":
		return "could not be looked over: " + t.Failed
	case t.Before == nil || t.After == nil:
		return ""
	case t.Before.SHA256 == t.After.SHA256:
		return fmt.Sprintf("unchanged: %.12s (%s)", t.Before.SHA256, plural(t.Before.Entries, "entry"))
	}
	text := fmt.Sprintf("changed: %.12s before, %.12s after", t.Before.SHA256, t.After.SHA256)
	if len(t.Changes) > 0 {
		text += fmt.Sprintf("; %d that act on this machine", len(t.Changes))
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
