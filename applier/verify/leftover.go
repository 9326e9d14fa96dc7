package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A verification that is killed leaves its directory behind. It holds a lock on a file in it for as long as
// it lives, which the kernel takes away with the process: the next one finds out who is dead, and tidies up.

const (
	placesPrefix = "sandplan-verify-"
	lockName     = "lock"
	// youth is how old a directory without a lock must be before it counts as left behind: somebody may be
	// about to make it.
	youth = time.Hour
)

// hold makes the lock of a directory, and holds it until the file is closed. It has its name only once it is held.
func hold(root string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(root, lockName+".new"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(root, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeLeftovers removes what verifications left below dir that were killed, and returns its paths. What
// belongs to another user, and what is no directory, is not sandplan's, whatever its name says.
func removeLeftovers(dir string, now time.Time) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasPrefix(e.Name(), placesPrefix) || !e.IsDir() || !isLeft(path, now) {
			continue
		}
		if failed := os.RemoveAll(path); failed != nil {
			err = errors.Join(err, fmt.Errorf("remove what a killed verification left at %s: %w", path, failed))
			continue
		}
		removed = append(removed, path)
	}
	return removed, err
}

func isLeft(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return now.Sub(info.ModTime()) > youth
	}
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
