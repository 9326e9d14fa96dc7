package markdown

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

// Limit is what a comment on GitHub may hold, in characters; bytes are never fewer.
const Limit = 65536

// reserve is room for what ends a text that had to be cut.
const reserve = 512

// foldLimit bounds one folded part, so that a single one does not take the place of all others.
const foldLimit = 12 << 10

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, c := range s {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// code is a text in a line of its own as a code span. Within it nothing is markup.
func code(s string) string {
	s = render.Clean(s)
	if s == "" {
		s = " "
	}
	fence := strings.Repeat("`", longestRun(s)+1)
	// A space on both sides is taken away again by whoever shows it, and keeps a backtick apart.
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// htmlCode is the same where HTML is expected.
func htmlCode(s string) string { return "<code>" + html.EscapeString(render.Clean(s)) + "</code>" }

// block is a text of several lines as a code block.
func block(lang, text string) string {
	var b strings.Builder
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	fmt.Fprintf(&b, "%s%s\n", fence, lang)
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(render.Clean(line) + "\n")
	}
	b.WriteString(fence + "\n")
	return b.String()
}

var symbolLine = regexp.MustCompile(`^( *)(-/\+|[+~-]) (.*)$`)

// diffLines moves the symbols of a plan to the first column, where a block of the language diff gives them
// colours.
func diffLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		m := symbolLine.FindStringSubmatch(l)
		switch {
		case m == nil && strings.HasPrefix(strings.TrimSpace(l), "#"):
			lines[i] = "#" + strings.Replace(l, "#", "", 1)
		case m == nil:
			lines[i] = " " + l
		case m[2] == "+" || m[2] == "-":
			lines[i] = m[2] + m[1] + m[3]
		default:
			lines[i] = "!" + m[1] + m[3]
		}
	}
	return strings.Join(lines, "\n")
}

// fold is a part that opens on a click. summary is HTML.
func fold(summary, body string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + body + "\n</details>\n"
}

// foldBlock folds a code block, and cuts it where it is too long.
func foldBlock(summary, lang, text string) string {
	return fold(summary, block(lang, cut(text, foldLimit)))
}

// cut leaves whole lines of at most n bytes, and says what is missing.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	size, kept := 0, 0
	for kept < len(lines) && size+len(lines[kept])+1 <= n {
		size += len(lines[kept]) + 1
		kept++
	}
	if kept == 0 { // one endless line
		head := lines[0][:n]
		for !utf8.ValidString(head) && len(head) > 0 {
			head = head[:len(head)-1]
		}
		return head + "…"
	}
	return strings.Join(lines[:kept], "\n") + fmt.Sprintf("\n… %d more lines", len(lines)-kept)
}

// text is what is written of a document so far.
type text struct {
	b    strings.Builder
	left int // parts that had no room
}

// say adds what always has room: the summary.
func (t *text) say(format string, args ...any) { fmt.Fprintf(&t.b, format, args...) }

// part adds a part if there is room for it. Once one had none, no later one is added: what is missing is
// the end, and not something in between.
func (t *text) part(s string) {
	if t.left > 0 || t.b.Len()+len(s) > Limit-reserve {
		t.left++
		return
	}
	t.b.WriteString(s)
}

// list adds at most n items, and counts the rest.
func (t *text) list(items []string, n int) {
	for i, item := range items {
		if i == n {
			t.say("- … and %d more\n", len(items)-n)
			return
		}
		t.say("- %s\n", item)
	}
}

// end is the whole document. instead says where the rest can be read.
func (t *text) end(instead string) string {
	if t.left > 0 {
		t.say("\n%d more parts have no room in a comment; %s shows them.\n", t.left, code(instead))
	}
	return t.b.String()
}

// clip bounds a name or a value in a line of the summary.
func clip(s string) string {
	const most = 200
	s = render.Clean(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
