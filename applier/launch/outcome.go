package launch

import (
	"errors"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Code is an exit code that sandplan itself decides on. An agent may use the same numbers: Result.By
// tells the two apart.
type Code int

// The exit codes.
const (
	CodeBound         Code = 119 // the bound on output, upload or download is used up
	CodeDrift         Code = 120 // something changed while it ran
	CodeProof         Code = 121 // the sandbox is not what was declared, seen from the inside
	CodeEngine        Code = 122 // the engine is lost
	CodeProxy         Code = 123 // the proxy is lost
	CodeTimeout       Code = 124
	CodeRefused       Code = 125 // nothing of the agent was started
	CodeNotExecutable Code = 126
	CodeNotFound      Code = 127
	CodeCancelled     Code = 130
	CodeKilled        Code = 137 // out of memory, or killed from outside
)

// Who decided how a run ended.
const (
	ByAgent    = "agent"
	BySandplan = "sandplan"
)

// Decision is why sandplan ended a run, or did not begin it.
type Decision struct {
	Code Code
	// Reason is one clause in the user's words.
	Reason string
	// Findings are what differs, where that is the reason.
	Findings []planner.Finding
	// Checks are what failed inside, where that is the reason.
	Checks []wire.Check
	// Err is the error behind it, if there is one: *planner.LockedError, *LateError, …
	Err error
	// beforeEnd says that it happened before the command's end, whichever was heard of first. A log that is full counts
	// with it: what the end itself would have added is not told.
	beforeEnd bool
}

func (d *Decision) Error() string {
	if d.Err != nil && d.Reason == "" {
		return d.Err.Error()
	}
	if d.Err != nil {
		return d.Reason + ": " + d.Err.Error()
	}
	return d.Reason
}

func (d *Decision) Unwrap() error { return d.Err }

// Result is how a run ended.
type Result struct {
	// Code is the exit code of the whole run.
	Code int
	// By is ByAgent or BySandplan. Decision is set in the second case only.
	By       string
	Decision *Decision
	// Took is the time from the prompt to the agent's end; 0 when it never got its prompt.
	Took   time.Duration
	Egress Egress
	// RunID names the run, and RecordDir is where its record is; "" when there is none.
	RunID     string
	RecordDir string
	// Unsettled is what could not be tidied up or recorded, with what the user can do. It does not
	// change Code: what the agent did stands.
	Unsettled error
}

// LateError says what the time before the start ran out on.
type LateError struct {
	Limit time.Duration
	Doing string
}

func (e *LateError) Error() string {
	return fmt.Sprintf("the agent was not running within %s; it was still %s", e.Limit, e.Doing)
}

// proxyBound is the end that a proxy's line of a used up bound leads to. It says where the bound can be raised.
func proxyBound(why string, l hclspec.Limits) *Decision {
	switch reason.Reason(why) {
	case reason.UploadLimit:
		return &Decision{Code: CodeBound, Reason: "it tried to upload more than limits.upload allows", Err: declaredAs(l.Upload), beforeEnd: true}
	case reason.DownloadLimit:
		return &Decision{Code: CodeBound, Reason: "it tried to download more than limits.download allows", Err: declaredAs(l.Download), beforeEnd: true}
	}
	return &Decision{Code: CodeBound, Reason: "a bound of the proxy is used up: " + why, beforeEnd: true}
}

// declaredAs is a bound and where it is written; without, where one could write another.
func declaredAs(size hclspec.Val[int64]) error {
	if at := size.Range; size.Set {
		return fmt.Errorf("%s, at %s:%d", hclspec.FormatSize(size.V), at.Filename, at.Start.Line)
	} else if at.Filename != "" {
		return fmt.Errorf("%s by default, for the block at %s:%d", hclspec.FormatSize(size.V), at.Filename, at.Start.Line)
	}
	return fmt.Errorf("%s", hclspec.FormatSize(size.V))
}

// cause translates what a shim decided. Its own words become the reason's end.
func cause(e wire.Exit) *Decision {
	d := &Decision{Reason: e.Detail}
	switch e.Cause {
	case wire.CauseTimeout:
		d.Code, d.Reason = CodeTimeout, "timed out"
	case wire.CauseOutput:
		d.Code, d.Reason = CodeBound, "the output bound is used up"
	case wire.CauseProof:
		d.Code, d.Reason = CodeProof, "the sandbox is not as declared, seen from the inside"
	case wire.CauseMount:
		d.Code, d.Reason = CodeDrift, "a mount changed while it ran"
	case wire.CauseProxy:
		d.Code, d.Reason = CodeProxy, "the proxy is lost"
	case wire.CauseNotExecutable:
		d.Code, d.Reason = CodeNotExecutable, "the command cannot be executed"
	case wire.CauseNotFound:
		d.Code, d.Reason = CodeNotFound, "the command does not exist"
	case wire.CauseLease:
		d.Code, d.Reason = CodeEngine, "the link to the container broke"
	case wire.CauseStop:
		d.Code, d.Reason = CodeCancelled, "it was asked to stop"
	default:
		d.Code, d.Reason = CodeProof, "the first process failed"
	}
	if e.Detail != "" {
		d.Err = errors.New(e.Detail)
	}
	return d
}
