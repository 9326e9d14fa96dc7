package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// A claim is the attempt to make a lock. The engine makes what it was asked for, whether or not anybody
// still waits for its answer; and a lock of which its maker does not know locks everybody out for as
// long as the maker lives. So the call outlives a caller who gives up, for a while, and each claim has a
// mark of its own, by which its lock is known when the answer was lost.

// claimLimit is how long a claim is waited for after its caller has given up.
const claimLimit = 5 * time.Second

// claimTries is how often a claim is made whose answer is lost.
const claimTries = 3

func newClaim() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// claim makes the container that is a lock, and returns its ID. When it fails there is none of this claim.
func (e *Engine) claim(ctx context.Context, name string, labels map[string]string) (string, error) {
	img, err := newLockImage(e.info.Arch)
	if err != nil {
		return "", err
	}
	call, done := outlive(ctx, claimLimit)
	defer done()
	var id string
	for try := 1; ; try++ {
		id, err = createFrom(call, e.cli, img, func() (string, error) {
			made, err := e.cli.ContainerCreate(call, &container.Config{Image: img.ID, Labels: labels},
				&container.HostConfig{NetworkMode: "none", RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}},
				nil, nil, name)
			return made.ID, err
		})
		if try > 1 && errdefs.IsConflict(err) {
			if mine, lookErr := e.claimed(call, name, labels); lookErr == nil {
				id, err = mine, nil
			}
		}
		if !isUnanswered(err) || ctx.Err() != nil || try == claimTries {
			break
		}
	}
	if err == nil && ctx.Err() == nil || err != nil && !isUnanswered(err) {
		return id, err
	}
	return "", errors.Join(e.disclaim(ctx, name, id, labels), ctx.Err(), err)
}

// claimed is the ID of the lock that a claim made, by its name.
func (e *Engine) claimed(ctx context.Context, name string, labels map[string]string) (string, error) {
	v, err := e.inspect(ctx, "/containers/"+url.PathEscape(name)+"/json")
	if err != nil {
		return "", err
	}
	if treeName(v) != name || labelsOf(treeLabels(v))[labelLockClaim] != labels[labelLockClaim] {
		return "", errdefs.ErrNotFound
	}
	return treeID(v), nil
}

// disclaim removes what a claim may have made that nobody waits for any more, or whose answer was lost.
func (e *Engine) disclaim(ctx context.Context, name, id string, labels map[string]string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimLimit)
	defer cancel()
	var err error
	if id == "" {
		id, err = e.claimed(ctx, name, labels)
	}
	if err == nil {
		err = e.removeLock(ctx, id)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the engine does not answer, and may make the lock all the same; it is free when this command has ended")
	case err == nil || errdefs.IsNotFound(err) || isUnanswered(err): // no lock, or no engine, which the claim's own error says
		return nil
	}
	return fmt.Errorf("give back a lock that came too late: %w", err)
}

// outlive is a context that ends some time after ctx has.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(later, func() { timer.Stop() })
	})
	return later, func() { stop(); cancel() }
}

// AwaitUnlock waits until a lock is gone, by the ID that a *planner.LockedError shows, and reports whether
// it is. The engine tells at once, where asking again and again would find out late.
func (e *Engine) AwaitUnlock(ctx context.Context, id string) bool {
	result, failed := e.cli.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-result:
		return true
	case err := <-failed:
		return errdefs.IsNotFound(err)
	}
}
