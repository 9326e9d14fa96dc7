package docker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// findPlace looks a clean absolute path up. The error for a symlink names the component; one for
// something missing satisfies errors.Is(err, os.ErrNotExist).
func findPlace(path string) (place, error) {
	fd, err := openPlace(path, unix.O_PATH)
	if err != nil {
		return place{}, err
	}
	defer unix.Close(fd)
	return statPlace(fd, path)
}

func statPlace(fd int, path string) (place, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return place{}, fmt.Errorf("look at %s: %w", path, err)
	}
	// Dev and the like have other widths on other architectures.
	return place{path: path, dev: uint64(st.Dev), inode: st.Ino, uid: st.Uid, gid: st.Gid, mode: uint32(st.Mode)}, nil
}

// openPlace opens without following symlinks, magic links of /proc included.
func openPlace(path string, flags uint64) (int, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return -1, fmt.Errorf("%q is not a clean absolute path", path)
	}
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	for try := 1; ; try++ {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case err == nil && flags&unix.O_PATH != 0:
			// O_PATH with O_NOFOLLOW opens a final symlink itself instead of failing.
			p, err := statPlace(fd, path)
			if err == nil && p.mode&modeType == modeSymlink {
				err = symlinkIn(path)
			}
			if err != nil {
				unix.Close(fd)
				return -1, err
			}
			return fd, nil
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) && try < openTries:
			continue // EAGAIN: a rename on the way; the kernel asks to look again
		case errors.Is(err, unix.EAGAIN):
			return -1, fmt.Errorf("look at %s: somebody has a lease of it, or renames it again and again", path)
		case errors.Is(err, unix.ELOOP):
			return -1, symlinkIn(path)
		case errors.Is(err, unix.ENOSYS):
			return -1, fmt.Errorf("look at %s: this kernel has no openat2; sandplan needs Linux 5.6 or newer", path)
		default:
			return -1, fmt.Errorf("look at %s: %w", path, err)
		}
	}
}

// openTries is how often that is done: far more often than anybody renames by chance. A lease of the file, which
// somebody may keep for a minute and take anew, is told in the same way, and not waited for.
const openTries = 1000

// symlinkIn names the first component of a path that is a symlink. It is only for the message: the
// refusal stands whatever it finds.
func symlinkIn(path string) error {
	at := "/"
	for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			target, _ := os.Readlink(at)
			return fmt.Errorf("%s is a symlink to %s", at, target)
		}
	}
	return fmt.Errorf("%s goes through a symlink", path)
}

// readSmall reads a regular file of at most max bytes, never blocking on what is none.
func readSmall(path string, max int64) ([]byte, error) {
	fd, err := openPlace(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(b)) > max {
		return nil, fmt.Errorf("%s has more than %d bytes", path, max)
	}
	return b, nil
}

// hasACL reports whether an access control list stands beside the mode of a directory.
func hasACL(path string) bool {
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
