package planner

import (
	"fmt"
	"slices"
)

// containsAny reports whether one of the addresses is or contains a.
func containsAny(as []Address, a Address) bool {
	return slices.ContainsFunc(as, func(t Address) bool { return t.Contains(a) })
}

// selection is the set of objects that a plan deals with.
type selection struct {
	d      *differ
	in     map[Address]bool
	settle func(*draft)
}

// selection starts with all objects, or with what the targets contain and what that depends on. For a
// destruction that is enough, too: what depends on an object that goes follows it anyway, and what it
// depends on stays. settle is called once for each object that is selected, now or later.
func (d *differ) selection(settle func(*draft)) *selection {
	s := &selection{d: d, in: make(map[Address]bool, len(d.changes)), settle: settle}
	for _, c := range d.changes {
		if len(d.opts.Targets) == 0 || containsAny(d.opts.Targets, c.Addr) {
			s.take(c)
		}
	}
	return s
}

// take selects an object and everything that it will be made from.
func (s *selection) take(c *draft) {
	if s.in[c.Addr] {
		return
	}
	s.in[c.Addr] = true
	s.settle(c)
	if c.want == nil {
		return
	}
	for _, a := range c.want.DependsOn {
		if dep := s.d.byAddr[a]; dep != nil {
			s.take(dep)
		}
	}
}

// foreignOrigins are the origins of objects of the scope that are not this one.
func foreignOrigins(s Snapshot, own string) []string {
	if own == "" {
		return nil
	}
	var out []string
	for _, o := range s.Objects {
		if o.Origin != "" && o.Origin != own && !slices.Contains(out, o.Origin) {
			out = append(out, o.Origin)
		}
	}
	slices.Sort(out)
	return out
}

// warnings are what people should know besides.
func (d *differ) warnings() []string {
	var out []string
	for _, o := range d.origins {
		out = append(out, fmt.Sprintf("The scope %s is in use by %s. Use -workspace for a scope of your own, "+
			"or -takeover to replace every object of this one.", d.snap.Scope, o))
	}
	for _, s := range d.snap.Elsewhere {
		out = append(out, fmt.Sprintf("Objects of this configuration stand in the scope %s, too. To remove them: "+
			"sandplan destroy -project=%s -workspace=%s", s, s.Project, s.Workspace))
	}
	out = append(out, d.unmatched("-target", d.opts.Targets)...)
	out = append(out, d.unmatched("-replace", d.opts.Replace)...)
	return append(out, d.snap.Unchecked...)
}

func (d *differ) unmatched(flag string, as []Address) []string {
	var out []string
	for _, a := range as {
		if !slices.ContainsFunc(d.changes, func(c *draft) bool { return a.Contains(c.Addr) }) {
			out = append(out, fmt.Sprintf("%s=%s names nothing, neither in the configuration nor on the engine.", flag, a))
		}
	}
	return out
}
