// Package permission says what an invocation lets its agent do, and whether one declaration lets it do more
// than another. It is pure: both sides come as sets that somebody else has read, from a configuration or
// from what the engine's objects declare.
//
// Whatever cannot be shown to be no more than before counts as more. Start with rules.go.
package permission

import (
	"math"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Set is what one invocation lets its agent do.
type Set struct {
	Invocation planner.Address
	// Vendor and Phase are names of blocks; "" where the source does not tell. A phase's name takes no part in
	// the comparison: what it stands for does.
	Vendor, Phase string
	// Engine is which one the configuration chooses; "" where the source does not tell.
	Engine string
	// Tools are those of the vendor's CLI, in the user's words; nil where nobody knows them.
	Tools []string
	// Ceiling is what the phase may allow at most; nil where nobody knows it.
	Ceiling []string

	Image string // by its ID
	User  string // UID:GID
	// Read and Write are the host's directories and files that it sees, and those that it may change.
	Read, Write []string
	// Git are the repositories that it sees with their history.
	Git []string
	// Reach are HOST:PORT, with the fixed addresses that a host may have; DNS are the name servers that say
	// where the others are.
	Reach, DNS []string
	// Command is the agent's own command line, Files are those that it finds beside the worktree's.
	Command []string
	Files   []string
	Runners []Runner // sorted by name
	// Env and Credentials are names.
	Env, Credentials []string
	// Sources stand for where the secrets of credentials come from.
	Sources map[string]string
	// Values are those of variables, as far as a declaration decides them.
	Values map[string]string
	Limits Limits
	// AnyPrompt says that whoever starts it chooses the prompt.
	AnyPrompt bool
}

// Runner is an approved command of the phase.
type Runner struct {
	Name    string
	Argv    []string
	Image   string
	Timeout time.Duration
}

// Limits are bounds; a larger one is more.
type Limits struct {
	Memory, Output, Upload    int64 // bytes
	Download                  int64 // bytes, or Unbounded
	NanoCPUs, PIDs            int64
	Tunnels, TunnelsPerSecond int64
	Timeout                   time.Duration
}

// Unbounded is a limit that is not there: more than any that is.
const Unbounded = math.MaxInt64

// Report is a set beside what it is held against.
type Report struct {
	Set
	// New says that there is nothing to hold it against: all of it is more than before.
	New     bool
	Widened []Widening
}

// Widening is one thing that an agent may do and may not have done before.
type Widening struct {
	// What is the row: reach, write, limits.memory.
	What string
	// From and To are the two sides; From is "" where there was nothing.
	From, To string
	// Because says why it counts as more, as a clause.
	Because string
}

// Against holds the sets of one declaration against those of another, by the addresses of the invocations:
// one that was renamed is a new one.
func Against(base, now []Set) []Report {
	known := map[planner.Address]Set{}
	for _, s := range base {
		known[s.Invocation] = s
	}
	var out []Report
	for _, s := range now {
		r := Report{Set: s}
		if old, there := known[s.Invocation]; there {
			r.Widened = Widened(old, s)
		} else {
			r.New = true
		}
		out = append(out, r)
	}
	return out
}

// Wider says whether any report lets an agent do more, new invocations included.
func Wider(reports []Report) bool {
	for _, r := range reports {
		if r.New || len(r.Widened) > 0 {
			return true
		}
	}
	return false
}
