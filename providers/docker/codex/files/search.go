package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"sort"
	"strings"
)

// Bounds of one search.
const (
	maxMatches    = 200
	maxSearched   = 20_000    // files
	maxSearchFile = 2 << 20   // bytes of one file
	maxSearchAll  = 256 << 20 // bytes of all
	maxLine       = 300       // bytes of a line that are shown
	maxPattern    = 1000
	maxProgram    = 1000 // instructions of a compiled pattern
	maxDepth      = 64
	// A match cannot be interrupted: it is tried on so much at a time, and the clock is looked at in between.
	maxPiece = 64 << 10
)

type searchArguments struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"` // of the file's name
	IgnoreCase bool   `json:"ignore_case"`
}

// search goes through files like `git grep`: not into .git, and not where .gitignore says no.
func (r *Reader) search(ctx context.Context, arguments json.RawMessage) (string, error) {
	var a searchArguments
	if err := decode(arguments, &a); err != nil {
		return "", err
	}
	start, err := r.relative(a.Path)
	if err != nil {
		return "", err
	}
	re, anchored, err := compilePattern(a.Pattern, a.IgnoreCase)
	if err != nil {
		return "", err
	}
	if _, err := path.Match(a.Glob, ""); err != nil {
		return "", fmt.Errorf("the glob %q: %w", a.Glob, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	s := searching{reader: r, ctx: ctx, re: re, glob: a.Glob, anchored: anchored}
	f, info, err := r.open(start)
	if err != nil {
		return "", err
	}
	f.Close()
	if info.IsDir() {
		err = s.dir(start, r.rulesAbove(start), 0)
	} else {
		err = s.file(start)
	}
	return s.answer(err), nil
}

// anchors are what ties a pattern to the beginning or the end of a text.
var anchors = regexp.MustCompile(`[\^$]|\\[AzZbB]`)

// compilePattern is a pattern of a model, and whether it may match a line and not the whole text. RE2 takes
// time linear in what it searches, times the size of the pattern: which repetitions make large.
func compilePattern(pattern string, ignoreCase bool) (re *regexp.Regexp, anchored bool, err error) {
	if pattern == "" || len(pattern) > maxPattern {
		return nil, false, fmt.Errorf("the pattern must have between 1 and %d characters", maxPattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, false, fmt.Errorf("the pattern: %w", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, false, fmt.Errorf("the pattern: %w", err)
	}
	if n := len(program.Inst); n > maxProgram {
		return nil, false, fmt.Errorf("the pattern is %d steps long, more than the %d that are tried: repeat less in it", n, maxProgram)
	}
	if re, err = regexp.Compile(pattern); err != nil {
		return nil, false, fmt.Errorf("the pattern: %w", err)
	}
	return re, anchors.MatchString(pattern), nil
}

// searching is one search under way.
type searching struct {
	reader *Reader
	ctx    context.Context
	re     *regexp.Regexp
	glob   string
	// anchored says that the pattern may match a line and not a text that holds it.
	anchored bool
	out      strings.Builder
	matches  int
	files    int
	bytes    int64
	skipped  int // too large, or unreadable
}

// errEnough ends a search that a bound has stopped.
var errEnough = errors.New("bound")

func (s *searching) answer(err error) string {
	if s.matches == 0 {
		s.out.WriteString("(no match)\n")
	}
	switch {
	case s.ctx.Err() != nil:
		s.out.WriteString("(stopped: the time is over; search a smaller path)\n")
	case errors.Is(err, errEnough):
		fmt.Fprintf(&s.out, "(stopped at a bound: %d matches, %d files, %d bytes; search a smaller path or for less)\n", s.matches, s.files, s.bytes)
	}
	if s.skipped > 0 {
		fmt.Fprintf(&s.out, "(%d files were too large or could not be read)\n", s.skipped)
	}
	return s.out.String()
}

func (s *searching) dir(name string, rules []rule, depth int) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	entries, more, err := s.reader.entries(name, maxSearched)
	if err != nil || more || depth > maxDepth {
		s.skipped++
		return nil
	}
	rules = s.reader.rulesOf(rules, name)
	for _, e := range entries {
		if s.ctx.Err() != nil {
			return s.ctx.Err() // nothing else does when all of a large directory is ignored
		}
		file := path.Join(name, e.Name())
		switch {
		case e.Name() == ".git" || ignored(s.ctx, rules, file, e.IsDir()):
		case e.IsDir():
			err = s.dir(file, rules, depth+1)
		case e.Type().IsRegular(): // a symbolic link is searched where it points to, if that is here at all
			if ok, _ := path.Match(s.glob, e.Name()); ok || s.glob == "" {
				err = s.file(file)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *searching) file(name string) error {
	if s.files++; s.files > maxSearched || s.bytes > maxSearchAll {
		return errEnough
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	text, err := s.reader.text(name, maxSearchFile)
	if err != nil {
		if !strings.Contains(err.Error(), "binary") {
			s.skipped++
		}
		return nil
	}
	s.bytes += int64(len(text))
	for n := 1; text != ""; {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		piece := nextPiece(text)
		text = text[len(piece):]
		if err := s.piece(name, piece, n); err != nil {
			return err
		}
		n += strings.Count(piece, "\n")
	}
	return nil
}

// nextPiece is the beginning of a text: whole lines, but for a line that is longer than a piece.
func nextPiece(text string) string {
	if len(text) <= maxPiece {
		return text
	}
	if end := strings.LastIndexByte(text[:maxPiece], '\n'); end >= 0 {
		return text[:end+1]
	}
	return text[:maxPiece]
}

// piece searches some lines, of which the first has the number n.
func (s *searching) piece(name, text string, n int) error {
	if !s.anchored && !s.re.MatchString(text) {
		return nil // most pieces, and faster than line by line
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if s.re.MatchString(line) {
			if s.matches == maxMatches || s.out.Len() > maxAnswer {
				return errEnough
			}
			s.matches++
			if len(line) > maxLine {
				line = line[:maxLine] + "…"
			}
			fmt.Fprintf(&s.out, "%s:%d:%s\n", shown(name), n, strings.ToValidUTF8(line, ""))
		}
		n++
	}
	return nil
}

func sortEntries(list []fs.DirEntry) {
	sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
}
