package docker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/walk"
)

// The contents of worktrees. A worktree is no object of the engine and nobody declares what is in it,
// but some things in it are ways out of the sandbox that no network rule sees.

const (
	summarySpecial = "Worktree holds a way out of the sandbox"
	summaryUnseen  = "Worktree was not looked over"
)

// planLooks bounds how long a plan looks over worktrees, all together, and how many at once. What was not
// seen until then is looked at by the run.
const (
	planLooks     = 5 * time.Second
	planLooksWide = 4
)

// Special finds sockets, FIFOs and devices in the worktree that the container at an address mounts.
func (c *Compiled) Special(ctx context.Context, a planner.Address) ([]planner.Mark, error) {
	root := c.worktree(a)
	if root == "" {
		return nil, fmt.Errorf("%s mounts no worktree", a)
	}
	return walk.Special(ctx, root, walk.DefaultLimits())
}

// Tree returns a look over the worktree that the container at an address mounts. Each call of it looks
// anew, and is faster than the first where nothing has changed.
func (c *Compiled) Tree(a planner.Address) (func(context.Context) (planner.Tree, error), error) {
	root := c.worktree(a)
	if root == "" {
		return nil, fmt.Errorf("%s mounts no worktree", a)
	}
	return walk.New(root, walk.DefaultLimits(), c.engine.options.Now).Look, nil
}

func (c *Compiled) worktree(a planner.Address) string {
	for _, b := range c.binds[a] {
		if b.target == policy.Worktree {
			return b.source
		}
	}
	return ""
}

// Obstacles are what stands in the way of an apply or a run although everything can be compared: pinned
// images that are gone and in no registry, and what the gate would refuse in the worktrees of the
// configuration, apart from those of invocations that run: their runs watch them.
func (c *Compiled) Obstacles(ctx context.Context, s planner.Snapshot) hcl.Diagnostics {
	if c.engine.paper != nil {
		return nil // worktrees are where the engine is
	}
	live := map[planner.Address]bool{}
	for _, l := range s.Leases {
		live[l.Invocation] = live[l.Invocation] || l.Live
	}
	byRoot := map[string]planner.Address{} // each worktree once, where it is written first
	for inv := range c.declared {
		root := c.worktree(inv.With(planner.PartAgent))
		if first, ok := byRoot[root]; root != "" && !live[inv] && (!ok || inv.Less(first)) {
			byRoot[root] = inv
		}
	}
	roots := sortedKeys(byRoot)
	found := make([]*hcl.Diagnostic, len(roots))
	limited, cancel := context.WithTimeout(ctx, planLooks)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(planLooksWide)
	for i, root := range roots {
		g.Go(func() error {
			marks, err := walk.Special(limited, root, walk.DefaultLimits())
			found[i] = c.obstacle(byRoot[root], root, marks, err)
			return nil
		})
	}
	_ = g.Wait()
	diags := once(c.lost)
	for _, d := range found {
		if d != nil {
			diags = append(diags, d)
		}
	}
	sort.SliceStable(diags, func(i, j int) bool { return diags[i].Severity < diags[j].Severity })
	return diags
}

func (c *Compiled) obstacle(inv planner.Address, root string, marks []planner.Mark, err error) *hcl.Diagnostic {
	at := c.declared[inv]
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summarySpecial, Subject: &at}
	switch {
	case len(marks) > 0:
		d.Detail = fmt.Sprintf("The worktree %s holds %s. Through a socket, a FIFO or a device, a process in the sandbox can talk to one on this machine, "+
			"in a read-only worktree too. %s", root, listMarks(marks), removal(root, marks))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		d.Severity, d.Summary = hcl.DiagWarning, summaryUnseen
		d.Detail = fmt.Sprintf("The worktree %s is too large to be looked over now. The run looks for sockets, FIFOs and devices in it and refuses them.", root)
	case err != nil:
		d.Summary, d.Detail = summaryWorktree, sentence(err)
	default:
		return nil
	}
	return d
}

// listMarks names a few of what was found. Names are quoted: an agent may have chosen them.
func listMarks(marks []planner.Mark) string {
	const most = 5
	var parts []string
	for _, m := range marks[:min(most, len(marks))] {
		parts = append(parts, m.Quoted()+" ("+m.Kind.String()+")")
	}
	text := strings.Join(parts, ", ")
	if n := len(marks) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func removal(root string, marks []planner.Mark) string {
	return "Stop what uses it and remove it: rm " + strconv.Quote(filepath.Join(root, marks[0].Path))
}
