package docker

import (
	"context"
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// kind is what the package knows of one kind of object. It stands in the kind's own file, beside the
// kind's Desired struct and rows; here is only what all kinds have in common.
type kind struct {
	name  planner.Kind
	table *table
	// list is where the engine lists objects of the kind.
	list listName
	// find is for objects that carry no labels of a scope (images), and then list is listNone: it
	// returns what the engine has of them.
	find func(ctx context.Context, l *look) ([]planner.Object, error)
	// leftover marks objects that exist for a moment only; one that a look finds is a remnant. companion
	// names the kind whose object the container belongs to; without such an object it is a remnant too.
	leftover  bool
	companion planner.Kind
	// inspect reads one object by its engine ID.
	inspect func(ctx context.Context, e *Engine, id string) (tree, error)
	// complete changes a tree in place: it adds what inspect output does not show (settings of the
	// bridge, a hash of the content) and rewrites what it shows in an unsuitable form. Lists may show
	// less than inspect does; complete fetches what is needed at the depth of the look.
	complete func(ctx context.Context, l *look, v tree) error
	// needs are the addresses that must be there before an object of this address, and go after it.
	needs func(a planner.Address) []planner.Address
	// remove deletes by engine ID. An object that is gone already is removed.
	remove func(ctx context.Context, e *Engine, o planner.Object) error
	// restore puts the fields of ClassSet of an object back; nil for kinds without such fields.
	restore func(ctx context.Context, e *Engine, scope planner.Scope, o planner.Object) error
}

// desired is one object as it is wanted. Each kind's Desired struct is one.
type desired interface {
	// tree is the object as inspect will show it, made from the requests that create will send; the
	// IDs of other objects stand in it as refTo(address).
	tree() tree
	// create makes the object with these labels and returns its engine ID. ids hold what it depends on.
	create(ctx context.Context, e *Engine, labels map[string]string, ids planner.IDs) (id string, err error)
}

// listName is one of the engine's lists, by the word for one of its objects.
type listName string

const (
	listNone       listName = ""
	listNetworks   listName = "network"
	listContainers listName = "container"
	listVolumes    listName = "volume"
)

// kinds are all kinds, in the order in which dependencies go.
func kinds() []kind {
	return []kind{
		toolKind(),
		shimKind(),
		seedKind(),
		pinnedKind(),
		uplinkKind(),
		networkKind(),
		proxyKind(),
		agentKind(),
		runnerKind(),
		helperKind(),
		strayKind(listNetworks, removeNetwork),
		strayKind(listContainers, removeContainer),
		strayKind(listVolumes, removeVolume),
	}
}

func (e *Engine) kind(name planner.Kind) (*kind, error) {
	for i := range e.kinds {
		if e.kinds[i].name == name {
			return &e.kinds[i], nil
		}
	}
	return nil, fmt.Errorf("objects of kind %q are not known to sandplan %s", name, e.options.Version)
}

// create makes one wanted object, looks at it, and fails when the engine made something else. The
// object is returned in that case too: it exists and has an ID.
func (e *Engine) create(ctx context.Context, scope planner.Scope, r planner.Resource, d desired, ids planner.IDs) (planner.Object, error) {
	k, err := e.kind(r.Kind)
	if err != nil {
		return planner.Object{}, err
	}
	if err := e.proveOnce(ctx, scope); err != nil {
		return planner.Object{}, err
	}
	id, err := e.createPatiently(ctx, k, scope, r, d, ids)
	if err != nil {
		return planner.Object{Addr: r.Addr, Kind: r.Kind, ID: id}, err
	}
	v, err := k.inspect(ctx, e, id)
	if err != nil {
		return planner.Object{Addr: r.Addr, Kind: r.Kind, ID: id}, fmt.Errorf("look at what was created: %w", err)
	}
	l := &look{engine: e, scope: scope, refs: map[string]planner.Address{id: r.Addr}}
	for a, other := range ids {
		l.refs[other] = a
	}
	o, err := l.object(ctx, k, v)
	if err != nil {
		return planner.Object{Addr: r.Addr, Kind: r.Kind, ID: id}, fmt.Errorf("look at what was created: %w", err)
	}
	return o, obeyed(e.info, r, o)
}

// obeyed compares what was asked for with what the engine made of it.
func obeyed(info Info, r planner.Resource, o planner.Object) error {
	var parts []string
	for _, m := range planner.Compare(r.Fields, o.Observed) {
		if m.Field.Sensitive {
			parts = append(parts, m.Field.Path+" differs (sensitive)")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s is %s instead of %s", m.Field.Path, show(m.Got), show(m.Want)))
	}
	for _, x := range o.Extra {
		parts = append(parts, fmt.Sprintf("%s is %s and nobody asked for it", x.Path, x.Detail))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("engine %s did not do what it was asked to: %s", info.Version, strings.Join(parts, "; "))
}

func show(v planner.Value) string {
	if a, ok := v.Ref(); ok {
		return "the ID of " + string(a)
	}
	if v.IsZero() {
		return "nothing"
	}
	return v.Text()
}

// Delete removes an object by its engine ID, never by its name. It needs nothing but the object, so
// that destroy works from labels alone.
func (e *Engine) Delete(ctx context.Context, o planner.Object) error {
	k, err := e.kind(o.Kind)
	if err != nil {
		return err
	}
	return k.remove(ctx, e, o)
}
