package launch

import (
	"context"
	"io"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/inside"
)

// Engine is what a run needs of an engine. Containers are named by their engine ID alone: a name can
// be taken by another container between two calls.
type Engine interface {
	Observe(context.Context, planner.Scope) (planner.Snapshot, error)
	// Recheck looks again, and deeper, at the objects at some addresses. It hashes the shim only when
	// planner.AddrShim is among them.
	Recheck(context.Context, planner.Scope, []planner.Address) (planner.Snapshot, error)
	// Attach connects to a container that was not started yet. Closing stdin ends the container's standard
	// input and nothing else; done gets one value when its output ends.
	Attach(ctx context.Context, id string, stdout, stderr io.Writer) (stdin io.WriteCloser, done <-chan error, err error)
	Start(ctx context.Context, id string) error
	// Wait returns when the container does not run. Its error, and those of Process and Kill, is
	// planner.ErrGone for a container that is not there any more.
	Wait(ctx context.Context, id string) (planner.Process, error)
	Process(ctx context.Context, id string) (planner.Process, error)
	Kill(ctx context.Context, id string) error
	// Executes reports whether the first process of a container executes sandplan's own program, as far as
	// that can be known from here.
	Executes(ctx context.Context, id string, pid int) (same, known bool, err error)
	// IsProxy reports whether a container is, by its labels, a proxy of a scope. Its error is planner.ErrGone for one
	// that is not there any more.
	IsProxy(ctx context.Context, scope planner.Scope, id string) (bool, error)
	// Watch tells what happens on the engine from a moment on, until ctx ends or the engine is lost; then
	// the channel is closed.
	Watch(ctx context.Context, since time.Time) (<-chan planner.Signal, error)
	// Past is what the engine remembers of what happened from a moment on until now.
	Past(ctx context.Context, since time.Time) ([]planner.Signal, error)
}

// Compiled is the declaration as resources of one engine.
type Compiled interface {
	Resources() []planner.Resource
	// Complete adds to a snapshot what only the declaration says where to look for: pinned images.
	Complete(planner.Snapshot) planner.Snapshot
	// Sources are what the container at an address has mounted from the host, as the host sees it now.
	Sources(planner.Address) ([]planner.Source, error)
	// Inside is what the proxy at an address must find in its container.
	Inside(planner.Address) (inside.Proxy, error)
	// Unmoved fails when the host has something else by now at one of the paths that were mounted.
	Unmoved([]planner.Source) error
	Worktrees
}

// Lock is a lock that is held.
type Lock interface {
	Info() planner.LockInfo
	// Check fails when the lock is not there any more: somebody pruned or forced it.
	Check(context.Context) error
	Release(context.Context) error
}
