package hclspec

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReference holds docs/language.md to the shapes of blocks: each block has a row, each attribute stands in it,
// and no row names an attribute that the language does not have.
func TestReference(t *testing.T) {
	b, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n## Blocks\n")
	table, _, _ := strings.Cut(rest, "\n### ")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			if m := codeWord.FindStringSubmatch(cells[1]); m != nil {
				rows[m[1]] = cells[2]
			}
		}
	}
	var check func(typ string, sh *shape)
	check = func(typ string, sh *shape) {
		row, ok := rows[typ]
		if !ok {
			t.Errorf("the block %q has no row", typ)
			return
		}
		known := map[string]bool{}
		for _, required := range []bool{true, false} {
			names := sh.optional
			if required {
				names = sh.required
			}
			for _, name := range names {
				known[name] = true
				mark := regexp.MustCompile("`" + name + "( = [^`]*)?`(\\*?)").FindStringSubmatch(row)
				switch {
				case mark == nil:
					t.Errorf("%s: the attribute %q is not documented", typ, name)
				case required && mark[2] == "":
					t.Errorf("%s: that %q has to be there is not documented", typ, name)
				}
			}
		}
		for inner, sh := range sh.blocks {
			known[inner] = true
			if strings.Contains(row, "`"+inner+" {") { // within the row itself
				for _, name := range append(sh.required[:len(sh.required):len(sh.required)], sh.optional...) {
					if !regexp.MustCompile(inner + " \\{[^`]*\\b" + name + "\\b").MatchString(row) {
						t.Errorf("%s: the attribute %q of %s is not documented", typ, name, inner)
					}
				}
				continue
			}
			check(inner, sh)
		}
		for _, m := range attributeWord.FindAllStringSubmatch(row, -1) {
			if !known[m[1]] {
				t.Errorf("%s: the manual has %q, and the language has not", typ, m[1])
			}
		}
	}
	for typ, sh := range configShape.blocks {
		check(typ, sh)
	}
}

var (
	codeWord      = regexp.MustCompile("`([a-z_]+)")
	attributeWord = regexp.MustCompile("`([a-z_]+)(?: = [^`]*)?`")
)

// TestLockReference: the example of a lock file in the manual holds all that one may hold.
func TestLockReference(t *testing.T) {
	b, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## The lock file\n")
	var check func(typ string, sh *shape)
	check = func(typ string, sh *shape) {
		for _, name := range append(sh.required[:len(sh.required):len(sh.required)], sh.optional...) {
			if !regexp.MustCompile("(?m)^ *" + name + " += |`" + name + "`").MatchString(section) {
				t.Errorf("%s: %q is not documented", typ, name)
			}
		}
		for inner, sh := range sh.blocks {
			check(inner, sh)
		}
	}
	check("the lock file", lockShape)
}
