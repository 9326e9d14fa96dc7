package walk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/planner"
)

// maxSpecial is how many are worth telling; one is enough to refuse.
const maxSpecial = 20

type special struct {
	budget
	marks []planner.Mark
}

func (s *special) tree(root string) ([]planner.Mark, error) {
	fd, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	if err := s.dir(fd, "", 0); err != nil {
		return nil, fmt.Errorf("look over %s: %w", root, err)
	}
	slices.SortFunc(s.marks, byPath)
	return s.marks, nil
}

// dir looks at a directory and closes it.
func (s *special) dir(fd int, rel string, depth int) error {
	// The name is used by ReadDir where the file system does not tell types: it leads to this very
	// directory, whatever its path has become.
	d := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd))
	defer d.Close()
	if err := s.enter(rel, depth); err != nil {
		return err
	}
	for {
		list, err := d.ReadDir(1024)
		for _, e := range list {
			if err := s.entry(fd, path.Join(rel, e.Name()), e, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) || len(s.marks) >= maxSpecial { // or removed since
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *special) entry(fd int, rel string, e fs.DirEntry, depth int) error {
	if err := s.spend(rel); err != nil {
		return err
	}
	if k := specialKind(e.Type()); k != "" {
		s.marks = append(s.marks, planner.Mark{Path: rel, Kind: k})
		return nil
	}
	if !e.IsDir() {
		return nil
	}
	sub, err := openBelow(fd, e.Name(), unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // not what was listed any more; the next look sees it
	case errors.Is(err, unix.EACCES):
		return nil // somebody else's; the proof from the inside looks with the agent's eyes
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%q is a mount point", rel)
	case err != nil:
		return fmt.Errorf("%q: %w", rel, err)
	}
	return s.dir(sub, rel, depth+1)
}

func specialKind(t fs.FileMode) planner.MarkKind {
	switch {
	case t&fs.ModeSocket != 0:
		return planner.MarkSocket
	case t&fs.ModeNamedPipe != 0:
		return planner.MarkFIFO
	case t&(fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0:
		return planner.MarkDevice
	}
	return ""
}

func openRoot(root string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := openAgain(unix.AT_FDCWD, root, &how)
	if err != nil {
		return -1, fmt.Errorf("look over %s: %w", root, err)
	}
	return fd, nil
}

// openBelow opens something in a directory: never through a symlink, never on another mount, and never
// waiting for the other end of a FIFO.
func openBelow(dir int, name string, flags uint64) (int, error) {
	return openAgain(dir, name, &unix.OpenHow{Flags: flags | unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
}

// openTries is how often what the kernel asks to repeat is repeated: far more often than anybody renames by chance.
const openTries = 1000

// openAgain repeats what the kernel asks to repeat: EAGAIN is a rename on the way. It is also a lease that somebody
// has of the file, who may keep it for a minute, and take it anew: that is not waited for.
func openAgain(dir int, name string, how *unix.OpenHow) (int, error) {
	for try := 1; ; try++ {
		fd, err := unix.Openat2(dir, name, how)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) && try < openTries {
			continue
		}
		return fd, err
	}
}
