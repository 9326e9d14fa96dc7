package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
)

// RunEvent is one line about a run, for stderr: stdout is the agent's.
func (r *Renderer) RunEvent(e launch.Event) string {
	text := runText(e)
	if text == "" {
		return ""
	}
	p := &page{r: r}
	p.put(bold, string(e.Addr), ": ")
	p.line(plain, text)
	return p.String()
}

func runText(e launch.Event) string {
	switch e.Kind {
	case launch.EventWaiting:
		return "Waiting: " + e.Detail
	case launch.EventConverging:
		return "Applying what differs..."
	case launch.EventRearming:
		return "Arming again, since it has run before..."
	case launch.EventCompared:
		return fmt.Sprintf("Compared with the declaration: %s, nothing differs", plural(e.N, "object"))
	case launch.EventProxyReady:
		return fmt.Sprintf("Proxy is ready after %s [%s]", tenths(e.Took), e.Detail)
	case launch.EventProven:
		return fmt.Sprintf("Sandbox is proven from the inside after %s [%s]", tenths(e.Took), plural(e.N, "check"))
	case launch.EventRunning:
		return "Running" + idOf(e.ID)
	case launch.EventStopping:
		return "Stopping: " + e.Detail
	case launch.EventEnded:
		text := fmt.Sprintf("Ended after %s with exit code %d", tenths(e.Took), e.Code)
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		return text
	case launch.EventEgress:
		if e.Egress == nil {
			return ""
		}
		return "Egress: " + egressText(*e.Egress)
	case launch.EventArmed:
		return "Armed again"
	case launch.EventKept:
		return "Kept as it ended"
	case launch.EventDisposed:
		return "Removed from the engine"
	}
	return ""
}

// tenths is a duration of a run: parts of a second matter there.
func tenths(d time.Duration) string { return fmt.Sprint(d.Round(100 * time.Millisecond)) }

// egressText sums up what went through the proxy and what did not.
func egressText(g launch.Egress) string {
	var parts []string
	for _, h := range sortedKeys(g.Allowed) {
		parts = append(parts, plural(int(g.Allowed[h]), "tunnel")+" to "+h)
	}
	for _, h := range sortedKeys(g.Refused) {
		whom := "to " + h
		switch h {
		case launch.NoTarget:
			whom = "that named no target"
		case launch.Unlisted:
			whom = "that are not listed"
		}
		parts = append(parts, fmt.Sprintf("%d refused %s", g.Refused[h], whom))
	}
	const most = 8
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("%d more hosts", len(parts)-most))
	}
	text := "none"
	if len(parts) > 0 { // a run that got so far has tried the proxy before the agent could
		text = strings.Join(parts, ", ") + " (the proof's own included)"
	}
	if g.Incomplete != "" {
		text += "; the log is incomplete: " + g.Incomplete
	}
	return text
}

// Ended are the last lines of a run. When sandplan decided, the very last one begins with "sandplan:", which no
// line of the agent can pass for: after an agent's own end always a line of ours comes last.
func (r *Renderer) Ended(_ planner.Address, res launch.Result) string {
	p := &page{r: r}
	d := res.Decision
	if d == nil {
		p.record(res.RecordDir)
		return p.String()
	}
	if res.RecordDir != "" {
		p.record(res.RecordDir)
	}
	if len(d.Checks) > 0 {
		p.nl()
		for _, c := range d.Checks {
			p.put(red, "  failed: ")
			p.line(plain, c.Name, ": ", c.Detail)
		}
		p.nl()
	}
	p.line(boldRed, "sandplan: ", d.Error(), " (exit code ", fmt.Sprint(res.Code), ")")
	return p.String()
}

// record says where the record of a run is.
func (p *page) record(dir string) {
	if dir == "" {
		p.line(plain, "No record was written.")
	} else {
		p.line(plain, "Record: ", dir)
	}
}
