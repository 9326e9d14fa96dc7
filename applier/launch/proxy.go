package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// startProxy starts the proxy and waits until it listens.
func (r *run) startProxy(d *deadline) error {
	addr := r.inv.With(planner.PartProxy)
	r.egress = newEgressLog(r.record.egress())
	err := d.step("starting the proxy", func(ctx context.Context) (err error) {
		if r.proxy, err = r.open(ctx, addr, r.egress, discard{}, newSecret()); err != nil {
			return err
		}
		r.touched = true
		return r.proxy.start(ctx, nil)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	err = d.step("waiting for the proxy to be ready", func(ctx context.Context) error {
		line, err := r.proxy.line(ctx)
		if err != nil {
			return err
		}
		ready, err := wire.ParseReady(line, r.proxy.nonce)
		if err != nil {
			return err
		}
		r.record.Proxy = &ready
		declared, err := r.compiled.Inside(addr)
		if err != nil {
			return err
		}
		if wrong := declared.Judge(ready); len(wrong) > 0 {
			return &Decision{Code: CodeRefused, Reason: "the proxy is not as declared, seen from the inside", Checks: wrong}
		}
		r.proxy.identify(d.ctx)
		r.tell(Event{Kind: EventProxyReady, ID: r.proxy.id, Detail: ready.Listen})
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	return nil
}

var errEnded = errors.New("has ended")

// alive fails when a container is not the process any more that this run started.
func (c *container) alive(ctx context.Context) error {
	p, err := c.engine.Process(ctx, c.id)
	if errors.Is(err, planner.ErrGone) {
		return fmt.Errorf("%s %w: it was removed", c.addr, errEnded)
	}
	if err != nil {
		return err
	}
	switch {
	case p.Status != planner.StatusRunning:
		return fmt.Errorf("%s %w%s", c.addr, errEnded, c.said(nil))
	case !p.Started.Equal(c.process.Started) || p.PID != c.process.PID || p.Restarts != c.process.Restarts:
		return &Decision{Code: CodeDrift, Reason: fmt.Sprintf("%s was restarted by somebody", c.addr)}
	}
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// sameSources compares what a container has mounted with what the host has there.
func sameSources(want []planner.Source, mounts []wire.Mount) []wire.Check {
	var out []wire.Check
	for _, s := range want {
		i := slices.IndexFunc(mounts, func(m wire.Mount) bool { return m.Path == s.Path })
		switch {
		case i < 0:
			out = append(out, wire.Check{Name: "mount.source", Detail: fmt.Sprintf("%s is not mounted at %s", s.Host, s.Path)})
		case mounts[i].Dev != s.Dev || mounts[i].Inode != s.Inode:
			out = append(out, wire.Check{Name: "mount.source", Detail: fmt.Sprintf(
				"%s is another directory than %s: device %d inode %d inside, device %d inode %d on the host",
				s.Path, s.Host, mounts[i].Dev, mounts[i].Inode, s.Dev, s.Inode)})
		}
	}
	return out
}
