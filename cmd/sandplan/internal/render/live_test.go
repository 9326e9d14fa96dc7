package render

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

// TestLive plays what is written onto a screen: lines that stay are whole and once, and nothing is left of
// what was live.
func TestLive(t *testing.T) {
	var live Live
	var s screen
	r := &Renderer{Color: true, Width: 60}
	e := applier.Event{Addr: login.With(planner.PartAgent), Kind: planner.KindAgent, Op: planner.OpCreate}
	for i := range 5 {
		lines := []string{r.Running(e, time.Duration(i)*time.Second, i), r.Running(e, 0, i), r.MoreRunning(3)}
		s.write(live.Erase() + fmt.Sprintf("done %d\n", i) + live.Draw(lines[:1+i%3]))
		s.write(live.Erase() + live.Draw(lines))
	}
	s.write("^C") // the terminal's own echo
	s.write(live.Erase() + "Interrupted\n" + live.Draw(nil))
	s.write(live.Erase() + "Error\n")
	if got, want := s.text(), "done 0\ndone 1\ndone 2\ndone 3\ndone 4\nInterrupted\nError\n"; got != want {
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

// screen is as much of a terminal as Live asks for.
type screen struct {
	lines []string
	y, x  int
}

var ansi = regexp.MustCompile(`\x1b\[([0-9;]*)([A-Za-z])`)

func (s *screen) write(text string) {
	for len(text) > 0 {
		if at := ansi.FindStringSubmatchIndex(text); at != nil && at[0] == 0 {
			arg, n := text[at[2]:at[3]], 1
			fmt.Sscan(arg, &n)
			switch text[at[4]:at[5]] {
			case "A":
				s.y = max(0, s.y-n)
			case "G":
				s.x = 0
			case "J":
				s.lines = s.lines[:min(len(s.lines), s.y)]
			}
			text = text[at[1]:]
			continue
		}
		for len(s.lines) <= s.y {
			s.lines = append(s.lines, "")
		}
		if text[0] == '\n' {
			s.y, s.x = s.y+1, 0
		} else {
			s.lines[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))] + text[:1]
			s.x++
		}
		text = text[1:]
	}
}

func (s *screen) text() string { return strings.Join(s.lines, "\n") + "\n" }
