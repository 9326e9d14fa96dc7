package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MayChange says why a file may not be changed, made or removed by a patch, nil when it may: it must lie
// below the directory, be reached through no link, be a regular file if it is there, and have no part
// whose name is protected. Case does not count in those: the same files may be checked out where it does
// not.
//
// Nothing is opened, so that the answer holds for as long as nobody else changes the directory; in a
// sandbox there is nobody else, and a patch makes no links.
func (r *Reader) MayChange(name string, protected []string) error {
	rel, err := r.relative(name)
	if err != nil {
		return err
	}
	if rel == "." {
		return fmt.Errorf("%s is the directory itself", strconv.Quote(name))
	}
	parts := strings.Split(rel, "/")
	there := true
	for i, part := range parts {
		if slices.ContainsFunc(protected, func(p string) bool { return strings.EqualFold(p, part) }) {
			return fmt.Errorf("%s: %s is protected", strconv.Quote(name), part)
		}
		if !there {
			continue
		}
		switch info, err := r.root.Lstat(path.Join(parts[:i+1]...)); {
		case errors.Is(err, fs.ErrNotExist):
			there = false
		case err != nil:
			return fmt.Errorf("%s: %w", strconv.Quote(name), cause(err))
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s leads through the symbolic link %s", strconv.Quote(name), strconv.Quote(path.Join(parts[:i+1]...)))
		case i+1 == len(parts) && !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", strconv.Quote(name))
		}
	}
	return nil
}
