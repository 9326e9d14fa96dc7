// Package screen is as much of a terminal as tests need to see what a person sees: what was erased and drawn
// over is gone, what stays is there once. It knows the sequences that sandplan writes and no others.
package screen

import (
	"fmt"
	"regexp"
	"strings"
)

// Screen is endlessly high: nothing ever scrolls.
type Screen struct {
	lines [][]rune
	y, x  int
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// Write plays what a program writes. Text has to come in whole runes and sequences.
func (s *Screen) Write(text string) {
	for text != "" {
		if at := sequence.FindStringSubmatch(text); at != nil {
			s.obey(at[1], at[2])
			text = text[len(at[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\n':
			s.y, s.x = s.y+1, 0
		case '\r':
			s.x = 0
		case '\a':
		default:
			s.put(r)
		}
	}
}

func (s *Screen) put(r rune) {
	for len(s.lines) <= s.y {
		s.lines = append(s.lines, nil)
	}
	for len(s.lines[s.y]) <= s.x {
		s.lines[s.y] = append(s.lines[s.y], ' ')
	}
	s.lines[s.y][s.x] = r
	s.x++
}

func (s *Screen) obey(args, what string) {
	n := 1
	fmt.Sscan(args, &n)
	switch what {
	case "A":
		s.y = max(0, s.y-n)
	case "G":
		s.x = max(0, n-1)
	case "J": // from the cursor to the end
		s.lines = s.lines[:min(len(s.lines), s.y+1)]
		if s.y < len(s.lines) {
			s.lines[s.y] = s.lines[s.y][:min(len(s.lines[s.y]), s.x)]
		}
	case "K":
		if s.y < len(s.lines) {
			s.lines[s.y] = s.lines[s.y][:min(len(s.lines[s.y]), s.x)]
		}
	}
}

// Text is what the screen shows, without blanks at the ends of lines and without empty lines at the end.
func (s *Screen) Text() string {
	var out []string
	for _, l := range s.lines {
		out = append(out, strings.TrimRight(string(l), " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}
