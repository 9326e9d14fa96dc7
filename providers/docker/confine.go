package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/hclspec"
)

// A writable worktree must not hold what decides what may be written: the configuration, its lock
// file, the files it reads, credentials, records, this program, or what another agent gets to see.
// An agent could otherwise change the declaration that it is held to at its next run.

// exposure is everything of that kind that one configuration has, whichever invocation it belongs to.
type exposure struct {
	configDir string
	// files by what they are: "the lock file", …
	files []exposed
	// trees are the worktrees and repositories of all invocations.
	trees []exposed
	// onPaper, if not nil, are the directories to mount read-only over worktrees, as a recording has them: there
	// is nothing to look at.
	onPaper map[string][]string
}

// exposed is one of them. Its trail is every place that has a say in what the path leads to.
type exposed struct {
	path, what string
	trail      []string
}

// exposureOf gathers it. found are the worktrees of the invocations that could be resolved.
func (e *Engine) exposureOf(s *hclspec.Spec, found map[string]worktree) exposure {
	x := exposure{configDir: resolved(s.Dir)}
	add := func(path, what string) {
		if filepath.IsAbs(path) {
			x.files = append(x.files, exposed{filepath.Clean(path), what, trail(path)})
		}
	}
	add(s.Dir, "the directory of the configuration")
	for _, name := range sortedKeys(s.Paths) {
		add(s.Paths[name], "a file of the configuration")
	}
	add(s.Lock.Path, "the lock file")
	for _, v := range s.Vendors {
		for _, c := range v.Credentials {
			add(c.SourceFile.V, "the credential "+c.Name)
		}
	}
	for _, inv := range s.Invocations {
		for _, f := range inv.Files {
			add(f, "a file that "+inv.Address+" is made of")
		}
		if w, ok := found[inv.Address]; ok {
			x.trees = append(x.trees, exposed{path: w.path, what: "the worktree of " + inv.Address})
			if w.git.kind == gitLinked {
				x.trees = append(x.trees, exposed{path: w.git.common, what: "the repository of " + inv.Address})
			}
		}
	}
	add(e.options.Self, "sandplan's own program")
	add(e.options.DataDir, "sandplan's data directory (runs and records)")
	return x
}

// confine returns the directories that must be mounted read-only over a writable worktree, or says
// what is in its way.
func (x exposure) confine(w worktree) (readOnly []string, err error) {
	if x.onPaper != nil {
		return x.onPaper[w.path], nil
	}
	if w.git.kind == gitAbsent {
		return nil, &refusal{summaryGit, fmt.Sprintf("%s is no repository: there is no .git in it. An agent that may write could make one, "+
			"with hooks that your git would run on this machine. Run `git init` there, or use a clone.", w.path)}
	}
	if x.configDir == w.path {
		return nil, &refusal{summaryExposed, fmt.Sprintf("The configuration lies at the root of the worktree %s, where the agent may write, so that it could change "+
			"its own declaration. Either move the configuration into a subdirectory, which is then mounted read-only over the worktree, "+
			"or give the agent a worktree of its own: `git worktree add ../agent`.", w.path)}
	}
	if below(w.path, x.configDir) {
		// A mount point cannot be renamed, but the directory that holds it can, with the mount on it.
		if filepath.Dir(x.configDir) != w.path {
			return nil, &refusal{summaryExposed, fmt.Sprintf("The configuration directory %s lies more than one level below the worktree %s: the agent could rename "+
				"%s and put another configuration in its place. Either move the configuration into a directory directly below the worktree, which is "+
				"then mounted read-only over it, or give the agent a worktree of its own: `git worktree add ../agent`.",
				x.configDir, w.path, filepath.Dir(x.configDir))}
		}
		readOnly = append(readOnly, x.configDir)
	}
	guarded := func(path string) bool {
		if within(filepath.Join(w.path, ".git"), path) {
			return true // read-only in every phase
		}
		for _, dir := range readOnly {
			if within(dir, path) {
				return true
			}
		}
		return false
	}
	for _, f := range x.files {
		for _, place := range f.trail {
			if !within(w.path, place) || guarded(place) {
				continue
			}
			where := "lies"
			if place != f.path {
				where = fmt.Sprintf("is reached through %s, which lies", place)
			}
			return nil, &refusal{summaryExposed, fmt.Sprintf("%s, %s, %s in the worktree %s, where an agent may write. Either move it into the "+
				"directory of the configuration (a subdirectory is mounted read-only over the worktree) or out of the worktree, "+
				"or give the agent a worktree of its own: `git worktree add ../agent`.", f.path, f.what, where, w.path)}
		}
	}
	for _, t := range x.trees {
		if below(w.path, t.path) && !guarded(t.path) {
			return nil, &refusal{summaryExposed, fmt.Sprintf("%s, %s, lies below the worktree %s, where another agent may write: that agent could put "+
				"something else in its place. Use worktrees beside each other.", t.path, t.what, w.path)}
		}
	}
	return readOnly, nil
}

// nestedLimit bounds the search for nested repositories; what lies deeper is not warned of.
const (
	nestedLimit = 4000
	nestedDepth = 4
)

// nestedRepositories finds repositories and submodules below a worktree. Their .git is not mounted
// read-only: the directory that holds it could be renamed, with the mount on it.
func nestedRepositories(root string) []string {
	var out []string
	seen := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(dir) // what cannot be read here cannot be written there either
		if err != nil {
			return
		}
		for _, e := range entries {
			if seen++; seen > nestedLimit {
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Name() == ".git" && dir == root:
			case e.Name() == ".git":
				out = append(out, strings.TrimPrefix(dir, root+"/"))
			case e.IsDir() && depth < nestedDepth:
				walk(path, depth+1)
			}
		}
	}
	walk(root, 1)
	sort.Strings(out)
	return out
}
