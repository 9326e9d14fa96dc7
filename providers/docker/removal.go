package docker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
)

// While the engine makes a container, it does not count it as a user of its image yet. With a volume to
// fill that takes a tenth of a second, in which a destroy in another scope, which shares the image, may
// take it away: seen on 20.10. Two things prevent it:
//   - whoever removes sandplan.image announces it before, by a container of a fixed name, and
//   - whoever has made the container that keeps the image from then on waits until nobody removes it,
//     and brings it back when it is gone.
//
// A removal that begins later sees the container, and the engine refuses it.

// kindRemoval marks the container that announces the removal of an image. It is a lock, of no scope.
const kindRemoval planner.Kind = "image-removal"

// removalTime bounds the wait for somebody who removes an image, which is one call to the engine.
const removalTime = 30 * time.Second

func removalName(image string) string { return "sandplan-image-" + shortID(image) + "-removal" }

// removeTool removes sandplan.image unless some container uses it.
func removeTool(ctx context.Context, e *Engine, o planner.Object) error {
	l := &Lock{engine: e, name: removalName(o.ID), what: "the removal of image " + shortID(o.ID)}
	until := e.options.Now().Add(removalTime)
	for {
		err := e.take(ctx, l, planner.Scope{}, "", kindRemoval, "remove image")
		var locked *planner.LockedError
		if err == nil {
			break
		}
		if !errors.As(err, &locked) || e.options.Now().After(until) {
			return err
		}
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
	}
	return errors.Join(removeOwnImage(ctx, e.cli, o.ID), l.Release(context.WithoutCancel(ctx)))
}

// keep makes sure that the image is there for good, now that a container uses it.
func (i *ownImage) keep(ctx context.Context, e *Engine) error {
	if err := e.waitRemoved(ctx, i.ID); err != nil {
		return err
	}
	_, err := e.imageAt(ctx, i.ID)
	if errdefs.IsNotFound(err) {
		err = i.provide(ctx, e.cli)
	}
	return err
}

// waitRemoved returns when nobody removes an image, or whoever announced it is dead or takes for ever.
func (e *Engine) waitRemoved(ctx context.Context, image string) error {
	self, err := thisProcess("/proc", e.options)
	if err != nil {
		return fmt.Errorf("wait for the removal of image %s: %w", shortID(image), err)
	}
	for until := e.options.Now().Add(removalTime); e.options.Now().Before(until); {
		other, err := e.lockNamed(ctx, removalName(image), planner.Scope{}, kindRemoval)
		switch {
		case errdefs.IsNotFound(err), err == nil && isDead("/proc", self, other):
			return nil
		case err != nil:
			return fmt.Errorf("wait for the removal of image %s: %w", shortID(image), err)
		}
		if err := pause(ctx, settleTime); err != nil {
			return err
		}
	}
	return nil
}

// dropDeadRemovals removes announcements of removals whose announcers died: no scope has them.
func (e *Engine) dropDeadRemovals(ctx context.Context) error {
	all, err := e.list(ctx, listContainers, url.Values{"all": {"1"},
		"filters": {planner.JSON(map[string][]string{"label": {labelKind + "=" + string(kindRemoval)}}).Text()}})
	if err != nil {
		return err
	}
	self, err := thisProcess("/proc", e.options)
	if err != nil {
		return fmt.Errorf("look for removals that never ended: %w", err)
	}
	for _, v := range all {
		if info := readLock(treeID(v), labelsOf(treeLabels(v))); isDead("/proc", self, info) {
			if err := e.removeLock(ctx, info.ID); err != nil {
				return fmt.Errorf("remove %s, whose process died: %w", treeName(v), err)
			}
		}
	}
	return nil
}
