//go:build linux

package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// treeBound is how many entries of a worktree are looked at. A larger one is refused rather than
// looked at in part: whoever wanted to hide a socket would bring the files to hide it behind.
const treeBound = 4 << 20

// proveTrees looks for sockets, FIFOs and devices in bound directories. Each is a way to a process on
// the host that no network rule sees, in a read-only mount too.
func proveTrees(cfg *Config) checks {
	var c checks
	for _, m := range cfg.Mounts {
		if m.Tree {
			err := walkTree(m.Path, cfg.UID, treeBound)
			c.add("tree."+m.Path, err == nil, "%v", err)
		}
	}
	return c
}

// walkTree looks at all names below root without following a symbolic link. uid is the user's: a
// directory of its own that it may not read now it can open later, so that it counts as unseen.
func walkTree(root string, uid, bound int) error {
	w := walker{uid: uid, left: bound}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", root, err)
	}
	return w.dir(os.NewFile(uintptr(fd), root))
}

type walker struct {
	uid, left int
}

// dir looks at one directory and closes it.
func (w *walker) dir(d *os.File) error {
	defer d.Close()
	for {
		list, err := d.ReadDir(1024)
		for _, e := range list {
			if err := w.entry(d, e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walker) entry(d *os.File, e fs.DirEntry) error {
	name := path.Join(d.Name(), e.Name())
	if w.left--; w.left < 0 {
		return fmt.Errorf("more entries than can be looked at; the last one is %s", name)
	}
	switch t := e.Type(); {
	case t&fs.ModeSocket != 0:
		return fmt.Errorf("%s is a socket", name)
	case t&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is a FIFO", name)
	case t&(fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0:
		return fmt.Errorf("%s is a device", name)
	case !t.IsDir():
		return nil
	}
	fd, err := unix.Openat(int(d.Fd()), e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EACCES) && !w.mayOpenLater(d, e.Name()):
		return nil
	case errors.Is(err, unix.ENOENT):
		return nil // removed since
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return w.dir(os.NewFile(uintptr(fd), name))
}

// mayOpenLater reports whether the user owns a directory, so that chmod opens it.
func (w *walker) mayOpenLater(d *os.File, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err != nil || int(st.Uid) == w.uid
}
