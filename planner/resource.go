package planner

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Schema is the version of labels and rows that this program writes and reads. An object with
// another one is pending, never drift.
const Schema = "2"

// Scope is what one configuration owns on one engine.
type Scope struct {
	Project   string
	Workspace string
}

func (s Scope) String() string { return s.Project + "/" + s.Workspace }

// Kind is the kind of an object, one per file of the provider.
type Kind string

// The kinds of objects.
const (
	KindImage   Kind = "image"   // sandplan.image
	KindShim    Kind = "shim"    // sandplan.shim
	KindUplink  Kind = "uplink"  // sandplan.uplink
	KindPinned  Kind = "pinned"  // vendor and runner images: not ours, never labelled, never removed
	KindNetwork Kind = "network" // invocation.N.network
	KindProxy   Kind = "proxy"   // invocation.N.proxy
	KindAgent   Kind = "agent"   // invocation.N.agent
	KindRunner  Kind = "runner"  // invocation.N.runner["x"]
)

// Resource is one wanted object.
type Resource struct {
	Addr Address
	Kind Kind
	// Title is what the declaration says of it in the user's words: "vendor.claude, phase.review".
	Title string
	// Decl is the block that declares it.
	Decl hcl.Range
	// DependsOn are created before it and deleted after it.
	DependsOn []Address
	// Fields are all rows of its kind with their wanted values, sorted by path.
	Fields []Field
	// Digest is Digest(Fields).
	Digest string
	// Lost says that nothing can make it where it is absent: a local image that is in no registry.
	Lost bool
}

// Status is what the engine says of a container's process. Objects that run nothing have none.
type Status string

// The statuses that planning tells apart.
const (
	StatusNone    Status = ""        // not a container
	StatusCreated Status = "created" // never started
	StatusRunning Status = "running" // started: running, paused, restarting
	StatusExited  Status = "exited"  // started once, and over: exited, dead, removing
)

// Object is one object that the engine has, of this scope or of no scope (images).
type Object struct {
	Addr Address
	Kind Kind
	// ID is the engine's; Name is the engine's too and only for messages.
	ID   string
	Name string
	// Schema, Digest and Origin are the labels of those names; "" where the object has none.
	Schema string
	Digest string
	Origin string
	// Declared is what the object's own label says it should be; Observed is what it is. Both have one
	// entry for each row of the kind. Declared is nil when the label is missing or unreadable.
	Declared []Field
	Observed []Field
	// DependsOn are deleted after it.
	DependsOn []Address
	Status    Status
	// Extra is what the object has that no row describes: an endpoint more, a file written into it, a
	// field that this program does not know. Always drift.
	Extra []Extra
	// Shared is set for an image that other scopes use, too: it stays when this one does not want it any more.
	Shared bool
	// Fingerprint is the SHA-256 of all that was observed, for saved plans.
	Fingerprint string
}

// Extra is something found on an object that nothing declares.
type Extra struct {
	Path   string
	Detail string
}

// Conflict is an object that stands where ours would, and is not ours: never adopted, changed or
// deleted.
type Conflict struct {
	Addr   Address // ours, for which there is no room
	Kind   Kind
	Name   string
	ID     string
	Detail string // what makes it foreign, and what the user can do
}

// Taken is a range of addresses that somebody else uses.
type Taken struct {
	Prefix netip.Prefix
	By     string // network "x", route 10.0.0.0/8 dev tun0
}

// Snapshot is what one look at the engine found.
type Snapshot struct {
	EngineID  string
	Scope     Scope
	Objects   []Object
	Conflicts []Conflict
	// Foreign are objects with names such as ours have, that are not ours. Whether one stands in the way
	// of a wanted object only its declaration tells: then it becomes a conflict.
	Foreign []Conflict
	// Taken are the addresses that others use: the engine's other networks, and this machine's routes.
	Taken []Taken
	// Leases are the live and dead leases of the scope's invocations.
	Leases []Lease
	// Duplicates are further objects that carry the labels of an address which another object has.
	Duplicates []Object
	// Unchecked are properties that this look could not verify, each with the moment that will.
	Unchecked []string
	// Elsewhere are scopes of the same origin under another project or workspace.
	Elsewhere []Scope
}

// Object is the object at an address, if there is one.
func (s *Snapshot) Object(a Address) (Object, bool) {
	for i := range s.Objects {
		if s.Objects[i].Addr == a {
			return s.Objects[i], true
		}
	}
	return Object{}, false
}

// IDs are the engine IDs of objects, by address.
type IDs map[Address]string

// OperationDispatch is the operation of a lease under which a runner runs, and is armed again.
const OperationDispatch = "dispatch"

// LockInfo says who holds a lock, and since when.
type LockInfo struct {
	ID        string // the engine ID of the container that is the lock
	Operation string // apply, destroy, run, …
	Who       string // user@host
	BootID    string
	PIDNS     string // the pid namespace, as its inode
	PID       int
	StartTime uint64 // of the process, in clock ticks since boot (proc(5), stat field 22)
	Version   string
	Created   time.Time
}

// Lease is the lock that a run holds on its invocation. Live is false when its holder is known to
// be dead; a holder of which nothing can be known counts as alive.
type Lease struct {
	Invocation Address
	Info       LockInfo
	Live       bool
}

// LockedError says that somebody else holds the lock that an operation needs.
type LockedError struct {
	// What is "the scope demo/default" or an invocation's address.
	What string
	Info LockInfo
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by %s (%s, pid %d, since %s; lock ID %.12s)", e.What, e.Info.Who,
		e.Info.Operation, e.Info.PID, e.Info.Created.UTC().Format(time.RFC3339), e.Info.ID)
}

// ErrLockLost is in the error of looking at a lock that its holder does not hold any more: somebody
// removed it.
var ErrLockLost = errors.New("the lock is lost")

// ObjectError is the failure of one operation on one object.
type ObjectError struct {
	Addr Address
	Op   string // "create", "delete", …
	Decl hcl.Range
	Err  error
}

func (e *ObjectError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Addr, e.Err) }

func (e *ObjectError) Unwrap() error { return e.Err }
