package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/morikuni/aec"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
)

// Live is the part of a terminal below what is printed: it is drawn again and again, while lines that stay go
// above it. Erase and Draw return what to write; the cursor then stands below the last line.
type Live struct{ drawn int }

// Erase takes away what was drawn, and whatever the terminal itself has put below it (^C).
func (l *Live) Erase() string {
	if l.drawn == 0 {
		return ""
	}
	n := uint(l.drawn)
	l.drawn = 0
	return aec.EmptyBuilder.Up(n).Column(0).EraseDisplay(aec.EraseModes.Tail).ANSI.String()
}

// Shown reports whether something is drawn.
func (l *Live) Shown() bool { return l.drawn > 0 }

// Draw puts lines below what is printed. Each of them has to fit the width, or erasing would miss its rest.
func (l *Live) Draw(lines []string) string {
	l.drawn = len(lines)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// spinner moves while something goes on.
var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Running is one line about an operation under way, no wider than the terminal. frame counts the drawings.
func (r *Renderer) Running(e applier.Event, elapsed time.Duration, frame int) string {
	p := &page{r: r}
	tail := fmt.Sprintf(" %s... %s", words(e.Kind, e.Op).start, seconds(elapsed))
	p.put(cyan, spinner[frame%len(spinner)], " ")
	p.put(bold, cutCells(string(e.Addr), r.width()-cells(tail)-4))
	p.put(faint, tail)
	return p.String()
}

// RunUnderWay is one line about a run that goes on: what it does now, and for how long it has been at it.
func (r *Renderer) RunUnderWay(addr planner.Address, doing string, elapsed time.Duration, frame int) string {
	p := &page{r: r}
	tail := fmt.Sprintf(" %s... %s", doing, seconds(elapsed))
	p.put(cyan, spinner[frame%len(spinner)], " ")
	p.put(bold, cutCells(string(addr), r.width()-cells(tail)-4))
	p.put(faint, tail)
	return p.String()
}

// Doing is what a run does after an event, for RunUnderWay; "" when it has nothing more to do.
func Doing(k launch.EventKind) string {
	switch k {
	case launch.EventWaiting:
		return "waiting for the lock"
	case launch.EventConverging:
		return "applying"
	case launch.EventRearming:
		return "arming again"
	case launch.EventCompared:
		return "starting the proxy"
	case launch.EventProxyReady:
		return "proving the sandbox"
	case launch.EventProven:
		return "handing over"
	case launch.EventRunning:
		return "running"
	case launch.EventStopping:
		return "stopping"
	case launch.EventEnded, launch.EventEgress:
		return "settling"
	}
	return ""
}

// MoreRunning counts the operations that have no line.
func (r *Renderer) MoreRunning(n int) string {
	p := &page{r: r}
	p.put(faint, "  and ", plural(n, "more operation"))
	return p.String()
}

// cutCells shortens a text to a number of columns.
func cutCells(s string, n int) string {
	if s = Clean(s); cells(s) <= n {
		return s
	}
	rs := []rune(s)
	for len(rs) > 0 && cells(string(rs))+1 > n {
		rs = rs[:len(rs)-1]
	}
	return string(rs) + "…"
}
