package hclspec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Source says which configuration to read, and for which workspace. The zero value reads the process's
// working directory, which only a program's main should rely on.
type Source struct {
	// Path is the file or directory as the user named it; "" is ".". Ranges name files by it.
	Path string
	// Cwd is the absolute directory that a relative Path starts from. It is path.cwd.
	Cwd string
	// Workspace is sandplan.workspace; "" is "default".
	Workspace string
	// Version is the program's own version, for required_version. A development version ("" or "dev")
	// meets every constraint.
	Version string
	// FS is what is read from, rooted at "/". Nil is the disk.
	FS fs.FS
}

// errNotText is what a path cannot be that stands in plans, labels and mounts: all of them are text.
var errNotText = errors.New("its path is not valid UTF-8, and plans, labels and mounts hold text only; rename what is not")

// Disk is the file system of the machine, rooted at "/". It opens without blocking, so that a FIFO
// where a file should be is an error and not a hang.
type Disk struct{}

// Open opens the file with the slash-separated, rootless name, as fs.FS asks for.
func (Disk) Open(name string) (fs.File, error) {
	if !utf8.ValidString(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotText}
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.OpenFile("/"+name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
}

// Bounds of what is read. They are far above honest use, and keep a wrong path from filling memory.
const (
	maxConfigFile = 1 << 20
	maxDataFile   = 4 << 20
)

// disk reads absolute paths from a rooted fs.FS.
type disk struct{ fsys fs.FS }

func rooted(abs string) string {
	p := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(abs)), "/")
	if p == "" {
		return "."
	}
	return p
}

// stat follows symbolic links, and never blocks.
func (d disk) stat(abs string) (fs.FileInfo, error) {
	f, err := d.fsys.Open(rooted(abs))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// read returns the content of a regular file of at most limit bytes.
func (d disk) read(abs string, limit int64) ([]byte, error) {
	f, err := d.fsys.Open(rooted(abs))
	if err != nil {
		return nil, plainError(err)
	}
	defer f.Close()
	// The open file is asked, not the path: what was looked at is what is read.
	info, err := f.Stat()
	if err != nil {
		return nil, plainError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is %s, not a regular file", fileKind(info.Mode()))
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plainError(err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return b, nil
}

// plainError drops the operation and the path of a file error, which messages name themselves.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// place is where a configuration was found.
type place struct {
	dir     string   // absolute
	file    string   // absolute, "" for a directory
	configs []string // absolute, sorted
	varsets []string // variable files that are read by themselves, in the order of precedence
	lock    string   // absolute
	display func(abs string) string
}

// find looks for the configuration files, the variable files beside them and the place of the lock file.
func (s Source) find() (place, hcl.Diagnostics) {
	shown := s.Path
	if shown == "" {
		shown = "."
	}
	abs := shown
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(s.Cwd, abs)
	}
	abs = filepath.Clean(abs)
	at := hcl.Range{Filename: filepath.Clean(shown), Start: hcl.InitialPos, End: hcl.InitialPos}
	d := newDisk(s.FS)
	info, err := d.stat(abs)
	if err != nil {
		return place{}, fail(ConfigNotFound, at, "%s cannot be read: %s. Name a file or a directory with -config=PATH.", abs, plainError(err))
	}
	p := place{dir: abs}
	if !info.IsDir() {
		p.dir, p.file = filepath.Dir(abs), abs
		p.configs = []string{abs}
		p.lock = strings.TrimSuffix(abs, ".hcl") + ".lock.hcl"
		shown = filepath.Dir(shown)
	} else {
		p.lock = filepath.Join(abs, lockName)
	}
	p.display = func(file string) string {
		rel, err := filepath.Rel(p.dir, file)
		if err != nil || strings.HasPrefix(rel, "..") {
			return file
		}
		return filepath.Join(shown, rel)
	}
	return p, p.list(d, at)
}

// list fills in the files of the directory that have a meaning.
func (p *place) list(d disk, at hcl.Range) hcl.Diagnostics {
	entries, err := fs.ReadDir(d.fsys, rooted(p.dir))
	if err != nil {
		return fail(ConfigNotFound, at, "%s cannot be listed: %s.", p.dir, plainError(err))
	}
	var others, autos []string
	for _, e := range entries { // sorted by name
		name := e.Name()
		full := filepath.Join(p.dir, name)
		switch {
		case strings.HasPrefix(name, "."): // hidden files are editors' and the lock file
		case name == varFileName:
			p.varsets = append(p.varsets, full)
		case strings.HasSuffix(name, autoVarSuffix):
			autos = append(autos, full)
		case p.file != "":
		case name == configName:
			p.configs = append([]string{full}, p.configs...)
		case strings.HasSuffix(name, "."+configName):
			p.configs = append(p.configs, full)
		case strings.HasSuffix(name, ".hcl"):
			others = append(others, name)
		}
	}
	p.varsets = append(p.varsets, autos...)
	if len(p.configs) > 0 {
		return nil
	}
	detail := fmt.Sprintf("%s holds neither %s nor *.%s.", p.dir, configName, configName)
	if len(others) > 0 {
		detail += fmt.Sprintf(" It holds %s; to read one of them, use -config=%s.", nameList(others), p.display(filepath.Join(p.dir, others[0])))
	} else {
		detail += " Run sandplan init there to write a first one, or name another place with -config=PATH."
	}
	return fail(NoConfiguration, at, "%s", detail)
}

// Names that have a meaning in a configuration directory.
const (
	configName    = "sandplan.hcl"
	varFileName   = "sandplan.spvars.hcl"
	autoVarSuffix = ".auto.spvars.hcl"
	lockName      = ".sandplan.lock.hcl"
)

func newDisk(fsys fs.FS) disk {
	if fsys == nil {
		return disk{Disk{}}
	}
	return disk{fsys}
}
