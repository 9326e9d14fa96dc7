package launch

import (
	"time"

	"github.com/sandplan/sandplan/planner"
)

// EventKind says what an Event tells.
type EventKind string

// The events, in the order in which they come.
const (
	EventWaiting    EventKind = "waiting"     // for a lock that Info describes
	EventConverging EventKind = "converging"  // -apply changes the engine
	EventRearming   EventKind = "rearming"    // it has run before and is armed anew
	EventCompared   EventKind = "compared"    // nothing differs; N objects were compared
	EventProxyReady EventKind = "proxy_ready" // Detail is where it listens
	EventProven     EventKind = "proven"      // N checks passed inside
	EventRunning    EventKind = "running"     // the agent has its prompt; ID is its container's
	EventStopping   EventKind = "stopping"    // Detail is why
	EventEnded      EventKind = "ended"       // Code is the exit code
	EventEgress     EventKind = "egress"      // what the proxy did; Egress is set
	EventArmed      EventKind = "armed"       // again, after the run
	EventKept       EventKind = "kept"
	EventDisposed   EventKind = "disposed"
)

// Event is something that people like to know while a run goes on.
type Event struct {
	Kind EventKind
	Addr planner.Address // the invocation
	At   time.Time
	// Took is the time since the run began; for EventEnded, since the agent's start.
	Took   time.Duration
	ID     string
	N      int
	Code   int
	Detail string
	Egress *Egress
}
