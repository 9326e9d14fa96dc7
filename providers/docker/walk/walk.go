// Package walk looks over directories that may be hostile: an agent wrote them, and may have made
// FIFOs that block whoever opens them, symlinks that lead elsewhere, files of any size, names of any
// bytes, more entries than fit, and directories without end.
//
// Nothing is opened but directories and regular files, each from the directory that holds it and never
// through a symlink, and everything has a bound. Start at Look.
package walk

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Limits bound a look. A tree with more entries or levels is an error and not looked at in part: whoever
// wanted to hide something would bring the files to hide it behind.
type Limits struct {
	Entries int
	Depth   int
	// FileBytes and Bytes are how much is read of one file, and of all, and Patience is for how long. What
	// is beyond is told by size and times, which an agent cannot set back: it has no clock to set.
	FileBytes, Bytes int64
	Patience         time.Duration
}

// DefaultLimits are those of worktrees. The first process in the sandbox has the same bound of entries.
func DefaultLimits() Limits {
	return Limits{Entries: 4 << 20, Depth: 256, FileBytes: 64 << 20, Bytes: 4 << 30, Patience: 10 * time.Second}
}

// Walker looks over one directory again and again, and reads again only what has changed.
type Walker struct {
	root   string
	limits Limits
	now    func() time.Time
	known  map[inode]content
}

// New is a walker of a directory, named by a path without symlinks.
func New(root string, l Limits, now func() time.Time) *Walker {
	return &Walker{root: root, limits: l, now: now, known: map[inode]content{}}
}

// Look hashes the directory and marks what is worth telling in it.
func (w *Walker) Look(ctx context.Context) (planner.Tree, error) {
	l := look{Walker: w, budget: budget{ctx: ctx, limits: w.limits}, began: w.now()}
	return l.tree()
}

// Special finds what is a way to a process on the host, and nothing else: it reads directories only.
func Special(ctx context.Context, root string, l Limits) ([]planner.Mark, error) {
	s := special{budget: budget{ctx: ctx, limits: l}}
	return s.tree(root)
}

// inode is a file of the host.
type inode struct{ dev, ino uint64 }

// content is what a file held when its times were these.
type content struct {
	size         int64
	mtime, ctime time.Time
	sum          string
	racy         bool // it was so new then that it may have changed since without a sign
}

// budget counts what a look has used up.
type budget struct {
	ctx     context.Context
	limits  Limits
	entries int
}

// spend takes one entry off.
func (b *budget) spend(at string) error {
	if b.entries++; b.entries > b.limits.Entries {
		return fmt.Errorf("%q is one entry more than the %d that are looked at", middleCut(at), b.limits.Entries)
	}
	if b.entries%256 == 0 {
		return b.ctx.Err()
	}
	return nil
}

// middleCut shortens a path that somebody made long: both ends say where it is.
func middleCut(at string) string {
	const end = 80
	if len(at) <= 2*end {
		return at
	}
	return strings.ToValidUTF8(at[:end], "") + "…" + strings.ToValidUTF8(at[len(at)-end:], "")
}

func (b *budget) enter(at string, depth int) error {
	if depth > b.limits.Depth {
		return fmt.Errorf("%q lies deeper than the %d levels that are looked at", middleCut(at), b.limits.Depth)
	}
	return nil
}

// repository is where the worktree's own repository is. It is read-only to every agent, while the user
// may go on committing.
const repository = ".git"

// guardedName reports whether git or an agent's CLI acts on things of this name, in any directory. Case
// does not count: the same files may be checked out where it does not.
func guardedName(name string) bool {
	switch strings.ToLower(name) {
	case ".git", ".codex", ".claude", ".mcp.json":
		return true
	}
	return false
}

// gitActsOn reports whether git runs something because of a file of its repository, at a path within
// it.
func gitActsOn(rel string) bool {
	switch path.Base(rel) {
	case "config", "config.worktree", "commondir", "gitdir", "attributes":
		return true
	}
	return strings.Contains("/"+rel, "/hooks/")
}
