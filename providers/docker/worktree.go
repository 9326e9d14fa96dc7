package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/planner/policy"
)

// worktree is one worktree as the host has it, checked and resolved: everything that a container
// mounts of it, and who runs there.
type worktree struct {
	place
	git gitDir
}

// bind is one directory or file of the host in a container.
type bind struct {
	source   string
	target   string
	readOnly bool
}

// unprivileged runs where the worktree belongs to root: in read-only phases only.
const unprivileged = 65532

// findWorktree resolves a worktree and refuses what must never be in a container. Errors are
// sentences for the user.
func (h *host) findWorktree(path string) (worktree, error) {
	p, err := findPlace(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return worktree{}, &refusal{summaryWorktreeMissing, fmt.Sprintf("There is no directory %s. Make the checkout, or set worktree to the directory of one.", path)}
	case err != nil:
		return worktree{}, &refusal{summaryWorktree, sentence(err) + " A worktree is used by its real path: somebody who can change a symlink on the way to it would choose what the agent gets. Write the path that `realpath` prints."}
	case !p.isDir():
		return worktree{}, &refusal{summaryWorktree, fmt.Sprintf("%s is not a directory.", path)}
	}
	if why := h.forbids(path); why != "" {
		return worktree{}, &refusal{summaryWorktree, fmt.Sprintf("%s %s. Use a directory of its own for the agent, such as a clone or a `git worktree`.", path, why)}
	}
	for _, m := range h.mounts {
		if below(path, m) {
			return worktree{}, &refusal{summaryWorktree, fmt.Sprintf("Something is mounted at %s, below the worktree %s: a read-only worktree would not make it read-only. Unmount it, or move the worktree.", m, path)}
		}
	}
	g, err := findGitDir(path)
	if err != nil {
		return worktree{}, &refusal{summaryGit, sentence(err)}
	}
	if g.kind == gitLinked {
		if why := h.forbids(g.common); why != "" {
			return worktree{}, &refusal{summaryGit, fmt.Sprintf("The repository of %s is %s, which %s.", path, g.common, why)}
		}
	}
	return worktree{place: p, git: g}, nil
}

// user is who the agent runs as: the declared user, else the worktree's owner.
func (w worktree) user(declared string, writable bool) (policy.User, error) {
	if declared != "" {
		u, err := policy.ParseUser(declared)
		if err != nil {
			return policy.User{}, &refusal{summaryUser, sentence(err)}
		}
		return u, w.checkUser(u, writable)
	}
	u := policy.User{UID: w.uid, GID: w.gid}
	if u.UID != 0 {
		return u, w.checkUser(u, writable)
	}
	if writable {
		return u, &refusal{summaryUser, fmt.Sprintf("The worktree %s belongs to root, and nothing runs as root where it may write. "+
			"Set user = \"UID:GID\" to the numbers of a user who may write there (after chown -R, for example), or give the worktree to a user.", w.path)}
	}
	u = policy.User{UID: unprivileged, GID: unprivileged}
	return u, w.checkUser(u, writable)
}

// checkUser refuses a user who must not run there, or who could not do there what the phase is for. An
// access control list may say more than the mode does, and is then left to the proof from the inside.
func (w worktree) checkUser(u policy.User, writable bool) error {
	if err := policy.CheckUser(u, writable); err != nil {
		return &refusal{summaryUser, fmt.Sprintf("The worktree %s belongs to %d:%d: %v.", w.path, w.uid, w.gid, err)}
	}
	need, verb, chmod := uint32(0o5), "read", "o+rx"
	if writable {
		need, verb, chmod = 0o7, "write", "o+rwx"
	}
	if w.allows(u, need) || hasACL(w.path) {
		return nil
	}
	owner := fmt.Sprintf("set user = \"%d:%d\" to run as its owner", w.uid, w.gid)
	if w.uid == 0 && writable {
		owner = fmt.Sprintf("give it to that user (chown -R %s)", u)
	}
	return &refusal{summaryUser, fmt.Sprintf("The worktree %s belongs to %d:%d and has mode %04o, so that %s, whom the agent would run as, may not %s there. "+
		"Either %s, or change the mode (chmod %s).", w.path, w.uid, w.gid, w.mode&0o7777, u, verb, owner, chmod)}
}

// allows reports whether the mode lets a user do what the bits of need say. Nobody in a container is
// exempt, root included: it has no capability that would make it so.
func (p place) allows(u policy.User, need uint32) bool {
	switch {
	case u.UID == p.uid:
		return p.mode>>6&need == need
	case u.GID == p.gid:
		return p.mode>>3&need == need
	}
	return p.mode&need == need
}

// binds are the mounts of a worktree, sorted by target, so that each lies over those before it.
// readOnlyDirs are paths below a writable worktree that the agent must not change.
func (w worktree) binds(writable, git bool, readOnlyDirs []string) ([]bind, error) {
	out := []bind{{source: w.path, target: policy.Worktree, readOnly: !writable}}
	if w.git.kind == gitLinked || w.git.kind == gitOwn && git {
		out = append(out, bind{source: filepath.Join(w.path, ".git"), target: policy.Worktree + "/.git", readOnly: true})
	}
	if w.git.kind == gitLinked && git {
		target := w.git.commonTarget(policy.Worktree)
		if taken := reservedFor(target); taken != "" {
			return nil, &refusal{summaryGit, fmt.Sprintf("The repository of %s would have to stand at %s in the container, where %s is. "+
				"Set git = \"none\", or move the repository.", w.path, target, taken)}
		}
		out = append(out, bind{source: w.git.common, target: target, readOnly: true})
	}
	for _, dir := range readOnlyDirs {
		out = append(out, w.overlay(dir)...)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].target < out[j].target })
	for i := 1; i < len(out); i++ {
		if out[i].target == out[i-1].target {
			return nil, &refusal{summaryExposed, fmt.Sprintf("%s is needed twice in the container, from %s and from %s.", out[i].target, out[i-1].source, out[i].source)}
		}
	}
	return out, nil
}

// overlay mounts a directory read-only over itself. Each directory on the way to it becomes a mount
// of its own as well: what is no mount point can be renamed together with the mounts below it, and
// another directory be put in its place.
func (w worktree) overlay(dir string) []bind {
	rel := strings.TrimPrefix(dir, w.path+"/")
	var out []bind
	at := ""
	for _, part := range strings.Split(rel, "/") {
		at = filepath.Join(at, part)
		out = append(out, bind{source: filepath.Join(w.path, at), target: filepath.Join(policy.Worktree, at), readOnly: at == rel})
	}
	return out
}

// reservedFor says what stands at or around a target in every container, "" when nothing does.
func reservedFor(target string) string {
	for _, r := range []struct{ path, what string }{
		{policy.Worktree, "the worktree"}, {toolDir, "sandplan's own program"}, {policy.RunDir, "sandplan's own directory"},
		{policy.Home, "the agent's home"}, {"/proc", "the kernel's /proc"}, {"/sys", "the kernel's /sys"}, {"/dev", "the kernel's /dev"},
	} {
		if within(r.path, target) || within(target, r.path) {
			return r.what
		}
	}
	return ""
}

// sentence makes an error the first sentence of a detail. A name at its head stays as it is written: subnet_pool,
// invocation.x, /path.
func sentence(err error) string {
	s := strings.TrimSuffix(err.Error(), ".") + "."
	if word, _, _ := strings.Cut(s, " "); strings.ContainsAny(word, `_/:"'=[`) || strings.Contains(strings.TrimSuffix(word, "."), ".") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
