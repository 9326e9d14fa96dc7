package verify

import (
	"slices"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// Status is what came of one attempt.
type Status string

// The statuses.
const (
	Held     Status = "held"
	Escaped  Status = "escaped"
	Unproven Status = "unproven"
	// Moot: what the attempt is about does not exist here.
	Moot Status = "moot"
)

// Finding is one attempt with its result.
type Finding struct {
	probe.Attempt
	Status Status
	// Detail says what was seen, or why nothing can be said.
	Detail string
	// Proof is how the control succeeded.
	Proof string
}

// Subject is one invocation that was verified.
type Subject struct {
	Addr     planner.Address
	Findings []Finding
	// Decision is why its probe did not run to its end. Then what it had not tried is not proven.
	Decision *launch.Decision
	Took     time.Duration
}

// Count is how many of its attempts have a status.
func (s Subject) Count(want Status) int {
	n := 0
	for _, f := range s.Findings {
		if f.Status == want {
			n++
		}
	}
	return n
}

// Report is a whole verification.
type Report struct {
	// Scope is where its objects were.
	Scope    planner.Scope
	Engine   string // its version
	Subjects []Subject
	Took     time.Duration
	// Decision is why nothing could be verified at all.
	Decision *launch.Decision
	// Unsettled is what could not be removed.
	Unsettled error
}

// CodeUnproven is the exit code of a verification in which nothing got out, and not everything could be
// shown to be held.
const CodeUnproven launch.Code = 1

// Code is the exit code: 0 when everything was held, 121 when something got out, and otherwise what kept
// it from being found out.
func (r Report) Code() int {
	escaped := func(s Subject) bool { return s.Count(Escaped) > 0 }
	if slices.ContainsFunc(r.Subjects, escaped) {
		return int(launch.CodeProof)
	}
	if r.Decision != nil {
		return int(r.Decision.Code)
	}
	for _, s := range r.Subjects {
		if s.Decision != nil {
			return int(s.Decision.Code)
		}
	}
	if r.Unsettled != nil || slices.ContainsFunc(r.Subjects, func(s Subject) bool { return s.Count(Unproven) > 0 }) {
		return int(CodeUnproven)
	}
	return 0
}
