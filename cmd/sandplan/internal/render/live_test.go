package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/screen"
	"github.com/sandplan/sandplan/planner"
)

// TestLive plays what is written onto a screen: lines that stay are whole and once, and nothing is left of
// what was live.
func TestLive(t *testing.T) {
	var live Live
	var s screen.Screen
	r := &Renderer{Color: true, Width: 60}
	e := applier.Event{Addr: login.With(planner.PartAgent), Kind: planner.KindAgent, Op: planner.OpCreate}
	for i := range 5 {
		lines := []string{r.Running(e, time.Duration(i)*time.Second, i), r.Running(e, 0, i), r.MoreRunning(3)}
		s.Write(live.Erase() + fmt.Sprintf("done %d\n", i) + live.Draw(lines[:1+i%3]))
		s.Write(live.Erase() + live.Draw(lines))
	}
	s.Write("^C") // the terminal's own echo
	s.Write(live.Erase() + "Interrupted\n" + live.Draw(nil))
	s.Write(live.Erase() + "Error\n")
	if got, want := s.Text(), "done 0\ndone 1\ndone 2\ndone 3\ndone 4\nInterrupted\nError\n"; got != want {
		t.Errorf("the screen shows\n%s\nwant\n%s", got, want)
	}
}

// TestRunningFits: a line that is wider than the terminal would wrap, and a part of it would stay for ever.
func TestRunningFits(t *testing.T) {
	for _, w := range []int{40, 60, 200} {
		e := applier.Event{Addr: planner.Address("invocation." + strings.Repeat("世x", 80) + "\x1b[2J.agent"), Op: planner.OpCreate}
		got := (&Renderer{Width: w}).Running(e, time.Hour, 3)
		if cells(got) > w-1 || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("%d columns: %d cells in %q", w, cells(got), got)
		}
	}
}
