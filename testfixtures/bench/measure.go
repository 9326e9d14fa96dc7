package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// applyAndDestroy records the calls of one apply and one destroy of n invocations, then runs sandplan
// and the bare calls alternately.
func (b *bench) applyAndDestroy(n, _ int) ([]goal, error) {
	creates, deletes, err := b.record(n)
	if err != nil {
		return nil, err
	}
	if err := b.declare(n, b.engine.socket); err != nil {
		return nil, err
	}
	start, err := b.processStart()
	if err != nil {
		return nil, err
	}
	var apply, destroy, bareApply, bareDestroy []time.Duration
	for _, limit := range []int{8, 4} {
		ua, err := b.sandplan("apply", "-auto-approve")
		if err != nil {
			return nil, err
		}
		ud, err := b.sandplan("destroy", "-auto-approve")
		if err != nil {
			return nil, err
		}
		apply, destroy = append(apply, ua.wall), append(destroy, ud.wall)
		da, dd, err := b.replay(creates, deletes, limit)
		if err != nil {
			return nil, err
		}
		bareApply, bareDestroy = append(bareApply, da+start), append(bareDestroy, dd+start)
	}
	// The best of each side: noise only ever adds.
	ratio := func(ours, bare []time.Duration) (float64, string) {
		o, r := slices.Min(ours), slices.Min(bare)
		return o.Seconds() / r.Seconds(), fmt.Sprintf("%.2f s, bare %.2f s", o.Seconds(), r.Seconds())
	}
	ra, na := ratio(apply, bareApply)
	rd, nd := ratio(destroy, bareDestroy)
	return []goal{
		{fmt.Sprintf("apply of %d invocations / bare calls", n), ra, 1.25, "×", na},
		{fmt.Sprintf("destroy of %d invocations / bare calls", n), rd, 1.25, "×", nd},
	}, nil
}

// record lets sandplan apply and destroy through a recorder.
func (b *bench) record(n int) (creates, deletes []writeCall, err error) {
	var r recorder
	socket := filepath.Join(b.dir, "recorder.sock")
	l, err := r.listen(socket, b.engine)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if err := b.declare(n, socket); err != nil {
		return nil, nil, err
	}
	r.take() // what init did
	if _, err := b.sandplan("apply", "-auto-approve"); err != nil {
		return nil, nil, err
	}
	creates, _ = r.take()
	if _, err := b.sandplan("destroy", "-auto-approve"); err != nil {
		return nil, nil, err
	}
	deletes, _ = r.take()
	return creates, deletes, nil
}

func (b *bench) replay(creates, deletes []writeCall, limit int) (apply, destroy time.Duration, err error) {
	r := &replay{engine: b.engine, ids: map[string]string{}}
	all := append(slices.Clone(creates), deletes...)
	pc, pd := prepare(creates, all), prepare(deletes, all)
	t0 := time.Now()
	if err := r.run(pc, limit); err != nil {
		return 0, 0, err
	}
	t1 := time.Now()
	if err := r.run(pd, limit); err != nil {
		return 0, 0, err
	}
	return t1.Sub(t0), time.Since(t1), nil
}

// processStart is what it takes to start the binary at all.
func (b *bench) processStart() (time.Duration, error) {
	var all []time.Duration
	for range 5 {
		u, err := b.sandplan("version")
		if err != nil {
			return 0, err
		}
		all = append(all, u.wall)
	}
	return median(all), nil
}

// plans measures the plan of nothing to do, for both sizes.
func (b *bench) plans(some, many int) ([]goal, error) {
	var goals []goal
	for _, n := range []int{some, many} {
		if err := b.declare(n, b.engine.socket); err != nil {
			return nil, err
		}
		if _, err := b.sandplan("apply", "-auto-approve"); err != nil {
			return nil, err
		}
		gs, err := b.plan(n)
		if err != nil {
			return nil, err
		}
		goals = append(goals, gs...)
		if n == many {
			audits, err := b.audit(n)
			if err != nil {
				return nil, err
			}
			goals = append(goals, audits...)
		}
		if n == some {
			cpu, err := b.planCost(n)
			if err != nil {
				return nil, err
			}
			goals = append(goals, cpu...)
		}
	}
	_, err := b.sandplan("destroy", "-auto-approve")
	return goals, err
}

func (b *bench) plan(n int) ([]goal, error) {
	start, err := b.processStart()
	if err != nil {
		return nil, err
	}
	ours, bare, err := sideBySide(7, func() (time.Duration, error) {
		u, err := b.sandplan("plan", "-detailed-exitcode") // fails unless nothing is to do
		if err != nil {
			return 0, err
		}
		return u.wall, nil
	}, func() (time.Duration, error) {
		t := time.Now()
		err := b.engine.barePlan(project)
		return time.Since(t) + start, err
	})
	if err != nil {
		return nil, err
	}
	return []goal{{fmt.Sprintf("no-op plan of %d invocations / bare calls", n), ours.Seconds() / bare.Seconds(), 1.3, "×",
		fmt.Sprintf("%.0f ms, bare %.0f ms", ours.Seconds()*1000, bare.Seconds()*1000)}}, nil
}

func (b *bench) planCost(n int) ([]goal, error) {
	u, err := b.sandplan("plan", "-detailed-exitcode")
	if err != nil {
		return nil, err
	}
	return []goal{
		{fmt.Sprintf("CPU time of the plan of %d", n), u.cpu.Seconds(), 1, "s", ""},
		{fmt.Sprintf("peak memory of the plan of %d", n), u.peakMB, 60, "MB", ""},
	}, nil
}
