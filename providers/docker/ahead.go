package docker

import (
	"context"
	"net/url"

	"github.com/sandplan/sandplan/planner"
)

// ahead is a hash of the shim's bytes that was begun before the lists were read. The engine starts a process
// for an archive, so that it takes longer than anything else that a look asks for.
type ahead struct {
	seed    string // the ID of the container that it was read through
	content any
	err     error
	done    chan struct{}
}

// readAhead begins with the bytes, when the scope has just one seed. Whether that one is the right one is
// for completeShim to find out.
func (e *Engine) readAhead(ctx context.Context, scope planner.Scope) *ahead {
	a := &ahead{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		seeds, err := e.list(ctx, listContainers, url.Values{"all": {"1"}, "filters": {planner.JSON(map[string][]string{"label": {
			labelKind + "=" + string(kindSeed), labelProject + "=" + scope.Project, labelWorkspace + "=" + scope.Workspace}}).Text()}})
		if err != nil || len(seeds) != 1 {
			return // then it is read when its turn comes
		}
		a.content, a.err = e.readTool(ctx, treeID(seeds[0]))
		a.seed = treeID(seeds[0])
	}()
	return a
}

// readTool is what stands at /.sandplan of a seed, read ahead or now.
func (l *look) readTool(ctx context.Context, seed string) (any, error) {
	if a := l.ahead.Swap(nil); a != nil { // whoever looks a second time reads anew
		if <-a.done; a.seed == seed {
			return a.content, a.err
		}
	}
	return l.engine.readTool(ctx, seed)
}
