package docker

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links the kernel follows in one path before it gives up (path_resolution(7)).
const maxLinks = 40

// trail is every place that has a say in what a path leads to, each as an absolute path without
// symbolic links: the links on the way, what ".." in their targets leaves behind, and what is reached
// in the end. Whoever may write where one of these lies chooses what the path means: comparing the
// path as it is written would miss that. What is not there (yet) ends the trail as it is written.
func trail(path string) []string {
	var out []string
	at, rest, links := "/", names(filepath.Clean(path)), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			out, at = append(out, at), filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return append(out, filepath.Join(append([]string{next}, rest...)...))
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		out = append(out, next)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return out
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(names(target), rest...)
	}
	return append(out, at)
}

// resolved is where a path leads in the end.
func resolved(path string) string {
	all := trail(path)
	return all[len(all)-1]
}

// names are the components of a path. "." and empty ones are none; ".." stays, because after a link it
// is not the directory that is written before it.
func names(path string) []string {
	var out []string
	for _, name := range strings.Split(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}
