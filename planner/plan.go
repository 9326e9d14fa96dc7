package planner

import (
	"net/netip"

	"github.com/hashicorp/hcl/v2"
)

// Action is what a plan does with one object.
type Action string

// The actions. A replace is a delete and a create, in the order that dependencies ask for.
const (
	ActionNoOp    Action = "noop"
	ActionCreate  Action = "create"
	ActionReplace Action = "replace"
	ActionDelete  Action = "delete"
	ActionRestore Action = "update" // put settings of ClassSet back in place
)

// ReasonCode says why a change is in the plan. JSON output uses the codes, people see Reason.Text.
type ReasonCode string

// The reasons.
const (
	ReasonAbsent        ReasonCode = "absent"                  // nothing is there
	ReasonDeclaration   ReasonCode = "declaration_changed"     // the HCL says something else than the label
	ReasonDrift         ReasonCode = "drift"                   // somebody changed the object
	ReasonDependency    ReasonCode = "dependency_replaced"     // Reason.Addr is replaced, and this object binds its ID
	ReasonSpent         ReasonCode = "spent"                   // it has run
	ReasonStray         ReasonCode = "stray"                   // it was started without a run that holds its lease
	ReasonSchema        ReasonCode = "schema"                  // made by a version with other rows
	ReasonRequested     ReasonCode = "requested"               // -replace
	ReasonTakeover      ReasonCode = "takeover"                // -takeover
	ReasonDestroy       ReasonCode = "destroy"                 // destroy, or plan -destroy
	ReasonNotConfigured ReasonCode = "delete_because_no_block" // its block is gone
	ReasonNoKey         ReasonCode = "delete_because_no_key"   // its key is no longer in for_each or count
	ReasonNoPart        ReasonCode = "delete_because_no_part"  // its invocation stands, this part of it does not
	ReasonDuplicate     ReasonCode = "delete_because_duplicate"
	ReasonUnlabelled    ReasonCode = "unreadable_label" // its declaration cannot be read, so nothing can be told
	ReasonUnfinished    ReasonCode = "unfinished"       // its creation was cut short
	ReasonConflict      ReasonCode = "conflict"         // something foreign stands in its place
)

// Reason is one cause of a change.
type Reason struct {
	Code ReasonCode
	// Addr is the other object that causes it, if one does.
	Addr Address
	// Text is the cause as a clause: "because its network will be replaced".
	Text string
}

// Change is what happens to one object, one that does nothing included.
type Change struct {
	Addr   Address
	Kind   Kind
	Title  string
	Lost   bool // nothing can make it; see Resource
	Decl   hcl.Range
	Action Action
	// Reasons are sorted, the decisive one first.
	Reasons []Reason
	// Pending is the object's own label against the HCL (Want is the HCL, Got the label).
	Pending []Mismatch
	// Drift is the engine against the object's own label (Want is the label, Got the engine).
	Drift []Mismatch
	Extra []Extra
	// Before and After are all rows, as observed and as wanted; nil when there is no object or none is
	// wanted.
	Before []Field
	After  []Field
	// Digest is the digest of After, "" when none is wanted.
	Digest string
	// Object is what is there now; the zero Object when there is nothing.
	Object Object
	// DependsOn are the addresses that must be made before this one and deleted after it.
	DependsOn []Address
}

// FindingKind tells drift, pending and conflicts apart.
type FindingKind string

// The kinds of findings.
const (
	FindingDrift    FindingKind = "drift"
	FindingPending  FindingKind = "pending"
	FindingConflict FindingKind = "conflict"
)

// Finding is one thing that is not as it should be, for drift, the gate and the note above a plan.
type Finding struct {
	Kind FindingKind
	Addr Address
	// Decl is the line to show: the field's attribute, or the block of the object.
	Decl hcl.Range
	// Mismatch is nil when the finding is about a whole object, or about an Extra.
	Mismatch *Mismatch
	// Extra is what the object has that nothing declares.
	Extra *Extra
	// Text says it in one clause when Mismatch and Extra are nil: "is missing", "was started by hand".
	Text string
}

// InvocationState is the state of a whole invocation.
type InvocationState string

// The states (an invocation's containers, and who holds its lease).
const (
	StateAbsent  InvocationState = "absent"
	StateArmed   InvocationState = "armed"
	StateRunning InvocationState = "running"
	StateSpent   InvocationState = "spent"
	StateStray   InvocationState = "stray"
)

// Plan is the whole comparison of what is wanted with what is there, and the way from here to there.
type Plan struct {
	Scope    Scope
	EngineID string
	Destroy  bool
	// Changes has one entry per object, wanted or found, in the order of SortAddresses.
	Changes []Change
	// Findings are everything that differs, sorted: conflicts, drift, pending.
	Findings []Finding
	// States are the states of all invocations, wanted or found.
	States map[Address]InvocationState
	// Leases are the live leases of the scope's invocations, without the caller's own, sorted. What they
	// cover must not be changed.
	Leases []Lease
	// ForeignOrigins are the origins other than this one that objects of the scope came from.
	ForeignOrigins []string
	// Warnings are for people; they change nothing.
	Warnings []string
}

// Counts says how much a plan adds, changes and destroys; a replace counts as one add and one destroy.
func (p *Plan) Counts() (add, change, destroy int) {
	for _, c := range p.Changes {
		switch c.Action {
		case ActionCreate:
			add++
		case ActionRestore:
			change++
		case ActionReplace:
			add++
			destroy++
		case ActionDelete:
			destroy++
		}
	}
	return add, change, destroy
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool {
	add, change, destroy := p.Counts()
	return add+change+destroy == 0
}

// Conflicts are the findings because of which a plan must not be applied. A destruction needs no room,
// so nothing stands in its way.
func (p *Plan) Conflicts() []Finding {
	if p.Destroy {
		return nil
	}
	var out []Finding
	for _, f := range p.Findings {
		if f.Kind == FindingConflict {
			out = append(out, f)
		}
	}
	return out
}

// Locked are the live leases of invocations that the plan would change.
func (p *Plan) Locked() []Lease {
	changed := map[Address]bool{}
	for _, c := range p.Changes {
		if c.Action != ActionNoOp {
			changed[c.Addr.Invocation()] = true
		}
	}
	var out []Lease
	for _, l := range p.Leases {
		if changed[l.Invocation] {
			out = append(out, l)
		}
	}
	return out
}

// Resource is the wanted object of a change that creates one.
func (c Change) Resource() Resource {
	return Resource{Addr: c.Addr, Kind: c.Kind, Title: c.Title, Decl: c.Decl, DependsOn: c.DependsOn,
		Fields: c.After, Digest: c.Digest, Lost: c.Lost}
}

// Allocation is the addressing of a scope: what the plan chose, and what existing networks keep.
type Allocation struct {
	Pool   netip.Prefix
	Uplink Subnet
	// Networks are by the address of the invocation.
	Networks map[Address]Subnet
	// Free is how many further invocations the pool has room for.
	Free int
}

// Subnet is one network's addressing. All addresses lie within Prefix.
type Subnet struct {
	Prefix  netip.Prefix
	Gateway netip.Addr // .1: on no interface for an invocation's network
	Proxy   netip.Addr // .2
	Agent   netip.Addr // .3
	// Uplink is the proxy's address on the uplink; for the uplink's own entry it is not set.
	Uplink netip.Addr
}
