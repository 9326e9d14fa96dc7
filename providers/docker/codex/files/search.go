package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
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
	maxDepth      = 64
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
	pattern := a.Pattern
	if a.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	if a.Pattern == "" || len(pattern) > maxPattern {
		return "", fmt.Errorf("the pattern must have between 1 and %d characters", maxPattern)
	}
	// RE2: no pattern takes more than time linear in what it searches.
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", fmt.Errorf("the pattern: %w", err)
	}
	if _, err := path.Match(a.Glob, ""); err != nil {
		return "", fmt.Errorf("the glob %q: %w", a.Glob, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	s := searching{reader: r, ctx: ctx, re: re, glob: a.Glob, anchored: anchors.MatchString(pattern)}
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

// searching is one search under way.
type searching struct {
	reader *Reader
	ctx    context.Context
	re     *regexp.Regexp
	glob   string
	// anchored says that the pattern may match a line and not the whole text.
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
	rules = append(rules[:len(rules):len(rules)], s.reader.rulesOf(name)...)
	for _, e := range entries {
		file := path.Join(name, e.Name())
		switch {
		case e.Name() == ".git" || ignored(rules, file, e.IsDir()):
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
	if !s.anchored && !s.re.MatchString(text) {
		return nil // most files, and faster than line by line
	}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if !s.re.MatchString(line) {
			continue
		}
		if s.matches++; s.matches > maxMatches || s.out.Len() > maxAnswer {
			s.matches--
			return errEnough
		}
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		fmt.Fprintf(&s.out, "%s:%d:%s\n", shown(name), n+1, line)
	}
	return nil
}

func sortEntries(list []fs.DirEntry) {
	sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
}
