package verify

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/sandplan/sandplan/providers/docker/probe"
)

// evidence is everything that is known of one subject when it is judged.
type evidence struct {
	token  probe.Token // of the subject's probe
	bridge string      // the subject's own, on which its packets may be seen
	// networks are those of this verification: another one's packets to the internet look the same.
	networks []netip.Prefix
	applies  func(probe.Needs) bool
	// subject is what the probe said.
	subject *collector
	// canary saw the host's network. open, host and second are the controls, by their tokens.
	canary, open, second              *collector
	openToken, hostToken, secondToken probe.Token
	// files are the attempts that left something on the host, in the subject's worktree and in the place
	// without the boundary; what was left says what.
	subjectFiles, openFiles map[string]string
	// log are the hosts that the second invocation's proxy was asked for.
	log []string
	// guarded says that the first process ended the subject's run by its own, secret word.
	guarded bool
	// secret is the content of the host's file.
	secret string
}

// judge gives every attempt its result.
func (e *evidence) judge() []Finding {
	var out []Finding
	for _, a := range probe.Attempts() {
		f := Finding{Attempt: a}
		f.Status, f.Detail, f.Proof = e.result(a)
		out = append(out, f)
	}
	return out
}

// result judges one attempt. What was seen outside comes before everything that anybody says: an escape
// is one whether it was expected to be seen or not.
func (e *evidence) result(a probe.Attempt) (Status, string, string) {
	if !e.applies(a.Needs) {
		return Moot, "it does not have " + string(a.Needs), ""
	}
	said, ok := e.subject.outcome(a.ID)
	if seen := e.escaped(a, said); seen != "" {
		return Escaped, seen, ""
	}
	proof, absent, why := e.control(a)
	switch {
	case absent != "":
		return Moot, "this machine does not have it: " + absent, ""
	case why != "":
		return Unproven, why, ""
	case !ok:
		return Unproven, "the probe ended before it could say what came of it", proof
	case said.Untried:
		return Unproven, said.Detail, proof
	case a.Where == probe.AtHost && e.canary.missed() > 0:
		return Unproven, fmt.Sprintf("the canary could not look at %d packets: this machine has too much to do", e.canary.missed()), proof
	case a.Where == probe.AtEngine && !e.guarded:
		return Unproven, "the first process did not end the run by its own word", proof
	}
	return Held, said.Detail, proof
}

// escaped says how an attempt was seen to succeed, "" when it was not.
func (e *evidence) escaped(a probe.Attempt, said probe.Outcome) string {
	t := e.token.For(a.ID)
	outside := func(s probe.Sighting) bool { return e.mine(s) && (s.Interface == "" || s.Bridge != e.bridge) }
	if s, ok := e.canary.seen(t, outside); ok {
		return s.How
	}
	if s, ok := e.second.seen(t, nil); ok {
		return "the second invocation saw a " + s.How
	}
	for _, host := range e.log {
		for _, found := range probe.FindTokens(t.Session, host) {
			if found == t {
				return "the second invocation's proxy was asked for " + host
			}
		}
	}
	if left, ok := e.subjectFiles[a.ID]; ok {
		return left
	}
	if said.Through {
		return said.Detail
	}
	return ""
}

// mine reports whether a sighting is of this verification.
func (e *evidence) mine(s probe.Sighting) bool {
	if s.From == "" {
		return true // its token says so
	}
	from, err := netip.ParseAddr(s.From)
	return err == nil && slices.ContainsFunc(e.networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

// control says how the same attempt succeeded without the boundary; or what of it this machine does not have
// at all; or why it is not known to work.
func (e *evidence) control(a probe.Attempt) (proof, absent, why string) {
	switch a.Control {
	case probe.ControlOpen:
		return e.opened(a)
	case probe.ControlHost:
		return e.fromHost(a)
	case probe.ControlSecond:
		return e.fromSecond(a)
	case probe.ControlAllowed:
		o, _ := e.subject.outcome("")
		s, seen := e.canary.seen(e.token, e.mine)
		if !o.Through || !seen {
			return "", "", fmt.Sprintf("the declared way did not lead to the canary (%s)", orNothing(o.Detail))
		}
		return s.How, "", ""
	}
	return "", "", "it has no control"
}

func (e *evidence) opened(a probe.Attempt) (proof, absent, why string) {
	o, ok := e.open.outcome(a.ID)
	if !ok {
		return "", "", "nothing is known of the container without the boundary"
	}
	if o.Absent && !o.Through {
		return "", orNothing(o.Detail), ""
	}
	switch a.Where {
	case probe.AtHost:
		if s, ok := e.canary.seen(e.openToken.For(a.ID), e.mine); ok {
			return s.How, "", ""
		}
		return "", "", "without the boundary, the canary did not see it either (" + orNothing(o.Detail) + ")"
	case probe.AtFiles:
		if left, ok := e.openFiles[a.ID]; ok {
			return left, "", ""
		}
		if a.ID == "host-file" && o.Through && o.Detail == e.secret {
			return "the file was read", "", ""
		}
		return "", "", "without the boundary, nothing was seen on the host either (" + orNothing(o.Detail) + ")"
	}
	if !o.Through {
		return "", "", "without the boundary, it fails as well (" + orNothing(o.Detail) + ")"
	}
	return o.Detail, "", ""
}

func (e *evidence) fromHost(a probe.Attempt) (proof, absent, why string) {
	o, ok := e.canary.outcome(a.ID)
	if a.Where == probe.AtHost {
		if s, seen := e.canary.seen(e.hostToken.For(a.ID), e.mine); seen {
			return s.How, "", ""
		}
		if o.Absent {
			return "", orNothing(o.Detail), ""
		}
		return "", "", "from the host itself, the canary did not see it either (" + orNothing(o.Detail) + ")"
	}
	if !ok || !o.Through {
		return "", "", "on the host itself, it fails as well (" + orNothing(o.Detail) + ")"
	}
	return o.Detail, "", ""
}

func (e *evidence) fromSecond(a probe.Attempt) (proof, absent, why string) {
	t := e.secondToken.For(a.ID)
	if s, ok := e.second.seen(t, nil); ok {
		return s.How, "", ""
	}
	for _, host := range e.log {
		for _, found := range probe.FindTokens(t.Session, host) {
			if found == t {
				return "its proxy logged a request for " + host, "", ""
			}
		}
	}
	o, _ := e.second.outcome(a.ID)
	return "", "", "inside the second invocation, it was not seen either (" + orNothing(o.Detail) + ")"
}

func orNothing(s string) string {
	if s == "" {
		return "nothing was said"
	}
	return s
}
