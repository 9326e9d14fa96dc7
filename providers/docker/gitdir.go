package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// gitDir is what stands at .git in a worktree. The agent never writes it: a hook or a filter in there
// is a command that the user's own git runs later, on the host.
type gitDir struct {
	kind gitKind
	// pointer is what a linked worktree's .git file says after "gitdir: ", and common the repository
	// that it leads to, on the host.
	pointer string
	common  string
}

type gitKind int

const (
	gitAbsent gitKind = 0
	gitOwn    gitKind = 1 // a directory: the worktree is the repository's main one
	gitLinked gitKind = 2 // a file: made by `git worktree add`
)

// findGitDir looks at .git of a worktree and checks where it leads.
func findGitDir(worktree string) (gitDir, error) {
	p, err := findPlace(filepath.Join(worktree, ".git"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return gitDir{}, nil
	case err != nil:
		return gitDir{}, err
	case p.isDir():
		return gitDir{kind: gitOwn}, nil
	case p.isFile():
		return followGitFile(worktree)
	}
	return gitDir{}, fmt.Errorf("%s is neither a directory nor a file", p.path)
}

// followGitFile accepts a .git file only in the form that `git worktree add` gives it, with the
// repository pointing back: whoever can write the worktree could otherwise make the file name any
// directory of the host, and have it mounted.
func followGitFile(worktree string) (gitDir, error) {
	file := filepath.Join(worktree, ".git")
	text, err := readLine(file)
	if err != nil {
		return gitDir{}, err
	}
	pointer, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok || pointer == "" {
		return gitDir{}, fmt.Errorf("%s does not begin with \"gitdir: \"", file)
	}
	if !utf8.ValidString(pointer) { // mounts are JSON, which is text
		return gitDir{}, fmt.Errorf("%s leads to %q, which is not valid UTF-8 and cannot be mounted; rename that directory, and run `git worktree repair`", file, pointer)
	}
	private := hostPath(worktree, pointer) // <repo>/.git/worktrees/NAME
	common := filepath.Dir(filepath.Dir(private))
	if filepath.Base(filepath.Dir(private)) != "worktrees" || filepath.Base(common) != ".git" {
		return gitDir{}, fmt.Errorf("%s leads to %s, which is not of the form REPOSITORY/.git/worktrees/NAME; "+
			"submodules and worktrees of bare repositories cannot be used, a clone or `git worktree add` of a plain repository can", file, private)
	}
	if p, err := findPlace(common); err != nil || !p.isDir() {
		return gitDir{}, fmt.Errorf("%s leads to %s: %w", file, common, orNotDir(err))
	}
	back, err := readLine(filepath.Join(private, "gitdir"))
	if err != nil {
		return gitDir{}, fmt.Errorf("%s leads to %s: %w", file, private, err)
	}
	if hostPath(private, back) != file {
		return gitDir{}, fmt.Errorf("%s leads to %s, which belongs to another worktree: its gitdir file says %s; "+
			"`git worktree repair` mends that after a move", file, private, back)
	}
	if rel, err := readLine(filepath.Join(private, "commondir")); err != nil || rel != "../.." {
		return gitDir{}, fmt.Errorf("%s leads to %s, whose commondir file says %q instead of \"../..\"", file, private, rel)
	}
	return gitDir{kind: gitLinked, pointer: pointer, common: common}, nil
}

// commonTarget is where the repository must stand in the container for the pointer to lead to it.
func (g gitDir) commonTarget(worktree string) string {
	return filepath.Dir(filepath.Dir(hostPath(worktree, g.pointer)))
}

// hostPath reads a path as git does: relative to the directory of the file that names it.
func hostPath(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// readLine reads a file of one line. Git's own are shorter than the longest path.
func readLine(path string) (string, error) {
	b, err := readSmall(path, 4200)
	if err != nil {
		return "", err
	}
	line := strings.TrimSuffix(string(b), "\n")
	if strings.ContainsAny(line, "\n\x00") {
		return "", fmt.Errorf("%s has more than one line", path)
	}
	return line, nil
}

func orNotDir(err error) error {
	if err != nil {
		return err
	}
	return errors.New("it is not a directory")
}
