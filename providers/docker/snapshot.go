package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"github.com/sandplan/sandplan/planner"
)

// found is an object that carries the labels of the scope.
type found struct {
	kind *kind
	addr planner.Address
	tree tree
	// remnant: it is none of the scope's objects and has to go.
	remnant bool
}

// addrUnknown stands for an address that cannot be read.
const addrUnknown planner.Address = "sandplan.unknown"

// Observe looks at everything of a scope: the engine's lists, one sweep over the scope's containers,
// and what does not run is not inspected any deeper. It changes nothing.
func (e *Engine) Observe(ctx context.Context, scope planner.Scope) (planner.Snapshot, error) {
	if e.paper != nil {
		return e.paper.look(scope)
	}
	ctx, cancel := context.WithCancel(ctx)
	early := e.readAhead(ctx, scope)
	defer func() { cancel(); <-early.done }() // nothing of a look goes on after it
	l := &look{engine: e, scope: scope}
	l.ahead.Store(early)
	s, err := l.observe(ctx)
	if err != nil {
		return planner.Snapshot{}, fmt.Errorf("look at %s on the engine: %w", scope, err)
	}
	s.Foreign = l.foreign()
	s.Elsewhere = l.elsewhere()
	if s.Taken, err = l.taken(); err != nil {
		return planner.Snapshot{}, fmt.Errorf("look at %s on the engine: %w", scope, err)
	}
	return s, nil
}

// Recheck looks at some objects of a scope as deeply as the gate does, and at nothing else; an address
// stands for what it contains.
func (e *Engine) Recheck(ctx context.Context, scope planner.Scope, addrs []planner.Address) (planner.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &look{engine: e, scope: scope, gate: true}
	asked := func(a planner.Address) bool {
		return slices.ContainsFunc(addrs, func(asked planner.Address) bool { return asked.Contains(a) })
	}
	if asked(planner.AddrShim) { // its bytes take longest, and a run waits for them
		early := e.readAhead(ctx, scope)
		defer func() { cancel(); <-early.done }() // nothing of a look goes on after it
		l.ahead.Store(early)
	}
	s, err := l.snapshot(ctx, url.Values{"filters": {scopeFilter(scope)}}, asked)
	if err != nil {
		return planner.Snapshot{}, fmt.Errorf("look again at %s on the engine: %w", scope, err)
	}
	return s, nil
}

// snapshot reads the lists (those that query selects) and looks at the objects that wanted selects.
func (l *look) snapshot(ctx context.Context, query url.Values, wanted func(planner.Address) bool) (planner.Snapshot, error) {
	s := planner.Snapshot{EngineID: l.engine.info.ID, Scope: l.scope}
	if err := l.begin(ctx, query); err != nil {
		return s, err
	}
	l.joining = joining(l.listed[listContainers])
	objects := l.claim()
	if err := l.findIntruders(ctx, objects); err != nil {
		return s, err
	}
	l.checkNamespaces()
	if wanted != nil {
		objects = slices.DeleteFunc(objects, func(f found) bool { return !wanted(f.addr) })
	}
	seen, err := l.sweep(ctx, objects)
	if err != nil {
		return s, err
	}
	for i, f := range objects {
		switch {
		case seen[i] == nil: // gone since it was listed
		case f.remnant:
			s.Duplicates = append(s.Duplicates, *seen[i])
		default:
			s.Objects = append(s.Objects, *seen[i])
		}
	}
	for i := range l.engine.kinds {
		if find := l.engine.kinds[i].find; find != nil {
			more, err := find(ctx, l)
			if err != nil {
				return s, err
			}
			s.Objects = append(s.Objects, more...)
		}
	}
	if wanted != nil {
		s.Objects = slices.DeleteFunc(s.Objects, func(o planner.Object) bool { return !wanted(o.Addr) })
	}
	arrange(s.Objects)
	arrange(s.Duplicates)
	for i := range s.Objects {
		s.Objects[i].DependsOn = l.engine.needs(s.Objects[i])
	}
	s.Leases = l.leases()
	s.Unchecked = sortedKeys(l.notes)
	return s, nil
}

// begin reads lists and bridges. The gate does not wait for them to fit together: it refuses.
func (l *look) begin(ctx context.Context, query url.Values) (err error) {
	if query == nil {
		return l.settle(ctx)
	}
	if err := l.load(ctx, query); err != nil {
		return err
	}
	l.bridges, err = l.hostBridges()
	return err
}

// arrange brings objects into the order of plans.
func arrange(objects []planner.Object) {
	sort.Slice(objects, func(i, j int) bool {
		a, b := objects[i], objects[j]
		if a.Addr != b.Addr {
			return a.Addr.Less(b.Addr)
		}
		return a.ID < b.ID
	})
}

// needs is what an object depends on, there or not: a part that was taken away is told by it.
func (e *Engine) needs(o planner.Object) []planner.Address {
	k, err := e.kind(o.Kind)
	if err != nil || k.needs == nil {
		return nil
	}
	return k.needs(o.Addr)
}

