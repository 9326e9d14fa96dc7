package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"sort"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/sandplan/sandplan/planner"
)

// sweepWidth is how many objects are inspected at once. More does not get faster: the engine answers from
// memory, 6 keep two cores busy, and the archive that is read at the same time must get its turn.
const sweepWidth = 6

// look is one look at the engine. Lists come first, then our containers in full; from then on nothing
// is fetched that a kind does not ask for.
type look struct {
	engine *Engine
	scope  planner.Scope
	// gate is set for the look that decides whether an agent may start: then every kind fetches what
	// it otherwise needs only of objects that run.
	gate bool
	// listed are the engine's lists, each object in list form, of every scope and of none.
	listed map[listName][]tree
	// refs are the scope's objects by engine ID.
	refs map[string]planner.Address
	// ahead is what was asked for before the lists, if anything was; with lists that are read again it is gone.
	ahead atomic.Pointer[ahead]
	// joining are the containers that name a network, see there.
	joining map[string]map[string]string
	// intruders are what foreign containers do to objects of the scope, by the object's engine ID.
	intruders map[string][]planner.Extra
	// bridges are this machine's bridges.
	bridges map[string]bridgeState
	// fleeting is what did not fit together when it was read last, and had before, in the words of unfit.
	fleeting map[string]bool

	// buffers are for replies, which nothing of what is made of them refers to.
	buffers sync.Pool

	mu sync.Mutex
	// oddities are the invocations at which something is not as it should be; "" stands for what all share.
	oddities map[planner.Address]bool
	// leaving are those with a container that is on its way out, see noteLeaving.
	leaving map[planner.Address]bool
	// stronger is what overrules the settings of bridges, by their names, as far as it was read.
	stronger map[string]string
	// notes are what this look could not verify (planner.Snapshot.Unchecked).
	notes map[string]bool
}

// note records what this look could not verify. Objects are looked at concurrently.
func (l *look) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notes == nil {
		l.notes = map[string]bool{}
	}
	l.notes[fmt.Sprintf(format, args...)] = true
}

// object turns a tree into what planning reads.
func (l *look) object(ctx context.Context, k *kind, v tree) (planner.Object, error) {
	return l.objectOf(ctx, k, reply{tree: v})
}

func (l *look) objectOf(ctx context.Context, k *kind, r reply) (planner.Object, error) {
	v := r.tree
	if k.complete != nil {
		if err := k.complete(ctx, l, v); err != nil {
			return planner.Object{}, err
		}
	}
	if k.table.argument != nil {
		k.table.observeArgument(r)
	}
	labels := labelsOf(treeLabels(v))
	id, _ := readIdentity(labels)
	o := planner.Object{Addr: id.address, Kind: k.name, ID: treeID(v), Name: treeName(v), Schema: id.schema,
		Digest: id.digest, Origin: id.origin, Status: treeStatus(v)}
	o.Observed = k.table.observedOf(r, l.refs)
	var unknown []string
	o.Extra, unknown = k.table.extras(v)
	o.Extra = append(o.Extra, l.intruders[o.ID]...)
	for _, path := range unknown {
		l.note("engine %s shows %s of a %s, which sandplan %s does not know",
			l.engine.info.Version, path, k.name, l.engine.options.Version)
	}
	digest := planner.Digest(o.Observed)
	if len(o.Extra) > 0 || digest != id.digest {
		l.odd(id.address)
	}
	if id.schema == planner.Schema {
		o.Declared = declaredFields(k.table, labels, o.Observed, digest)
	}
	o.Fingerprint = fingerprintOf(o, digest)
	return o, nil
}

// declaredFields are what the labels say that the object should be; nil when they cannot be read.
// Nearly always that is what it is, and the digest tells so without unpacking the declaration.
func declaredFields(t *table, labels map[string]string, fields []planner.Field, digest string) []planner.Field {
	if digest == labels[labelDigest] {
		return fields // ignored rows are part of no declaration, and of no comparison
	}
	declared, err := decodeDeclared(labels)
	if err != nil {
		return nil
	}
	values, err := parseDeclared(declared)
	if err != nil {
		return nil
	}
	return t.declared(values)
}

// fingerprint is over everything that a plan is computed from.
func fingerprint(o planner.Object) string { return fingerprintOf(o, planner.Digest(o.Observed)) }

// fingerprintOf takes the digest of what was observed.
func fingerprintOf(o planner.Object, digest string) string {
	parts, err := json.Marshal([]any{o.Addr, o.Kind, o.ID, o.Name, o.Schema, o.Digest, o.Origin, o.Status, o.Extra,
		o.Declared == nil, digest})
	if err != nil {
		panic(fmt.Sprintf("object without a JSON form: %v", err))
	}
	sum := sha256.Sum256(parts)
	return hex.EncodeToString(sum[:])
}

// list reads one of the engine's lists.
func (e *Engine) list(ctx context.Context, name listName, query url.Values) ([]tree, error) {
	path := map[listName]string{listNetworks: "/networks", listContainers: "/containers/json", listVolumes: "/volumes"}[name]
	raw, err := e.get(ctx, path, query)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path[1:], err)
	}
	if name == listVolumes { // the only list that is wrapped in an object
		var wrapped struct{ Volumes json.RawMessage }
		if err := json.Unmarshal(raw, &wrapped); err != nil {
			return nil, fmt.Errorf("list volumes: %w", err)
		}
		raw = wrapped.Volumes
	}
	out, err := decodeTrees(raw)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path[1:], err)
	}
	return out, nil
}

// inspect reads one object of the engine as it is.
func (e *Engine) inspect(ctx context.Context, path string) (tree, error) {
	raw, err := e.get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return decodeTree(raw)
}

// load reads all lists at once.
func (l *look) load(ctx context.Context, query url.Values) error {
	listed, err := l.engine.lists(ctx, query)
	if err != nil {
		return err
	}
	if l.listed != nil { // these lists are the second ones: what was read before the first is too old for them
		l.ahead.Store(nil)
	}
	l.listed = listed
	return nil
}

// lists reads all lists at once.
func (e *Engine) lists(ctx context.Context, query url.Values) (map[listName][]tree, error) {
	names := []listName{listNetworks, listContainers, listVolumes}
	lists := make([][]tree, len(names))
	g, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		q := url.Values{}
		for k, v := range query {
			q[k] = v
		}
		if name == listContainers {
			q.Set("all", "1")
		}
		g.Go(func() (err error) {
			lists[i], err = e.list(ctx, name, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := map[listName][]tree{}
	for i, name := range names {
		out[name] = lists[i]
	}
	return out, nil
}

// containersOf are the scope's containers of a kind in list form, whether or not the kind is one of
// those with rows (locks, seeds, helpers).
func (l *look) containersOf(ctx context.Context, kind planner.Kind) ([]tree, error) {
	all := l.listed[listContainers]
	if l.listed == nil {
		var err error
		if all, err = l.engine.list(ctx, listContainers, url.Values{"all": {"1"}, "filters": {scopeFilter(l.scope)}}); err != nil {
			return nil, err
		}
	}
	var out []tree
	for _, v := range all {
		if id, ok := readIdentity(labelsOf(treeLabels(v))); ok && id.scope == l.scope && id.kind == kind {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return treeID(out[i]) < treeID(out[j]) })
	return out, nil
}

// scopeFilter is the engine's filter for what carries the labels of a scope.
func scopeFilter(s planner.Scope) string {
	return planner.JSON(map[string][]string{"label": {labelProject + "=" + s.Project, labelWorkspace + "=" + s.Workspace}}).Text()
}
