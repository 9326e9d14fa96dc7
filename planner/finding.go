package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var findingRank = map[FindingKind]int{FindingConflict: 0, FindingDrift: 1, FindingPending: 2}

// SortFindings orders findings as they are listed: conflicts, drift, pending; each by address and path.
func SortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		if n := findingRank[a.Kind] - findingRank[b.Kind]; n != 0 {
			return n
		}
		if n := compareAddresses(a.Addr, b.Addr); n != 0 {
			return n
		}
		if n := strings.Compare(a.Path(), b.Path()); n != 0 {
			return n
		}
		return strings.Compare(a.Text, b.Text)
	})
}

// Path is the path of the field that the finding is about, "" for a whole object.
func (f Finding) Path() string {
	switch {
	case f.Mismatch != nil:
		return f.Mismatch.Field.Path
	case f.Extra != nil:
		return f.Extra.Path
	}
	return ""
}

// PathUnreadable is the path of the Extra of an object that could not be looked at.
const PathUnreadable = "inspect"

// Unreadable reports whether the finding says that its object could not be looked at.
func (f Finding) Unreadable() bool { return f.Extra != nil && f.Extra.Path == PathUnreadable }

// MismatchFinding is the finding that a field differs; the line is the field's where it has one.
func MismatchFinding(kind FindingKind, r *Resource, a Address, m Mismatch) Finding {
	f := Finding{Kind: kind, Addr: a, Decl: m.Field.At(), Mismatch: &m}
	if f.Decl.Filename == "" && r != nil {
		f.Decl = r.Decl
	}
	return f
}

// ExtraFinding is the finding that an object has something that nothing declares.
func ExtraFinding(kind FindingKind, r *Resource, a Address, e Extra) Finding {
	f := Finding{Kind: kind, Addr: a, Extra: &e, Text: "has " + e.Path + ", which nothing declares: " + e.Detail}
	if e.Detail == "" {
		f.Text = "has " + e.Path + ", which nothing declares"
	}
	if r != nil {
		f.Decl = r.Decl
	}
	return f
}

// DuplicateFinding is the finding that an object carries the labels of a place that another one holds, or
// of no place at all.
func DuplicateFinding(o Object, held bool) Finding {
	what := fmt.Sprintf("%s (%.12s)", o.Name, o.ID)
	if held {
		return Finding{Kind: FindingDrift, Addr: o.Addr, Text: "is there twice: " + what + " carries its labels as well"}
	}
	return Finding{Kind: FindingDrift, Addr: o.Addr, Text: "is the label of " + what + ", which has no place in the scope"}
}

// ConflictFinding is the finding that something foreign stands where an object of ours would.
func ConflictFinding(r *Resource, c Conflict) Finding {
	f := Finding{Kind: FindingConflict, Addr: c.Addr, Text: c.Detail}
	if r != nil {
		f.Decl = r.Decl
	}
	return f
}

// findings are everything that differs. An invocation that is not there, or not wanted, is one finding,
// not one for each of its parts.
func (d *differ) findings() []Finding {
	var out []Finding
	once := map[Address]bool{}
	group := func(a Address, f Finding) {
		if f.Addr = a; !once[a] {
			once[a] = true
			out = append(out, f)
		}
	}
	for _, c := range d.snap.Conflicts {
		out = append(out, ConflictFinding(d.wanted(c.Addr), c))
	}
	for _, c := range d.changes {
		inv := c.Addr.Invocation()
		switch {
		case c.duplicate:
			f := DuplicateFinding(*c.have, d.byAddr[c.Addr] != nil && d.byAddr[c.Addr].have != nil)
			f.Decl = c.Decl
			out = append(out, f)
		case c.have == nil && d.conflicted(c.Addr):
		case inv != "" && d.states[inv] == StateAbsent && c.want != nil:
			group(inv, c.whole(FindingPending, d.absence(inv)))
		case c.want == nil && inv != "" && !d.opts.Destroy:
			out = append(out, c.ownFindings(d)...)
			if r := d.unwanted(c.Addr); r.Code == ReasonNoPart {
				out = append(out, c.whole(FindingPending, "is not wanted "+r.Text))
			} else {
				group(inv, c.whole(FindingPending, "is not wanted "+r.Text))
			}
		default:
			out = append(out, c.ownFindings(d)...)
		}
	}
	SortFindings(out)
	return out
}

func (d *differ) conflicted(a Address) bool {
	_, ok := d.conflicts[a]
	return ok
}

func (d *differ) wanted(a Address) *Resource {
	if c := d.byAddr[a]; c != nil {
		return c.want
	}
	return nil
}

// absence says in which way an invocation without an agent is absent.
func (d *differ) absence(inv Address) string {
	for _, c := range d.changes {
		if c.have != nil && c.Addr.Invocation() == inv {
			return "is incomplete: its agent is missing"
		}
	}
	return "does not exist yet"
}

func (c *draft) whole(kind FindingKind, text string) Finding {
	return Finding{Kind: kind, Addr: c.Addr, Decl: c.Decl, Text: text}
}

// ownFindings are what differs in the object itself.
func (c *draft) ownFindings(d *differ) []Finding {
	var out []Finding
	if c.have == nil {
		return []Finding{c.whole(d.missing(c), "is missing")}
	}
	drift := FindingDrift
	if d.unfinished(c.Addr) {
		drift = FindingPending
	}
	for _, f := range c.objectFacts(d) {
		if f.Kind != FindingPending || !d.opts.Destroy {
			out = append(out, c.whole(f.Kind, f.Text))
		}
	}
	for _, m := range c.Drift {
		out = append(out, MismatchFinding(drift, c.want, c.Addr, m))
	}
	for _, e := range c.Extra {
		out = append(out, ExtraFinding(drift, c.want, c.Addr, e))
	}
	for _, m := range c.Pending {
		out = append(out, MismatchFinding(FindingPending, c.want, c.Addr, m))
	}
	if c.want == nil && c.Addr.Invocation() == "" && !d.opts.Destroy {
		out = append(out, c.whole(FindingPending, "is not wanted "+d.unwanted(c.Addr).Text))
	}
	return out
}

// objectFacts are what is to be said of the object as a whole.
func (c *draft) objectFacts(d *differ) []Finding {
	var out []Finding
	note := func(kind FindingKind, text string) { out = append(out, Finding{Kind: kind, Text: text}) }
	if !labelled(c.Kind) {
		return nil
	}
	state := d.states[c.Addr.Invocation()]
	switch {
	case c.have.Schema != Schema:
		note(FindingPending, "was made by another version of sandplan (schema "+strconv.Quote(c.have.Schema)+
			", this one writes "+Schema+")")
	case c.want != nil && c.have.Kind != c.want.Kind:
		note(FindingDrift, "is labelled as "+string(c.have.Kind))
	case c.have.Declared == nil:
		note(FindingDrift, "has a label that cannot be read")
	case c.forged:
		note(FindingDrift, "has a label that does not match its own digest")
	}
	switch {
	case state == StateRunning:
	case c.have.Status == StatusRunning && c.Addr.Invocation() == "":
		note(FindingDrift, "was started, and nothing ever starts it")
	case c.have.Status == StatusRunning:
		note(FindingDrift, "was started outside a run")
	case c.have.Status == StatusExited && c.Addr.Invocation() == "":
		note(FindingDrift, "was started, and nothing ever starts it")
	case c.have.Status == StatusExited && c.want != nil:
		note(FindingPending, "has run")
	}
	return out
}
