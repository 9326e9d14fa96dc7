// Package files are the tools with which Codex looks at a worktree: read a file, list a directory, search.
// Its own need a shell, which no agent has.
//
// The model chooses every path and pattern, and the worktree is hostile as well: nothing outside the
// directory is opened whatever links lead to, nothing but regular files is read, and every answer is
// bounded in size, count and time.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// The names of the tools.
const (
	ReadFile = "read_file"
	ListDir  = "list_dir"
	Search   = "search"
)

// Bounds of one answer. A model reads tens of kilobytes with profit, and pays for each of them.
const (
	maxAnswer  = 128 << 10 // bytes of an answer
	maxFile    = 16 << 20  // bytes of a file that is read at all
	maxEntries = 2000      // of a directory in one answer
	maxPath    = 4096
)

// Reader answers calls of the tools below one directory.
type Reader struct {
	dir   string
	root  *os.Root
	limit time.Duration // of one search
}

// Open opens a directory. dir is also how the model names it.
func Open(dir string) (*Reader, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Reader{dir: path.Clean(dir), root: root, limit: 10 * time.Second}, nil
}

// Close closes the directory.
func (r *Reader) Close() error { return r.root.Close() }

// Call answers one call. Errors are for the model: they name what it asked for, and nothing of the host.
func (r *Reader) Call(ctx context.Context, tool string, arguments json.RawMessage) (string, error) {
	switch tool {
	case ReadFile:
		return r.readFile(arguments)
	case ListDir:
		return r.listDir(arguments)
	case Search:
		return r.search(ctx, arguments)
	}
	return "", fmt.Errorf("there is no tool %q", tool)
}

// decode reads arguments. Unknown ones are told: a model that believes in them would misread the answer.
func decode(arguments json.RawMessage, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(arguments)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the arguments: %w", err)
	}
	return nil
}

// relative is a path below the directory, which the model may name from the root or from the directory.
func (r *Reader) relative(name string) (string, error) {
	switch {
	case len(name) > maxPath:
		return "", errors.New("the path is too long")
	case strings.ContainsRune(name, 0):
		return "", errors.New("the path holds a NUL character")
	case name == "":
		name = "."
	}
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%s: no path may have .. in it", strconv.Quote(name))
		}
	}
	if path.IsAbs(name) {
		clean := path.Clean(name)
		if clean != r.dir && !strings.HasPrefix(clean, r.dir+"/") {
			return "", fmt.Errorf("%s is outside %s", strconv.Quote(name), r.dir)
		}
		name = strings.TrimPrefix(strings.TrimPrefix(clean, r.dir), "/")
		if name == "" {
			name = "."
		}
	}
	return path.Clean(name), nil
}

// open opens a file without waiting for anything: a FIFO without a writer would block for ever.
func (r *Reader) open(name string) (*os.File, fs.FileInfo, error) {
	f, err := r.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", strconv.Quote(name), cause(err))
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", strconv.Quote(name), cause(err))
	}
	return f, info, nil
}

// cause is an error without the path that the system put into it.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

type readArguments struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // line, from 1
	Limit  int    `json:"limit"`  // lines
}

// readFile answers with the text as it stands in the file, so that a patch can be made from it.
func (r *Reader) readFile(arguments json.RawMessage) (string, error) {
	var a readArguments
	if err := decode(arguments, &a); err != nil {
		return "", err
	}
	name, err := r.relative(a.Path)
	if err != nil {
		return "", err
	}
	text, err := r.text(name, maxFile)
	if err != nil {
		return "", err
	}
	if a.Offset < 0 || a.Limit < 0 {
		return "", errors.New("offset and limit count lines, from 1")
	}
	return window(text, a.Offset, a.Limit), nil
}

// text is a whole text file, up to a size.
func (r *Reader) text(name string, limit int64) (string, error) {
	f, info, err := r.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	switch {
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory; list it with %s", strconv.Quote(name), ListDir)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", strconv.Quote(name))
	case info.Size() > limit:
		return "", fmt.Errorf("%s has %d bytes, more than the %d that can be read; use %s", strconv.Quote(name), info.Size(), limit, Search)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", fmt.Errorf("%s: %w", strconv.Quote(name), cause(err))
	}
	if isBinary(raw) {
		return "", fmt.Errorf("%s is a binary file of %d bytes", strconv.Quote(name), len(raw))
	}
	return string(raw), nil
}

// isBinary: as git decides, by a NUL near the beginning; and what is not UTF-8 cannot be told a model.
func isBinary(raw []byte) bool {
	const near = 8000
	for _, c := range raw[:min(len(raw), near)] {
		if c == 0 {
			return true
		}
	}
	return !utf8.Valid(raw)
}

// window is a range of lines, with a last line of ours when it is not the whole text. The text is gone through
// as it is: a list of its lines could take sixteen times its size.
func window(text string, offset, limit int) string {
	from := max(offset, 1)
	all, last := 0, 0 // the last line that is in the answer
	var b strings.Builder
	full := false
	for line := range strings.Lines(text) {
		all++
		if all < from || limit > 0 && all-from >= limit || full {
			continue
		}
		if b.Len()+len(line) > maxAnswer {
			full = true
			if b.Len() > 0 {
				continue
			}
			line = strings.ToValidUTF8(line[:maxAnswer], "") // one line is longer than an answer
		}
		b.WriteString(line)
		last = all
	}
	switch {
	case from > 1 && from > all:
		return fmt.Sprintf("(the file has %d lines)", all)
	case from > 1 || last < all:
		fmt.Fprintf(&b, "\n(lines %d to %d of %d; read on with offset)", from, last, all)
	}
	return b.String()
}

type listArguments struct {
	Path string `json:"path"`
}

func (r *Reader) listDir(arguments json.RawMessage) (string, error) {
	var a listArguments
	if err := decode(arguments, &a); err != nil {
		return "", err
	}
	name, err := r.relative(a.Path)
	if err != nil {
		return "", err
	}
	entries, more, err := r.entries(name, maxEntries)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(shown(e.Name()))
		switch mode := e.Type(); {
		case mode.IsDir():
			b.WriteByte('/')
		case mode&fs.ModeSymlink != 0:
			b.WriteString(" (symbolic link)")
		case !mode.IsRegular():
			b.WriteString(" (special file)")
		}
		b.WriteByte('\n')
	}
	switch {
	case more:
		fmt.Fprintf(&b, "(only the first %d entries that were found)\n", maxEntries)
	case len(entries) == 0:
		b.WriteString("(empty)\n")
	}
	return b.String(), nil
}

// entries are up to limit entries of a directory, sorted, and whether there are more.
func (r *Reader) entries(name string, limit int) ([]fs.DirEntry, bool, error) {
	f, info, err := r.open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, false, fmt.Errorf("%s is no directory; read it with %s", strconv.Quote(name), ReadFile)
	}
	list, err := f.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("%s: %w", strconv.Quote(name), cause(err))
	}
	more := len(list) > limit
	if more {
		list = list[:limit]
	}
	sortEntries(list)
	return list, more, nil
}

// shown is a name on one line: file names may hold line feeds, and would pass for more of an answer.
func shown(name string) string {
	for _, c := range name {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}
