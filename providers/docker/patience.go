package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/sandplan/sandplan/planner"
)

// A command that is killed leaves calls behind that the engine still carries out, for a second or so: a
// bridge whose network is not listed yet, a name that nobody has and nobody can take. Other commands on
// the same engine look the same while they work. What is in the way gets this long to go away by itself.
const (
	patience     = 3 * time.Second
	patienceStep = 200 * time.Millisecond
)

// inTheWay is something foreign that stands where an object of ours would.
type inTheWay struct{ error }

// Conflict makes it one of the errors that errdefs knows.
func (inTheWay) Conflict() {}

func (e inTheWay) Unwrap() error { return e.error }

func isInTheWay(err error) bool {
	return errdefs.IsConflict(err) || err != nil && strings.Contains(strings.ToLower(err.Error()), "pool overlaps")
}

// createPatiently creates a wanted object. What stands in its place with the labels of this very scope
// and address was made by a command that did not live to see it, after this one had looked; it is
// removed like any second object, unless it has been started.
func (e *Engine) createPatiently(ctx context.Context, k *kind, scope planner.Scope, r planner.Resource, d desired, ids planner.IDs) (string, error) {
	labels := labelsFor(scope, e.options.Origin, r)
	for waited := time.Duration(0); ; waited += patienceStep {
		id, err := d.create(ctx, e, labels, ids)
		if id != "" || !isInTheWay(err) || waited >= patience {
			return id, err
		}
		if twinErr := e.removeTwins(ctx, k, scope, r.Addr); twinErr != nil {
			return "", errors.Join(err, twinErr)
		}
		if pauseErr := pause(ctx, patienceStep); pauseErr != nil {
			return "", err
		}
	}
}

func (e *Engine) removeTwins(ctx context.Context, k *kind, scope planner.Scope, a planner.Address) error {
	if k.list == listNone {
		return nil
	}
	all, err := e.list(ctx, k.list, url.Values{"all": {"1"}, "filters": {scopeFilter(scope)}})
	if err != nil {
		return err
	}
	for _, v := range all {
		id, ok := readIdentity(labelsOf(treeLabels(v)))
		if status := treeStatus(v); !ok || id.scope != scope || id.kind != k.name || id.address != a ||
			status != planner.StatusNone && status != planner.StatusCreated {
			continue
		}
		if err := k.remove(ctx, e, planner.Object{Addr: a, Kind: k.name, ID: treeID(v), Name: treeName(v)}); err != nil {
			return fmt.Errorf("remove what a killed command made at %s: %w", a, err)
		}
	}
	return nil
}

// settle reads the lists and this machine's bridges until they fit together: every bridge that is named
// like ours has a network, and every network of the scope has its bridge. What does not fit in any of
// the looks is no passing state, and stays for the rows and for foreign to tell. What does not fit in the last one
// only is most likely one: it is not told before another command has seen it, and no network is made on it.
func (l *look) settle(ctx context.Context) error {
	var odd map[string]bool
	for waited := time.Duration(0); ; waited += patienceStep {
		if err := l.load(ctx, nil); err != nil {
			return err
		}
		var err error
		if l.bridges, err = l.hostBridges(); err != nil {
			return err
		}
		if odd = l.unfit(odd); len(odd) == 0 || waited >= patience {
			l.fleeting = l.unfit(nil)
			maps.DeleteFunc(l.fleeting, func(what string, _ bool) bool { return odd[what] })
		}
		switch {
		case len(odd) == 0:
			return nil
		case waited >= patience:
			l.engine.vain.add(l.bridges, odd)
			return nil
		}
		if err := pause(ctx, patienceStep); err != nil {
			return err
		}
	}
}

// unfitBridge begins what unfit says of a bridge.
const unfitBridge = "bridge "

// waits are the bridges, by name and number of the interface, that were waited for in vain. The next look of
// the same process, of which an apply has several, does not wait for them again; it tells them all the same.
type waits struct {
	mu     sync.Mutex
	number map[string]int
}

func (w *waits) has(bridge string, number int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return number != 0 && w.number[bridge] == number
}

func (w *waits) add(there map[string]bridgeState, unfit map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what := range unfit {
		if bridge, ok := strings.CutPrefix(what, unfitBridge); ok {
			if w.number == nil {
				w.number = map[string]int{}
			}
			w.number[bridge] = there[bridge].index
		}
	}
}

// unfit are the bridges without a network and the scope's networks without a bridge, of those in before.
func (l *look) unfit(before map[string]bool) map[string]bool {
	now := map[string]bool{}
	owned := map[string]bool{}
	for _, v := range l.listed[listNetworks] {
		bridge, _ := lookup(v, mustParsePath(pathBridge)).(string)
		owned[bridge] = true
		id, ok := readIdentity(labelsOf(treeLabels(v)))
		if _, there := l.bridges[bridge]; ok && id.scope == l.scope && ownBridge.MatchString(bridge) && !there {
			now["network "+treeID(v)] = true
		}
	}
	for bridge, state := range l.bridges {
		if ownBridge.MatchString(bridge) && !owned[bridge] && !l.engine.vain.has(bridge, state.index) {
			now[unfitBridge+bridge] = true
		}
	}
	if before != nil {
		for what := range now {
			if !before[what] {
				delete(now, what)
			}
		}
	}
	return now
}
