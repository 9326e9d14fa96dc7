package planner

import (
	"fmt"
	"slices"
	"strings"
)

// Op is one thing that is done to one object.
type Op string

// The operations, by the verbs that messages and ObjectError use.
const (
	OpDelete  Op = "delete"
	OpCreate  Op = "create"
	OpRestore Op = "restore"
)

// Step is one operation of a plan.
type Step struct {
	Op Op
	// Change is the index in Plan.Changes.
	Change int
	Addr   Address
	// After are the indices of the steps that must have succeeded before this one, sorted.
	After []int
}

// Graph is the order of a plan's operations: first all deletions, dependents first, then all creations
// and restorations, dependencies first. Every step stands behind the steps it waits for, and the same plan
// gives the same graph. Deletions come first as a whole because an address, a name or a subnet that is given
// up may be wanted by an object that does not depend on its holder.
type Graph []Step

// Graph is the way from what is there to what is wanted. It fails only when dependencies run in a circle.
func (p *Plan) Graph() (Graph, error) {
	deletes, err := p.order(p.deleteNodes())
	if err != nil {
		return nil, err
	}
	makes, err := p.order(p.makeNodes())
	if err != nil {
		return nil, err
	}
	deleteOf := map[Address][]int{}
	for i, s := range deletes {
		deleteOf[s.Addr] = append(deleteOf[s.Addr], i)
	}
	g := deletes
	for _, s := range makes {
		for i := range s.After {
			s.After[i] += len(deletes)
		}
		// What is still there at its own address must be gone, duplicates included.
		s.After = append(s.After, deleteOf[s.Addr]...)
		slices.Sort(s.After)
		g = append(g, s)
	}
	return g, nil
}

// node is a step before it has a place: it waits for the changes in needs.
type node struct {
	op     Op
	change int
	needs  []int
}

func (p *Plan) deleteNodes() []node {
	going := map[int]bool{}
	dependents := map[Address][]int{}
	for i, c := range p.Changes {
		// A pinned image is not ours to delete, and a shared one not ours alone, whatever a plan says.
		if (c.Action != ActionDelete && c.Action != ActionReplace) || c.Kind == KindPinned || c.Object.Shared {
			continue
		}
		going[i] = true
		for _, a := range union(c.DependsOn, c.Object.DependsOn) {
			dependents[a] = append(dependents[a], i)
		}
	}
	var out []node
	for i := len(p.Changes) - 1; i >= 0; i-- {
		if going[i] {
			out = append(out, node{op: OpDelete, change: i, needs: dependents[p.Changes[i].Addr]})
		}
	}
	return out
}

func (p *Plan) makeNodes() []node {
	made := map[Address]int{}
	var out []node
	for i, c := range p.Changes {
		switch c.Action {
		case ActionCreate, ActionReplace:
			out = append(out, node{op: OpCreate, change: i})
		case ActionRestore:
			out = append(out, node{op: OpRestore, change: i})
		default:
			continue
		}
		made[c.Addr] = i
	}
	for n := range out {
		for _, a := range p.Changes[out[n].change].DependsOn {
			if i, ok := made[a]; ok {
				out[n].needs = append(out[n].needs, i)
			}
		}
	}
	return out
}

// order puts every node behind what it needs, and otherwise keeps their order.
func (p *Plan) order(nodes []node) (Graph, error) {
	place := make(map[int]int, len(nodes)) // change → index in the graph
	g := make(Graph, 0, len(nodes))
	for len(nodes) > 0 {
		var rest []node
		for _, n := range nodes {
			if slices.ContainsFunc(n.needs, func(c int) bool { _, ok := place[c]; return !ok }) {
				rest = append(rest, n)
				continue
			}
			s := Step{Op: n.op, Change: n.change, Addr: p.Changes[n.change].Addr}
			for _, c := range n.needs {
				s.After = append(s.After, place[c])
			}
			slices.Sort(s.After)
			s.After = slices.Compact(s.After)
			place[n.change] = len(g)
			g = append(g, s)
		}
		if len(rest) == len(nodes) {
			return nil, fmt.Errorf("%s depends on itself by way of what it depends on",
				p.Changes[rest[0].change].Addr)
		}
		nodes = rest
	}
	return g, nil
}

func union(a, b []Address) []Address {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// String is one line per step, for people and for tests: its number, what it does, what it waits for.
func (g Graph) String() string {
	var b strings.Builder
	for i, s := range g {
		fmt.Fprintf(&b, "%d %s %s", i, s.Op, s.Addr)
		if len(s.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Trim(fmt.Sprint(s.After), "[]"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
