package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/planner"
)

const (
	// treeLimit bounds one look over a worktree.
	treeLimit = 5 * time.Minute
	// treeEvery is how often it is looked at again while the agent runs, for ways to the host only. A
	// tree that takes long is looked at less often.
	treeEvery = 2 * time.Second
	treeShare = 20
	// maxTold is how many findings of a worktree are told one by one.
	maxTold = 20
)

// Worktrees are the contents of worktrees, as far as they matter to the host.
type Worktrees interface {
	// Special finds sockets, FIFOs and devices in the worktree of the container at an address.
	Special(context.Context, planner.Address) ([]planner.Mark, error)
	// Tree returns a look over that worktree. Each call of it looks anew.
	Tree(planner.Address) (func(context.Context) (planner.Tree, error), error)
}

// worktree is what a run notes of its worktree.
type worktree struct {
	look   func(context.Context) (planner.Tree, error)
	before planner.Tree
	err    error         // of the look before
	noted  chan struct{} // closed when before and err are there
	end    context.CancelFunc
}

// recordTree is what the record says of the worktree.
type recordTree struct {
	Before  *planner.Tree `json:"before,omitempty"`
	After   *planner.Tree `json:"after,omitempty"`
	Changes []recordMark  `json:"changes,omitempty"`
	Failed  string        `json:"failed,omitempty"`
}

type recordMark struct {
	What string       `json:"what"`
	Mark planner.Mark `json:"mark"`
}

// overlook refuses a worktree with ways to the host in it, and begins to note what is in it. That may
// take long, so it goes on beside the start.
func (r *run) overlook(d *deadline) error {
	err := d.step("looking for sockets and FIFOs in the worktree", func(ctx context.Context) error {
		marks, err := r.compiled.Special(ctx, r.main)
		if err == nil && len(marks) > 0 {
			return &Decision{Code: CodeRefused, Reason: "the worktree holds a way out of the sandbox", Findings: r.specials(marks)}
		}
		return err
	})
	if err != nil {
		return err
	}
	look, err := r.compiled.Tree(r.main)
	if err != nil {
		return err
	}
	limited, end := context.WithTimeout(context.WithoutCancel(d.ctx), treeLimit)
	r.tree = &worktree{look: look, noted: make(chan struct{}), end: end}
	go func(t *worktree) {
		defer close(t.noted)
		t.before, t.err = t.look(limited)
	}(r.tree)
	return nil
}

// noted waits until it is known what is in a worktree that the command may write. Where it may not, the
// look may go on beside it.
func (r *run) noted(d *deadline) error {
	if !r.Command.Writable() {
		return nil
	}
	return d.step("looking over the worktree", func(ctx context.Context) error {
		select {
		case <-r.tree.noted:
			return r.tree.err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// specials are findings about ways to the host.
func (r *run) specials(marks []planner.Mark) []planner.Finding {
	var fs []planner.Finding
	for _, m := range marks[:min(maxTold, len(marks))] {
		fs = append(fs, r.treeFinding(fmt.Sprintf("has %s in its worktree, through which a process in the sandbox can talk to one on this machine: %s; "+
			"stop what uses it and remove it", m.Kind, m.Quoted())))
	}
	return fs
}

func (r *run) treeFinding(text string) planner.Finding {
	return planner.Finding{Kind: planner.FindingDrift, Addr: r.inv, Decl: r.Invocation.Worktree.Range, Text: text}
}

// watchTree begins to look at the worktree while the command runs. What it returns ends that.
func (r *run) watchTree(ctx context.Context) (end func()) {
	life, quit := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.relookTree(life, r.meddling.tell)
	}()
	return func() { quit(); <-over }
}

// relookTree looks for ways to the host again and again until ctx ends, and tells the first ones.
func (r *run) relookTree(ctx context.Context, tell func(*Decision)) {
	pause := time.NewTimer(treeEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		began := r.Now()
		marks, err := r.compiled.Special(ctx, r.main)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			tell(&Decision{Code: CodeDrift, Reason: "the worktree cannot be looked over any more", Err: err})
			return
		case len(marks) > 0:
			tell(&Decision{Code: CodeDrift, Reason: "a way out of the sandbox appeared in the worktree", Findings: r.specials(marks)})
			return
		}
		pause.Reset(max(treeEvery, treeShare*r.Now().Sub(began)))
	}
}

// settleTree looks over what the command left. What the user's git and CLIs would act on fails the
// run, whatever the command itself says.
func (r *run) settleTree(ctx context.Context) {
	t := r.tree
	if t == nil {
		return
	}
	defer t.end()
	if r.running.IsZero() {
		return // nothing but our own program ran there
	}
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, t.end)
	defer stop()
	go func() {
		select {
		case <-r.Kill:
			cancel()
		case <-ctx.Done():
		}
	}()
	<-t.noted
	if t.err != nil {
		r.treeFailed(t.err)
		return
	}
	r.record.Tree = &recordTree{Before: &t.before}
	after, err := t.look(ctx)
	if err == nil {
		err = r.compiled.Unmoved(r.record.Sources) // it was this worktree that was looked over
	}
	if err != nil {
		r.treeFailed(err)
		return
	}
	r.record.Tree.After = &after
	changes := planner.MarkChanges(t.before.Marks, after.Marks)
	if len(changes) == 0 {
		return
	}
	var fs []planner.Finding
	for i, c := range changes {
		r.record.Tree.Changes = append(r.record.Tree.Changes, recordMark{c.What, c.Mark})
		switch {
		case i < maxTold:
			fs = append(fs, r.treeFinding("left something in its worktree that acts on this machine: "+c.String()))
		case i == maxTold:
			fs = append(fs, r.treeFinding(fmt.Sprintf("left %d more such things; the record names them", len(changes)-i)))
		}
	}
	r.treeDecide("the worktree holds what git, or an agent's CLI, would act on; look at it before you work there", nil, fs)
}

// treeFailed fails a run whose worktree could not be looked over: an agent could have seen to that.
func (r *run) treeFailed(err error) {
	if r.record.Tree == nil {
		r.record.Tree = &recordTree{}
	}
	r.record.Tree.Failed = err.Error()
	select {
	case <-r.Kill:
		r.unsettled = append(r.unsettled, fmt.Errorf("the worktree of %s was not looked over: %w", r.inv, err))
	default:
		r.treeDecide("the worktree could not be looked over", err, nil)
	}
}

// treeDecide decides, or adds to what was decided before.
func (r *run) treeDecide(reason string, err error, fs []planner.Finding) {
	if r.decision == nil {
		r.decide(&Decision{Code: CodeDrift, Reason: reason, Err: err, Findings: fs})
		return
	}
	d := *r.decision
	d.Findings = append(d.Findings[:len(d.Findings):len(d.Findings)], fs...)
	if err != nil {
		d.Findings = append(d.Findings, r.treeFinding("left a worktree that could not be looked over: "+err.Error()))
	}
	r.decision = &d
}