// claim finds what carries the scope's labels, tells the objects from the remnants, and fills l.refs:
// only an object's ID stands for its address, never that of a second one with the same labels.
func (l *look) claim() []found {
	var all []found
	for _, list := range []listName{listNetworks, listContainers, listVolumes} {
		for _, v := range l.listed[list] {
			if id, ok := readIdentity(labelsOf(treeLabels(v))); ok && id.scope == l.scope && !isLockThere(list, id, v) {
				all = append(all, l.identify(list, id, v))
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return l.before(all[i], all[j]) })
	l.refs = map[string]planner.Address{}
	held := map[planner.Address]bool{}
	kinds := map[planner.Kind]bool{}
	for i := range all {
		f := &all[i]
		if f.remnant || f.kind.companion != "" {
			continue
		}
		if f.remnant = held[f.addr]; !f.remnant {
			held[f.addr], kinds[f.kind.name], l.refs[treeID(f.tree)] = true, true, f.addr
		}
	}
	return slices.DeleteFunc(all, func(f found) bool {
		return f.kind.companion != "" && kinds[f.kind.companion] && l.accompanies(f.tree)
	})
}

// accompanies reports whether a container mounts a volume with the scope's labels, with which it is judged. One
// that does not is nobody's companion, whatever its labels say.
func (l *look) accompanies(c tree) bool {
	mounts, _ := c["Mounts"].([]any)
	return slices.ContainsFunc(l.listed[listVolumes], func(v tree) bool {
		id, ok := readIdentity(labelsOf(treeLabels(v)))
		return ok && id.scope == l.scope && slices.ContainsFunc(mounts, func(m any) bool {
			mount, _ := m.(map[string]any)
			return mount["Name"] == treeName(v)
		})
	})
}

// identify reads the labels of an object in one of the lists. What makes no sense is a remnant: the
// scope's labels are on it, so it is the scope's to remove.
func (l *look) identify(list listName, id identity, v tree) found {
	addr, err := planner.ParseAddress(string(id.address))
	if err != nil {
		addr = addrUnknown
	}
	k, kindErr := l.engine.kind(id.kind)
	if kindErr != nil || k.list != list || (err != nil && !k.leftover) || !kindFits(k, addr) {
		return found{kind: l.engine.stray(list), addr: addr, tree: v, remnant: true}
	}
	return found{kind: k, addr: addr, tree: v, remnant: k.leftover || k.companion != ""}
}

// kindFits reports whether objects of the kind stand at addresses such as this one.
func kindFits(k *kind, a planner.Address) bool {
	part := a.Part()
	switch {
	case k.leftover, k.companion != "":
		return true
	case a.Invocation() == "":
		return part == string(k.name)
	case strings.HasPrefix(part, "runner["):
		return k.name == planner.KindRunner
	}
	return part == string(k.name)
}

// before puts that one of two objects at an address first that has the name which we give.
func (l *look) before(a, b found) bool {
	if a.addr != b.addr {
		return a.addr.Less(b.addr)
	}
	named := func(f found) bool { return treeName(f.tree) == objectName(l.scope, f.addr) }
	if named(a) != named(b) {
		return named(a)
	}
	return treeID(a.tree) < treeID(b.tree)
}

// sweep looks at objects, a few at a time. An object that is gone by then is nil.
func (l *look) sweep(ctx context.Context, objects []found) ([]*planner.Object, error) {
	l.buffers.New = func() any { return new(bytes.Buffer) }
	out := make([]*planner.Object, len(objects))
	err := inParallel(ctx, sweepWidth, len(objects), func(ctx context.Context, i int) error {
		f := objects[i]
		o, err := l.lookAt(ctx, f)
		switch {
		case errdefs.IsNotFound(err):
			l.odd(f.addr)
			return nil
		case isUnanswered(err):
			return fmt.Errorf("look at %s (%s): %w", f.addr, treeName(f.tree), err)
		case err != nil:
			l.odd(f.addr)
			o = unreadable(f, err)
		}
		out[i] = &o
		return nil
	})
	return out, err
}

func (l *look) lookAt(ctx context.Context, f found) (planner.Object, error) {
	r := reply{tree: f.tree}
	if f.kind.list == listContainers {
		// The list of containers shows a fraction of what there is; those of networks and volumes all.
		buf := l.buffers.Get().(*bytes.Buffer)
		defer l.buffers.Put(buf)
		err := l.engine.getInto(ctx, buf, "/containers/"+treeID(f.tree)+"/json", nil)
		if err != nil {
			return planner.Object{}, err
		}
		if r, err = f.kind.table.decode(buf.Bytes()); err != nil {
			return planner.Object{}, err
		}
		l.noteLeaving(f, r.tree)
	}
	o, err := l.objectOf(ctx, f.kind, r)
	o.Addr = f.addr // as it was read, not as it is written
	return o, err
}

// unreadable is an object that the engine lists and cannot show, or whose parts cannot be read. It
// differs from anything wanted, and can still be removed: one broken object must not stop a destroy.
func unreadable(f found, err error) planner.Object {
	id, _ := readIdentity(labelsOf(treeLabels(f.tree)))
	o := planner.Object{Addr: f.addr, Kind: f.kind.name, ID: treeID(f.tree), Name: treeName(f.tree), Schema: id.schema,
		Digest: id.digest, Origin: id.origin, Status: treeStatus(f.tree),
		Extra: []planner.Extra{{Path: planner.PathUnreadable, Detail: "it cannot be looked at: " + err.Error()}}}
	o.Fingerprint = fingerprint(o)
	return o
}

// isUnanswered reports whether a call failed for the want of an answer, which says nothing of the object.
func isUnanswered(err error) bool {
	var call *url.Error
	var conn *net.OpError // in the middle of an answer
	return errors.As(err, &call) || errors.As(err, &conn) || client.IsErrConnectionFailed(err) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
