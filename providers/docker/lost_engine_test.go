package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"

	"github.com/sandplan/sandplan/planner"
)

// Who removes an image that agents are made from blinds nobody: it is told as what it is, and whatever
// else was changed is told beside it.
func TestRemovedImageHidesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.208.0/20", w.one("review")))
	c := w.compile(s)
	ids := w.apply(c)
	ctx, cli := t.Context(), w.engine.cli
	pinned := planner.VendorImage("local")
	if err := cli.NetworkConnect(ctx, "bridge", ids["invocation.one.agent"], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.ImageRemove(ctx, ids[pinned], image.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}

	c = w.compile(s) // no error
	snap := c.Complete(w.observe(ctx))
	obstacles := c.Obstacles(ctx, snap)
	if len(obstacles) != 1 || obstacles[0].Summary != summaryImage || !strings.Contains(obstacles[0].Detail, "docker load -i FILE") || obstacles[0].Subject == nil {
		t.Errorf("in the way is %v, want the image with the line that names it", obstacles)
	}
	found := planner.Diff(c.Resources(), snap, planner.Options{}).Findings
	told := func(a planner.Address, path string) bool {
		return slices.ContainsFunc(found, func(f planner.Finding) bool {
			return f.Kind == planner.FindingDrift && f.Addr == a && strings.HasPrefix(f.Path(), path)
		})
	}
	if !told(pinned, "") || !told("invocation.one.agent", "NetworkSettings.Networks.bridge") || len(found) != 2 {
		t.Errorf("found are %+v, want the image and the agent's second network", found)
	}
	if _, err := c.Create(ctx, c.resource(pinned), nil); err == nil || !strings.Contains(err.Error(), "docker load -i FILE") {
		t.Errorf("the image is made with %v", err)
	}
}
