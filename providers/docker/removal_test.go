package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// someImage is the ID of an image that is nowhere, another one in each process.
func someImage(t *testing.T) string {
	sum := sha256.Sum256([]byte(unique(t.Name())))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// announce makes what is there while an image is removed, by a process that started at a time.
func announce(t *testing.T, e *Engine, image string, started uint64) string {
	t.Helper()
	by, err := thisProcess("/proc", e.options)
	if err != nil {
		t.Fatal(err)
	}
	if started != 0 {
		by.StartTime = started
	}
	id, err := e.claim(t.Context(), removalName(image), lockLabels(planner.Scope{}, "", kindRemoval, by))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.removeLock(context.Background(), id) })
	return id
}

func announced(t *testing.T, e *Engine, image string) bool {
	t.Helper()
	_, err := e.lockNamed(t.Context(), removalName(image), planner.Scope{}, kindRemoval)
	if err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestRemovalIsWaitedFor(t *testing.T) {
	t.Parallel()
	e, image := openEngine(t), someImage(t)
	id := announce(t, e, image, 0)
	over := make(chan error, 1)
	go func() { over <- e.waitRemoved(t.Context(), image) }()
	select {
	case err := <-over:
		t.Fatalf("nobody waits for a removal that is going on: %v", err)
	case <-time.After(5 * settleTime):
	}
	// The way out when whoever announced it died on another machine.
	if err := e.ForceUnlock(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

func TestRemovalOfADeadProcess(t *testing.T) {
	t.Parallel()
	e, image := openEngine(t), someImage(t)
	const longAgo = 1 // this process's number belonged to another one then
	announce(t, e, image, longAgo)
	if err := e.waitRemoved(t.Context(), image); err != nil {
		t.Errorf("a dead process is waited for: %v", err)
	}
	if err := removeTool(t.Context(), e, planner.Object{ID: image}); err != nil {
		t.Errorf("the removal cannot be taken over: %v", err)
	}
	vanishes(t, "the removal that is over", func() bool { return announced(t, e, image) })
	announce(t, e, image, longAgo)
	if err := e.dropDeadRemovals(t.Context()); err != nil {
		t.Error(err)
	}
	vanishes(t, "what a dead process announced", func() bool { return announced(t, e, image) })
}

// TestImageTakenAwayOnceMade: another scope's destroy removes the image right after it was loaded, which no container
// keeps yet. That is no failure of who made it.
func TestImageTakenAwayOnceMade(t *testing.T) {
	t.Parallel()
	f := dockertest.NewFake(t, dockertest.FakeOptions{Release: "20.10", Faults: []dockertest.Fault{
		{Call: "^GET /images/.*/json$", After: 1, Status: 404, Message: "no such image"}}})
	e := openSocket(t, f.Socket)
	img := withProgram(t, e, "package main\n\nfunc main() {}\n")
	d := desiredTool{img}
	want := resourceOf(t, e, planner.KindImage, planner.AddrImage, d)
	if o := created(t, e, planner.Scope{Project: "made", Workspace: "w"}, want, d); o.ID != img.ID {
		t.Errorf("made as %s, want %s", o.ID, img.ID)
	}
}

// vanishes waits until something is gone. Whoever destroys a project on the same engine takes away what dead processes
// left, too: what is being removed already is nobody's failure, and is there a moment longer.
func vanishes(t *testing.T, what string, isThere func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); isThere(); time.Sleep(settleTime) {
		if time.Now().After(deadline) {
			t.Fatalf("%s stays", what)
		}
	}
}
