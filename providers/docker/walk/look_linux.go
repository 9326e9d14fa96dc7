package walk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/planner"
)

// look is one look over a tree.
type look struct {
	*Walker
	budget
	out   planner.Tree
	began time.Time
	read  int64
	buf   []byte
}

// where says what an entry means for its directory.
type where int

const (
	inTree    where = iota
	inOwn           // the worktree's own repository
	inGuarded       // below a guarded name: every file is marked
	inNested        // below a nested repository: marked as one
)

func (l *look) tree() (planner.Tree, error) {
	fd, err := openRoot(l.root)
	if err != nil {
		return planner.Tree{}, err
	}
	l.buf, l.out.Marks = make([]byte, 128<<10), []planner.Mark{}
	if l.out.SHA256, err = l.dir(fd, "", 0, inTree); err != nil {
		return planner.Tree{}, fmt.Errorf("look over %s: %w", l.root, err)
	}
	l.out.Entries = l.entries
	slices.SortFunc(l.out.Marks, byPath)
	return l.out, nil
}

// dir hashes a directory and closes it.
func (l *look) dir(fd int, rel string, depth int, in where) (string, error) {
	d := os.NewFile(uintptr(fd), rel)
	defer d.Close()
	if err := l.enter(rel, depth); err != nil {
		return "", err
	}
	names, err := l.names(d, rel)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		at := path.Join(rel, name)
		var st unix.Stat_t
		err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue // removed since
		}
		if err != nil {
			return "", fmt.Errorf("%q: %w", at, err)
		}
		id, err := l.entry(fd, name, at, &st, depth, in)
		if err != nil {
			return "", err
		}
		if at != repository { // which changes whenever the user commits
			fmt.Fprintf(sum, "%06o %s %q\n", st.Mode, id, name)
		}
	}
	if isBare(names) && in == inTree && rel != "" {
		// git takes it for a repository when the user goes there, and does what its config says.
		l.mark(rel, planner.MarkGuarded, hex.EncodeToString(sum.Sum(nil)))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// names are the names in a directory, sorted. They are counted while they are read: the list itself
// must not become too long.
func (l *look) names(d *os.File, rel string) ([]string, error) {
	var names []string
	for {
		more, err := d.Readdirnames(1024)
		for _, name := range more {
			if err := l.spend(path.Join(rel, name)); err != nil {
				return nil, err
			}
		}
		names = append(names, more...)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) { // or removed since
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", rel, err)
		}
	}
}

// isBare reports whether a directory has what git takes a repository without a worktree for.
func isBare(names []string) bool {
	for _, need := range []string{"HEAD", "objects", "refs"} {
		if _, ok := slices.BinarySearch(names, need); !ok {
			return false
		}
	}
	return true
}

// entry identifies one entry, and marks it when it is worth telling.
func (l *look) entry(fd int, name, at string, st *unix.Stat_t, depth int, in where) (id string, err error) {
	below := in
	switch guarded := guardedName(name); {
	case in == inTree && at == repository:
		below = inOwn
	case in == inTree && guarded && strings.EqualFold(name, repository):
		below = inNested
	case in == inTree && guarded:
		below = inGuarded
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if id, err = l.enterDir(fd, name, at, depth, below); err != nil {
			return "", err
		}
	case unix.S_IFREG:
		if in == inOwn && !gitActsOn(strings.TrimPrefix(at, repository+"/")) {
			return "", nil
		}
		if id, err = l.file(fd, name, st); err != nil {
			return "", fmt.Errorf("%q: %w", at, err)
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			l.mark(at, planner.MarkSetID, id)
		}
	case unix.S_IFLNK:
		n, err := unix.Readlinkat(fd, name, l.buf)
		if err != nil {
			return "", nil // replaced since
		}
		id = hash(bytes.NewReader(l.buf[:n]))
	default:
		l.mark(at, specialOf(st.Mode), "")
		return "special", nil
	}
	l.guard(at, st.Mode, id, in, below)
	return id, nil
}

// guard marks what the user's tools act on. A nested repository is one mark; of the others each file is.
func (l *look) guard(at string, mode uint32, id string, in, below where) {
	dir := mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case below == inOwn && !dir, below == inGuarded && !dir, in == inTree && below == inNested:
		l.mark(at, planner.MarkGuarded, fmt.Sprintf("%06o %s", mode, id))
	case in == inTree && below != inTree:
		l.mark(at, planner.MarkGuarded, "") // there, whatever it holds
	}
}

func (l *look) mark(at string, k planner.MarkKind, id string) {
	l.out.Marks = append(l.out.Marks, planner.Mark{Path: at, Kind: k, ID: id})
}

func (l *look) enterDir(fd int, name, at string, depth int, in where) (string, error) {
	sub, err := openBelow(fd, name, unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return "moved", nil
	case errors.Is(err, unix.EACCES):
		l.out.Unread++
		return "closed", nil
	case errors.Is(err, unix.EXDEV):
		return "", fmt.Errorf("%q is a mount point", at)
	case err != nil:
		return "", fmt.Errorf("%q: %w", at, err)
	}
	return l.dir(sub, at, depth+1, in)
}

// file identifies a regular file.
func (l *look) file(fd int, name string, st *unix.Stat_t) (string, error) {
	l.out.Bytes += st.Size
	key := inode{uint64(st.Dev), st.Ino}
	c := content{size: st.Size, mtime: stamp(st.Mtim), ctime: stamp(st.Ctim)}
	old, ok := l.known[key]
	same := ok && old.size == c.size && old.mtime.Equal(c.mtime) && old.ctime.Equal(c.ctime)
	if same && (!old.racy || old.sum == "") {
		c = old
	} else if err := l.contents(fd, name, &c, same); err != nil {
		return "", err
	}
	// What was written just before it was read may be written again within the same tick.
	c.racy = l.now().Sub(c.ctime) <= racy
	l.known[key] = c
	if c.sum == "" {
		l.out.Unread++
		return fmt.Sprintf("unread %d %d %d %d", st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()), nil
	}
	return c.sum, l.ctx.Err()
}

// contents hashes what a file holds, or leaves the hash empty when it cannot be read, or is too much. One that was read
// before is read again in any case: it would seem changed otherwise.
func (l *look) contents(fd int, name string, c *content, again bool) error {
	limits := l.budget.limits
	if c.size > limits.FileBytes || !again && (l.read+c.size > limits.Bytes || l.now().Sub(l.began) > limits.Patience) {
		return nil
	}
	sub, err := openBelow(fd, name, 0)
	if err != nil {
		return nil // replaced since, or not ours to read
	}
	f := os.NewFile(uintptr(sub), name)
	defer f.Close()
	var now unix.Stat_t
	if err := unix.Fstat(sub, &now); err != nil || now.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, io.LimitReader(f, limits.FileBytes+1), l.buf)
	if l.read += n; err != nil {
		return err
	}
	c.sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// racy is how old a file must be for its times to tell the next change.
const racy = 2 * time.Second

func stamp(t unix.Timespec) time.Time { return time.Unix(t.Unix()) }

func hash(r io.Reader) string {
	h := sha256.New()
	_, _ = io.Copy(h, r) // from memory
	return hex.EncodeToString(h.Sum(nil))
}

func specialOf(mode uint32) planner.MarkKind {
	switch mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		return planner.MarkSocket
	case unix.S_IFIFO:
		return planner.MarkFIFO
	}
	return planner.MarkDevice
}

func byPath(a, b planner.Mark) int {
	if n := strings.Compare(a.Path, b.Path); n != 0 {
		return n
	}
	return strings.Compare(string(a.Kind), string(b.Kind))
}
