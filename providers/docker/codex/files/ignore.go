package files

import (
	"path"
	"regexp"
	"strings"
)

// rule is one line of a .gitignore (gitignore(5)).
type rule struct {
	re      *regexp.Regexp // on the path relative to the top
	negate  bool
	dirOnly bool
}

// A .gitignore of a hostile worktree may be large, and every rule is tried on every file.
const (
	ignoreFile     = ".gitignore"
	maxIgnoreFile  = 64 << 10
	maxIgnoreRules = 1000
)

// ignored: the last rule that matches decides. What a directory hides is not entered at all.
func ignored(rules []rule, name string, isDir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if r := rules[i]; (!r.dirOnly || isDir) && r.re.MatchString(name) {
			return !r.negate
		}
	}
	return false
}

// rulesAbove are the rules of all directories above one.
func (r *Reader) rulesAbove(dir string) []rule {
	if dir == "." {
		return nil
	}
	parent := path.Dir(dir)
	return append(r.rulesAbove(parent), r.rulesOf(parent)...)
}

// rulesOf are the rules of one directory's own .gitignore.
func (r *Reader) rulesOf(dir string) []rule {
	text, err := r.text(path.Join(dir, ignoreFile), maxIgnoreFile)
	if err != nil {
		return nil // nearly always: there is none
	}
	var out []rule
	for _, line := range strings.Split(text, "\n") {
		if one, ok := parseRule(dir, line); ok && len(out) < maxIgnoreRules {
			out = append(out, one)
		}
	}
	return out
}

func parseRule(dir, line string) (rule, bool) {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	var r rule
	if r.negate = strings.HasPrefix(line, "!"); r.negate {
		line = line[1:]
	}
	if r.dirOnly = strings.HasSuffix(line, "/"); r.dirOnly {
		line = strings.TrimSuffix(line, "/")
	}
	// A slash anywhere but at the end ties the pattern to its own directory.
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	prefix := ""
	if dir != "." {
		prefix = regexp.QuoteMeta(dir) + "/"
	}
	if !anchored {
		prefix += "(?:.*/)?"
	}
	re, err := regexp.Compile("^" + prefix + translate(line) + "$")
	if err != nil || line == "" {
		return rule{}, false
	}
	r.re = re
	return r, true
}

// translate is a glob of gitignore as a regular expression.
func translate(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch rest := glob[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "/**") && len(rest) == 3:
			b.WriteString("/.*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[':
			class, n := characterClass(rest)
			b.WriteString(class)
			i += n - 1
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i++
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	return b.String()
}

// characterClass translates [abc] at the beginning of s, and says how long it is; a bracket that nothing
// closes is one.
func characterClass(s string) (string, int) {
	end := strings.IndexByte(s[1:], ']')
	if end <= 0 {
		return `\[`, 1
	}
	class := s[1 : end+1]
	negate := ""
	if class[0] == '!' || class[0] == '^' {
		class, negate = class[1:], "^"
	}
	if class == "" {
		return `\[`, 1
	}
	escaped := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(class)
	return "[" + negate + escaped + "]", end + 2
}
