package render

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcled"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// snippetLines is the most source lines that one place shows.
const snippetLines = 4

// place prints where something is declared and its source line, with the subject marked: underlined
// where there is colour, by a line of ^ where there is none.
func (p *page) place(rng hcl.Range, indent string) {
	if rng.Filename == "" {
		return
	}
	src, known := p.r.Sources[rng.Filename]
	if !known || rng.Start.Line < 1 {
		// Without a source there is nothing to number: a directory, or a value that must not be shown.
		p.line(plain, indent, "on ", fileName(rng.Filename), ":")
		return
	}
	in := ""
	if c := ContextOf(src, rng); c != "" {
		in = ", in " + c
	}
	p.line(plain, indent, "on ", fileName(rng.Filename), lineNumber(rng), in, ":")
	p.source(src, rng)
}

func lineNumber(rng hcl.Range) string {
	if rng.Start.Line < 1 {
		return ""
	}
	return fmt.Sprintf(" line %d", rng.Start.Line)
}

// fileName shortens a path that leads nowhere but here.
func fileName(name string) string {
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "<") {
		return name
	}
	return filepath.ToSlash(filepath.Clean(name))
}

// ContextOf says which block a range lies in, such as: vendor "claude".
func ContextOf(src []byte, rng hcl.Range) string {
	if !strings.HasSuffix(rng.Filename, ".hcl") {
		return ""
	}
	file, _ := hclsyntax.ParseConfig(src, rng.Filename, hcl.InitialPos)
	if file == nil {
		return ""
	}
	return hcled.ContextString(file, rng.Start.Byte)
}

// source prints the lines of rng. Offsets are in bytes: columns of HCL count characters as people
// see them, and a line may hold some that take no or two cells.
func (p *page) source(src []byte, rng hcl.Range) {
	number, offset := 0, 0
	last := min(max(rng.End.Line, rng.Start.Line), rng.Start.Line+snippetLines-1)
	for len(src) > 0 {
		number++
		text, rest, _ := bytes.Cut(src, []byte("\n"))
		if number >= rng.Start.Line && number <= last {
			from := clamp(rng.Start.Byte-offset, len(text))
			to := clamp(rng.End.Byte-offset, len(text))
			if number > rng.Start.Line {
				from = len(text) - len(bytes.TrimLeft(text, " \t"))
			}
			p.sourceLine(number, string(text), from, max(from, to))
		}
		if number > last {
			break
		}
		offset += len(text) + 1
		src = rest
	}
	if rng.End.Line > last {
		p.line(faint, "      ...")
	}
}

func clamp(n, most int) int { return min(max(n, 0), most) }

func (p *page) sourceLine(number int, text string, from, to int) {
	text = strings.TrimRight(text, "\r")
	from, to = min(from, len(text)), min(to, len(text))
	before, subject, after := untab(text[:from]), untab(text[from:to]), untab(text[to:])
	p.put(faint, fmt.Sprintf("%4d: ", number))
	p.put(plain, before)
	p.put(underline, subject)
	p.put(plain, after)
	p.nl()
	if p.r.Color {
		return
	}
	p.line(plain, strings.Repeat(" ", 6+cells(before)), strings.Repeat("^", max(1, cells(subject))))
}

func untab(s string) string { return strings.ReplaceAll(s, "\t", "    ") }
