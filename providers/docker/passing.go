package docker

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// Invocations of one scope share its uplink, and their runs start and end proxies on it while others
// look. Such a proxy can look like a stranger: until its network namespace is there, and again once that
// is gone, engines list its endpoint as "ep-" and the endpoint's ID in place of the container's (seen on
// 20.10; 26.1 and 28.5 do the same); it may have been made after the list of containers was read, or be
// gone by then; and its interface joins the bridge a little after, and leaves it a little after, its
// endpoint is listed.
//
// None of that is taken for right, or for wrong: every single endpoint is followed until it is somebody's,
// or gone. One that stays as it is, is told. What certainly is somebody else's is told at once.

// passingLimit is how long something may be on its way: far above what a busy machine needs, and below
// the time that a run forgives an engine for not answering. Nobody talks through an endpoint that has no
// namespace, so waiting for one gives nobody time.
const passingLimit = 8 * time.Second

// endpointPrefix begins what engines list in place of a container's ID while an endpoint has none.
const endpointPrefix = "ep-"

// wait is the waiting for one network to settle. Pauses get longer: whoever works there needs the engine, too.
type wait struct {
	limit, waited, next time.Duration
	again               bool // it has paused
}

// waitFor is the wait that a network is worth. Nobody but the caller starts or ends anything on the network of
// the invocation whose lease it holds: whatever is odd there is told nearly at once.
func (l *look) waitFor(network tree) *wait {
	id, _ := readIdentity(labelsOf(network["Labels"]))
	if l.gate && id.address.Invocation() != "" {
		return &wait{limit: 2 * settleTime, next: settleTime}
	}
	return &wait{limit: l.engine.passing, next: settleTime}
}

func (w *wait) over() bool { return w.waited >= w.limit }

func (w *wait) pause(ctx context.Context) error {
	d := w.next
	w.waited, w.again = w.waited+d, true
	w.next = min(2*d, 500*time.Millisecond)
	return pause(ctx, d)
}

// isStranger reports whether an endpoint on a network, of a container that this look does not know to
// belong there, is a stranger's.
func (l *look) isStranger(ctx context.Context, network tree, key string, endpoint any) (bool, error) {
	var err error
	if strings.HasPrefix(key, endpointPrefix) {
		if !l.mayBeOurs(endpoint) {
			return true, nil
		}
		if key, err = l.follow(ctx, network, endpoint); err != nil || key == "" {
			return false, err
		}
	}
	id, _ := readIdentity(labelsOf(network["Labels"]))
	if belongs(id.address, l.refs[key]) {
		return false, nil
	}
	if strings.HasPrefix(key, endpointPrefix) || l.lists(key) {
		return true, nil
	}
	a, there, err := l.latecomer(ctx, key)
	return there && !belongs(id.address, a), err
}

// mayBeOurs reports whether an endpoint is named as the containers of the scope are. The name is all
// that there is to know until it has a container; then that is judged.
func (l *look) mayBeOurs(endpoint any) bool {
	e, _ := endpoint.(map[string]any)
	name, _ := e["Name"].(string)
	return ownName.MatchString(name) && strings.HasPrefix(name, namePrefix(l.scope))
}

// follow waits for an endpoint to have a container, whose ID it returns, or to be gone: then it is "".
func (l *look) follow(ctx context.Context, network tree, endpoint any) (string, error) {
	e, _ := endpoint.(map[string]any)
	for w := l.waitFor(network); ; {
		fresh, err := inspectNetwork(ctx, l.engine, treeID(network))
		if err != nil {
			return "", fmt.Errorf("inspect network %s: %w", treeName(network), err)
		}
		key := ""
		endpoints, _ := dict(fresh["Containers"]).(map[string]any)
		for k, other := range endpoints {
			if o, _ := other.(map[string]any); o["EndpointID"] == e["EndpointID"] {
				key = k
			}
		}
		if !strings.HasPrefix(key, endpointPrefix) || w.over() {
			return key, nil
		}
		if err := w.pause(ctx); err != nil {
			return "", err
		}
	}
}

// latecomer is the address that a container stands for which was made after this look read its list, if
// any, and whether it is there at all. The engine's list is asked, not the container: engines that start
// or end one answer about it when they are done.
func (l *look) latecomer(ctx context.Context, container string) (a planner.Address, there bool, err error) {
	now, err := l.engine.list(ctx, listContainers, url.Values{"all": {"1"}, "filters": {scopeFilter(l.scope)}})
	if err != nil {
		return "", false, err
	}
	late := &look{engine: l.engine, scope: l.scope, listed: map[listName][]tree{listContainers: now}}
	late.claim() // one of two with the same labels has no address
	if a := late.refs[container]; a != "" {
		return a, true, nil
	}
	if now, err = l.engine.list(ctx, listContainers, url.Values{"all": {"1"},
		"filters": {planner.JSON(map[string][]string{"id": {container}}).Text()}}); err != nil {
		return "", false, err
	}
	return "", slices.ContainsFunc(now, func(c tree) bool { return treeID(c) == container }), nil
}

// lists reports whether a container was in the list that this look judges by.
func (l *look) lists(container string) bool {
	return slices.ContainsFunc(l.listed[listContainers], func(c tree) bool { return treeID(c) == container })
}

// withoutLatecomers are the containers that are not the scope's, of those that are not the scope's by
// this look's list. Only one that has its labels is worth asking for.
func (l *look) withoutLatecomers(ctx context.Context, others []tree) ([]tree, error) {
	var out []tree
	for _, c := range others {
		if id, ok := readIdentity(labelsOf(treeLabels(c))); ok && id.scope == l.scope && !l.lists(treeID(c)) {
			a, there, err := l.latecomer(ctx, treeID(c))
			if err != nil {
				return nil, err
			}
			if a != "" || !there { // it came and went meanwhile
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}
