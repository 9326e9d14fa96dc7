package planner

import (
	"errors"
	"time"
)

// ErrGone is in the error of looking at, waiting for or killing a container that the engine does not
// know any more: it certainly does not run.
var ErrGone = errors.New("the engine has no such container")

// Process is what the engine says of a container's process at one moment.
type Process struct {
	Status Status
	// PID is the process in the engine's namespace, 0 when nothing runs.
	PID      int
	ExitCode int
	// OOM: the kernel killed something in the container for want of memory.
	OOM bool
	// Error is why the engine could not start it.
	Error    string
	Started  time.Time
	Finished time.Time
	Restarts int
}

// Source is one directory or file of the host that a container has mounted: what the host sees at
// Host, which must be what the container sees at Path.
type Source struct {
	Path  string // in the container
	Host  string
	Dev   uint64
	Inode uint64
}

// Signal is something that the engine says has happened to one of its objects.
type Signal struct {
	At time.Time `json:"at"`
	// Type is container, network, …; Action is what happened, with its arguments for an exec.
	Type   string `json:"type"`
	Action string `json:"action"`
	// ID is the object's; Container is the container that a network was connected to or disconnected from.
	ID        string `json:"id"`
	Container string `json:"container,omitempty"`
}
