package files

import (
	"context"
	"path"
	"strings"
	"unicode/utf8"
)

// rule is one line of a .gitignore (gitignore(5)). It is matched as it stands: a hostile worktree has as
// many of them as it likes, and each compiled one would take a thousand times its size.
type rule struct {
	dir      string   // of the .gitignore, "" for the top
	parts    []string // between slashes; ** stands for any number of directories
	anchored bool     // matches a path below dir; otherwise a name anywhere below
	negate   bool
	dirOnly  bool
}

// Every rule is tried on every name, so that rules are bounded in number and in length.
const (
	ignoreFile    = ".gitignore"
	maxIgnoreFile = 64 << 10
	maxRules      = 2000 // in force in one directory
	maxRule       = 1000 // bytes; the longest name has 255
)

// ignored: the last rule that matches decides. What a directory hides is not entered at all. When the time is
// over everything is.
func ignored(ctx context.Context, rules []rule, name string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if ctx.Err() != nil {
			return true
		}
		if r := rules[i]; (!r.dirOnly || isDir) && r.matches(name) {
			return !r.negate
		}
	}
	return false
}

func (r rule) matches(name string) bool {
	if r.dir != "" {
		below, ok := strings.CutPrefix(name, r.dir+"/")
		if !ok {
			return false
		}
		name = below
	}
	if !r.anchored {
		return matchName(r.parts[0], path.Base(name))
	}
	return matchParts(r.parts, strings.Split(name, "/"))
}

// rulesAbove are the rules of all directories above one.
func (r *Reader) rulesAbove(dir string) []rule {
	var rules []rule
	if dir == "." {
		return nil
	}
	for i, c := range dir {
		if c == '/' {
			rules = r.rulesOf(rules, dir[:i])
		}
	}
	return append(r.rulesOf(nil, "."), rules...)
}

// rulesOf adds the rules of one directory's own .gitignore to those from above, while there is room.
func (r *Reader) rulesOf(above []rule, dir string) []rule {
	text, err := r.text(path.Join(dir, ignoreFile), maxIgnoreFile)
	if err != nil {
		return above // nearly always: there is none
	}
	rules := above[:len(above):len(above)] // neighbours share what is above
	for line := range strings.Lines(text) {
		if len(rules) >= maxRules {
			break
		}
		if one, ok := parseRule(dir, strings.TrimSuffix(line, "\n")); ok {
			rules = append(rules, one)
		}
	}
	return rules
}

func parseRule(dir, line string) (rule, bool) {
	line = trimBlanks(strings.TrimSuffix(line, "\r"))
	if line == "" || strings.HasPrefix(line, "#") || len(line) > maxRule {
		return rule{}, false
	}
	r := rule{dir: dir}
	if dir == "." {
		r.dir = ""
	}
	if r.negate = strings.HasPrefix(line, "!"); r.negate {
		line = line[1:]
	}
	if r.dirOnly = strings.HasSuffix(line, "/"); r.dirOnly {
		line = strings.TrimSuffix(line, "/")
	}
	// A slash anywhere but at the end ties the pattern to its own directory.
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	r.parts = strings.Split(line, "/")
	return r, true
}

// trimBlanks takes blanks from the end, but for one that a backslash keeps.
func trimBlanks(line string) string {
	for strings.HasSuffix(line, " ") {
		rest := line[:len(line)-1]
		escapes := len(rest) - len(strings.TrimRight(rest, `\`))
		if escapes%2 == 1 {
			return line
		}
		line = rest
	}
	return line
}

// matchParts matches a path. Where it fails behind a **, that one takes one directory more; an earlier one
// never needs to. So the work is bounded by the product of both lengths.
func matchParts(pattern, name []string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true // everything inside
			}
			star, from = p, n
			p++
		case p < len(pattern) && matchName(pattern[p], name[n]):
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return p == len(pattern)
}

// matchName matches one name, in the same way.
func matchName(pattern, name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if size, width := matchOne(pattern[p:], name[n:]); size > 0 {
			p, n = p+size, n+width
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches what a pattern begins with, no *, against the beginning of a name that is not empty: how
// long either is, or 0.
func matchOne(pattern, name string) (size, width int) {
	if pattern == "" {
		return 0, 0
	}
	switch pattern[0] {
	case '?':
		return 1, 1
	case '[':
		if n, ok := matchClass(pattern, name[0]); ok {
			return n, 1
		}
		return 0, 0
	case '\\':
		if len(pattern) > 1 && pattern[1] == name[0] {
			return 2, 1
		}
		return 0, 0 // git: nothing matches a pattern that ends with a backslash
	}
	if pattern[0] == name[0] {
		return 1, 1
	}
	return 0, 0
}

// matchClass matches [abc], [a-z], [!a] and [[:alpha:]] at the beginning of a pattern against a byte: how
// long the class is, and whether it does. What nothing closes matches nothing, as with git.
func matchClass(pattern string, c byte) (size int, ok bool) {
	i := 1
	negate := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negate {
		i++
	}
	found, last := false, -1
	for first := true; i < len(pattern); first = false {
		at := pattern[i]
		switch {
		case at == ']' && !first:
			return i + 1, found != negate
		case strings.HasPrefix(pattern[i:], "[:"):
			end := strings.Index(pattern[i:], ":]")
			if end < 0 {
				return 0, false
			}
			in, known := classes[pattern[i+2:max(i+2, i+end)]]
			if !known {
				return 0, false
			}
			found, last = found || in(c), -1
			i += end + 2
			continue
		case at == '-' && last >= 0 && i+1 < len(pattern) && pattern[i+1] != ']':
			if i++; pattern[i] == '\\' {
				if i++; i == len(pattern) {
					return 0, false
				}
			}
			found = found || last <= int(c) && c <= pattern[i]
			last = -1
			i++
			continue
		case at == '\\':
			if i++; i == len(pattern) {
				return 0, false
			}
			at = pattern[i]
		}
		found = found || at == c
		last = int(at)
		i++
	}
	return 0, false
}

// classes are those that POSIX names, for bytes below utf8.RuneSelf.
var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return letter(c) || digit(c) },
	"alpha":  letter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  digit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c byte) bool { return letter(c) && c >= 'a' },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !letter(c) && !digit(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c byte) bool { return letter(c) && c < 'a' },
	"xdigit": func(c byte) bool { return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' && c < utf8.RuneSelf },
}

func letter(c byte) bool { return c < utf8.RuneSelf && c|0x20 >= 'a' && c|0x20 <= 'z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }
