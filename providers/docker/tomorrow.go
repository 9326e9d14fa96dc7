package docker

import (
	"context"
	"fmt"
	"net/url"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
)

// refuseTomorrow makes sure, before anything is made, that the engine shows nothing which no row covers: a
// newer engine may have a setting that decides over a container, and what nobody compares nobody finds
// changed. There is something to look at on every engine: the network that containers without one are on,
// and the lock under which things are made, a container that was never started.
func (e *Engine) refuseTomorrow(ctx context.Context, scope planner.Scope) error {
	network, err := e.inspect(ctx, "/networks/"+roleNone)
	if err != nil {
		return fmt.Errorf("see what the engine shows of a network: %w", err)
	}
	if err := e.knows("network", networkKind().table, network); err != nil {
		return err
	}
	lock, err := e.inspect(ctx, "/containers/"+url.PathEscape(objectName(scope, "lock"))+"/json")
	switch {
	case errdefs.IsNotFound(err): // a caller that works without one, or a foreign container's name
		return nil
	case err != nil:
		return fmt.Errorf("see what the engine shows of a container: %w", err)
	}
	arrangeContainer(lock, e.info.DataDir)
	return e.knows("container", runnerKind().table, lock)
}

// knows refuses what an engine shows of an object and no row covers.
func (e *Engine) knows(what string, t *table, v tree) error {
	unknown, _ := t.extras(v)
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("engine %s shows %s of a %s, which sandplan %s does not know and so could not watch; nothing is made. "+
		"Use a newer sandplan, or an engine of version 20.10 to 28.5", e.info.Version, unknown[0].Path, what, e.options.Version)
}
