// Package render turns plans, findings, diagnostics and events into text that a person wants to
// read. It decides nothing: what is shown comes from the rows of planner and from diagnostics.
//
// Everything that it prints passes page.put, which neutralises control characters: names come from
// users, from repositories and from the engine, and none of them may steer a terminal. The same
// input gives the same bytes; there is no clock here. The wanted output stands in docs/output;
// start with plan.go.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Renderer knows where its text goes.
type Renderer struct {
	// Color allows escape sequences. Without it the same information is there in plain text.
	Color bool
	// Width is the number of columns; 0 means 80, as for files and pipes.
	Width int
	// Verbose shows every setting instead of counting the hidden ones.
	Verbose bool
	// NoHints leaves out what to do next: nobody reads it in automation.
	NoHints bool
	// Sources are the files that ranges point into, by the names that ranges use.
	Sources map[string][]byte
}

// SetSources makes the files known that ranges point into.
func (r *Renderer) SetSources(files map[string][]byte) { r.Sources = files }

// Gap is an empty line between two texts.
func (r *Renderer) Gap() string { return "\n" }

const defaultWidth = 80

func (r *Renderer) width() int {
	if r.Width <= 0 {
		return defaultWidth
	}
	// On a very narrow terminal wrapped text is less readable than text that the terminal wraps.
	return max(r.Width, 40)
}

// style is a set of SGR parameters.
type style string

const (
	plain     style = ""
	bold      style = "1"
	faint     style = "2"
	underline style = "4"
	red       style = "31"
	green     style = "32"
	yellow    style = "33"
	cyan      style = "36"
	boldRed   style = "1;31"
	boldAmber style = "1;33"
	boldGreen style = "1;32"
)

// page collects text. Line breaks come from nl alone, so a name can never start a line of its own.
type page struct {
	r *Renderer
	b strings.Builder
}

func (p *page) put(st style, parts ...string) {
	s := Clean(strings.Join(parts, ""))
	if s == "" {
		return
	}
	if p.r.Color && st != plain {
		fmt.Fprintf(&p.b, "\x1b[%sm%s\x1b[0m", st, s)
		return
	}
	p.b.WriteString(s)
}

func (p *page) nl() { p.b.WriteByte('\n') }

func (p *page) line(st style, parts ...string) {
	p.put(st, parts...)
	p.nl()
}

// paragraph prints words, wrapped, with every line indented. Lines of the text that begin with a
// space are taken as laid out already.
func (p *page) paragraph(st style, indent, text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			p.line(st, indent, strings.ReplaceAll(line, "\t", "    "))
			continue
		}
		for _, l := range wrap(line, p.r.width()-cells(indent)) {
			p.line(st, strings.TrimRight(indent+l, " "))
		}
	}
}

// prose prints one wrapped paragraph. Names in it are cleaned before it is broken into lines.
func (p *page) prose(format string, args ...any) {
	for i, a := range args {
		args[i] = Clean(fmt.Sprint(a))
	}
	for _, l := range wrap(fmt.Sprintf(format, args...), p.r.width()) {
		p.line(plain, l)
	}
}

func (p *page) rule() {
	p.nl()
	p.line(faint, strings.Repeat("─", p.r.width()))
	p.nl()
}

func (p *page) String() string { return p.b.String() }

// wrap breaks words into lines of at most n columns; a longer word stands alone.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		switch {
		case line == "":
			line = w
		case cells(line)+1+cells(w) <= n:
			line += " " + w
		default:
			lines, line = append(lines, line), w
		}
	}
	return append(lines, line)
}

// Clean makes every character visible that a terminal would act on, or that would hide or reorder
// others: control characters, line breaks, bidirectional overrides, invalid UTF-8.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(c):
			b.WriteString(s[i : i+n])
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < 0x80:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
		i += n
	}
	return b.String()
}

func isClean(s string) bool {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		}
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// cells is the number of columns that s takes on a terminal.
func cells(s string) int {
	n := 0
	for _, c := range Clean(s) {
		switch width.LookupRune(c).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			if !unicode.Is(unicode.Mn, c) {
				n++
			}
		}
	}
	return n
}

// plural is "1 object" or "3 objects".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
