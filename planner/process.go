package planner

import "time"

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
