package hclspec

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// node is a declaration that others can refer to: a local, a vendor or a phase. Variables are values
// from outside and refer to nothing; nothing can refer to what is evaluated later.
type node struct {
	key         string // as reference.key
	rng         hcl.Range
	expressions []hcl.Expression
	// evaluate computes the node's value. broken is set when it depends on itself.
	evaluate func(broken bool) hcl.Diagnostics

	uses []edge
	// Tarjan's numbers: the order of discovery from 1, and the earliest node on the stack in reach.
	index, low int
	onStack    bool
}

// edge is one use of a node by another.
type edge struct {
	to  *node
	rng hcl.Range
}

// graph holds the references between nodes, explicitly: it is built before anything is evaluated.
type graph struct {
	nodes map[string]*node
	stack []*node
	count int
	// order has one group for each node, or for each set of nodes that depend on each other; every group
	// comes after those it uses.
	order [][]*node
}

func (g *graph) add(n *node) { g.nodes[n.key] = n }

// connect fills in the edges. References that lead nowhere are reported when they are evaluated.
func (g *graph) connect(ev *evaluator) {
	sc := generalScope()
	for _, key := range sortedKeys(g.nodes) {
		n := g.nodes[key]
		for _, expr := range n.expressions {
			refs, _ := ev.references(expr, sc)
			for _, r := range refs {
				if to := g.nodes[r.key()]; to != nil {
					n.uses = append(n.uses, edge{to, r.rng})
				}
			}
		}
	}
}

// evaluate evaluates every node once, after those it uses. A cycle is one diagnostic, and its nodes are
// unknown to the rest.
func (g *graph) evaluate() hcl.Diagnostics {
	for _, key := range sortedKeys(g.nodes) {
		if n := g.nodes[key]; n.index == 0 {
			g.visit(n)
		}
	}
	var diags hcl.Diagnostics
	for _, group := range g.order {
		cycle := len(group) > 1 || group[0].usesItself()
		if cycle {
			diags = append(diags, describeCycle(group)...)
		}
		for _, n := range group {
			diags = append(diags, n.evaluate(cycle)...)
		}
	}
	return diags
}

// visit is Tarjan's algorithm. Its recursion is as deep as the longest chain of references; a file can
// declare some ten thousand locals, and Go's stack holds that.
func (g *graph) visit(n *node) {
	g.count++
	n.index, n.low = g.count, g.count
	g.stack = append(g.stack, n)
	n.onStack = true
	for _, e := range n.uses {
		switch {
		case e.to.index == 0:
			g.visit(e.to)
			n.low = min(n.low, e.to.low)
		case e.to.onStack:
			n.low = min(n.low, e.to.index)
		}
	}
	if n.low != n.index {
		return
	}
	var group []*node
	for {
		last := g.stack[len(g.stack)-1]
		g.stack = g.stack[:len(g.stack)-1]
		last.onStack = false
		group = append(group, last)
		if last == n {
			break
		}
	}
	sort.Slice(group, func(i, j int) bool { return group[i].key < group[j].key })
	g.order = append(g.order, group)
}

func (n *node) usesItself() bool {
	for _, e := range n.uses {
		if e.to == n {
			return true
		}
	}
	return false
}

// describeCycle walks one way round within the group, from its first node, and names each place.
func describeCycle(group []*node) hcl.Diagnostics {
	inside := map[*node]bool{}
	for _, n := range group {
		inside[n] = true
	}
	n := group[0]
	at := map[*node]int{}
	var steps []edge
	for {
		if i, ok := at[n]; ok {
			steps = steps[i:]
			break
		}
		at[n] = len(steps)
		for _, e := range n.uses {
			if inside[e.to] {
				steps = append(steps, e)
				n = e.to
				break
			}
		}
	}
	const most = 20
	from := steps[len(steps)-1].to
	var parts []string
	for i, s := range steps {
		if i == most {
			parts = append(parts, fmt.Sprintf("… (%d more)", len(steps)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s uses %s at %s", from.key, s.to.key, s.rng))
		from = s.to
	}
	return fail(ReferenceCycle, steps[0].rng, "These declarations need each other, so that none can be evaluated first: %s. Break the circle at one of them.",
		strings.Join(parts, "; "))
}
