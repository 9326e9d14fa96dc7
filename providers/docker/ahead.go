package docker

import (
	"context"
	"net/url"

	"github.com/sandplan/sandplan/planner"
)

// ahead is a hash of the shim's bytes that was begun with the lists, and not after them: it takes longer than anything
// else that a look asks for.
type ahead struct {
	seed string // the ID of the container that it was read through
	view toolView
	err  error
	done chan struct{}
}

// readAhead begins with the bytes, where the seed stands that this program would make. Whether that is the only
// one, and the right one, is for completeShim to find out.
func (e *Engine) readAhead(ctx context.Context, scope planner.Scope) *ahead {
	a := &ahead{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		own, err := e.own()
		if err != nil {
			return // then it is read when its turn comes
		}
		seed, err := inspectContainer(ctx, e, url.PathEscape(seedName(scope, own.ID)))
		if err != nil {
			return
		}
		if id, _ := readIdentity(labelsOf(treeLabels(seed))); id.scope != scope || id.kind != kindSeed {
			return
		}
		a.view, a.err = e.readTool(ctx, treeID(seed), desiredShim{scope: scope, image: own.ID}.name())
		a.seed = treeID(seed)
	}()
	return a
}

// readTool is what stands at /.sandplan of a seed, read ahead or now. volume is plainVolume of the one that it has there.
func (l *look) readTool(ctx context.Context, seed, volume string) (any, error) {
	if a := l.ahead.Swap(nil); a != nil { // whoever looks a second time reads anew
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The archive shows what the seed has there, whatever that is. Files are those of one volume.
		if a.seed == seed && (a.view.volume == "" || a.view.volume == volume) {
			return a.view.content, a.err
		}
	}
	view, err := l.engine.readTool(ctx, seed, volume)
	return view.content, err
}
