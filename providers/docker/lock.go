package docker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
)

// A lock is a container that is created and never started. The engine gives a name to one container
// only (of 16 concurrent creates 1 wins, on 20.10, 26.1 and 28.5), so the lock is where the objects are,
// whoever works on them from wherever, and it outlives a crash visibly.

// kindLease is the lock of one invocation, held by a run; kindLock that of a scope.
const kindLease planner.Kind = "lease"

func isLock(k planner.Kind) bool { return k == kindLock || k == kindLease }

// isLockThere reports whether an object of a list is a lock: that is a container, which has a lock's name and
// never started. Whatever else says by its labels that it is one is nobody's lock; it is an object with the
// scope's labels that has no place in the scope.
func isLockThere(list listName, id identity, v tree) bool {
	if !isLock(id.kind) || list != listContainers {
		return false
	}
	switch v["State"] {
	case "created", "removing", "dead": // the latter two while the engine removes it
	default:
		return false
	}
	name := objectName(id.scope, "lock")
	if id.kind == kindLease {
		name = objectName(id.scope, id.address, "lease")
	}
	// One that is being removed has no name any more.
	return treeName(v) == name || treeName(v) == ""
}

// Labels of a lock, beside those of every object.
const (
	labelLockOperation = labelPrefix + "lock.operation"
	labelLockWho       = labelPrefix + "lock.who"
	labelLockBoot      = labelPrefix + "lock.boot"
	labelLockPIDNS     = labelPrefix + "lock.pidns"
	labelLockPID       = labelPrefix + "lock.pid"
	labelLockStart     = labelPrefix + "lock.start"
	labelLockVersion   = labelPrefix + "lock.version"
	labelLockTime      = labelPrefix + "lock.time"
	labelLockClaim     = labelPrefix + "lock.claim"
)

// operationDestroy is the operation after which the lock image is not needed any more.
const operationDestroy = "destroy"

// Lock is a lock that this process holds.
type Lock struct {
	engine *Engine
	info   planner.LockInfo
	name   string
	what   string
}

// LockScope takes the lock of a scope. When somebody else has it, the error is a *planner.LockedError.
func (e *Engine) LockScope(ctx context.Context, scope planner.Scope, op string) (*Lock, error) {
	lock, err := e.lock(ctx, scope, "", op)
	if err == nil && op == operationDestroy {
		if err := errors.Join(e.dropDeadLeases(ctx, scope), e.dropDeadRemovals(ctx)); err != nil {
			return nil, errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
		}
	}
	return lock, err
}

// LockInvocation takes the lease of an invocation. When somebody else has it, the error is a
// *planner.LockedError.
func (e *Engine) LockInvocation(ctx context.Context, scope planner.Scope, inv planner.Address, op string) (*Lock, error) {
	if inv == "" || inv.Invocation() != inv {
		return nil, fmt.Errorf("%q is not the address of one invocation", inv)
	}
	return e.lock(ctx, scope, inv, op)
}

// lock takes the scope's lock, or an invocation's when there is one.
func (e *Engine) lock(ctx context.Context, scope planner.Scope, inv planner.Address, op string) (*Lock, error) {
	l := &Lock{engine: e, name: objectName(scope, "lock"), what: "the scope " + scope.String()}
	kind := kindLock
	if inv != "" {
		l.name, l.what, kind = objectName(scope, inv, "lease"), string(inv), kindLease
	}
	if err := e.take(ctx, l, scope, inv, kind, op); err != nil {
		return nil, err
	}
	return l, nil
}

// take makes the container that is the lock l, or takes it over from a dead holder.
func (e *Engine) take(ctx context.Context, l *Lock, scope planner.Scope, inv planner.Address, kind planner.Kind, op string) error {
	holder, err := thisProcess("/proc", e.options)
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.what, err)
	}
	holder.Operation, holder.Created = op, e.options.Now()
	labels := lockLabels(scope, inv, kind, holder)
	labels[labelLockClaim] = newClaim()
	// Each turn ends with the lock, with its holder's name, or with a dead holder less; but an engine takes its
	// time to make or remove one, and meanwhile the name is taken by what is not there yet, or is still.
	const turns = int(removalTime / settleTime)
	for turn := 0; turn < turns; turn++ {
		if turn > 1 {
			if err := pause(ctx, settleTime); err != nil {
				return err
			}
		}
		holder.ID, err = e.claim(ctx, l.name, labels)
		if err == nil {
			l.info = holder
			return nil
		}
		if !errdefs.IsConflict(err) {
			return fmt.Errorf("lock %s: %w", l.what, err)
		}
		other, err := e.lockNamed(ctx, l.name, scope, kind)
		switch {
		case errdefs.IsNotFound(err):
			continue // released in between
		case err != nil:
			return fmt.Errorf("lock %s: %w", l.what, err)
		case !isDead("/proc", holder, other):
			return &planner.LockedError{What: l.what, Info: other}
		}
		// By the ID that was seen: somebody else may have taken it over by now, and theirs must stay.
		if err := e.removeLock(ctx, other.ID); err != nil {
			return fmt.Errorf("take over the lock of %s: %w", l.what, err)
		}
	}
	return fmt.Errorf("lock %s: the engine did not make room for it within %s; try again", l.what, removalTime)
}

// lockNamed reads the lock that has a name. A container of that name which is no such lock is in
// nobody's way but ours, and is not ours to remove.
func (e *Engine) lockNamed(ctx context.Context, name string, scope planner.Scope, kind planner.Kind) (planner.LockInfo, error) {
	v, err := e.inspect(ctx, "/containers/"+url.PathEscape(name)+"/json")
	if err != nil {
		return planner.LockInfo{}, err
	}
	labels := labelsOf(treeLabels(v))
	id, _ := readIdentity(labels)
	if id.scope != scope || id.kind != kind || treeName(v) != name {
		return planner.LockInfo{}, fmt.Errorf("a container named %s (%s) is there that is no lock of sandplan's; rename or remove it",
			name, shortID(treeID(v)))
	}
	return readLock(treeID(v), labels), nil
}

func (e *Engine) removeLock(ctx context.Context, id string) error {
	err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{})
	// Conflict: somebody else is removing it just now.
	if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return err
}

// Info says who holds the lock: this process.
func (l *Lock) Info() planner.LockInfo { return l.info }

// Check makes sure that the lock is still held: "docker container prune" removes locks like any other
// container that does not run.
func (l *Lock) Check(ctx context.Context) error {
	v, err := l.engine.inspect(ctx, "/containers/"+l.info.ID+"/json")
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: the container %s that locks %s was removed while %s worked (docker container prune does that)",
			planner.ErrLockLost, shortID(l.info.ID), l.what, l.info.Operation)
	}
	if err != nil {
		return fmt.Errorf("look at the lock of %s: %w", l.what, err)
	}
	if name := treeName(v); name != l.name {
		return fmt.Errorf("%w: the container %s that locks %s was renamed to %s", planner.ErrLockLost, shortID(l.info.ID), l.what, name)
	}
	return nil
}

// Release gives the lock back. Releasing a lost lock is no error: there is nothing to give back.
func (l *Lock) Release(ctx context.Context) error {
	if err := l.engine.removeLock(ctx, l.info.ID); err != nil {
		return fmt.Errorf("unlock %s: %w", l.what, err)
	}
	if l.info.Operation != operationDestroy {
		return nil
	}
	img, err := newLockImage(l.engine.info.Arch)
	if err != nil {
		return err
	}
	// Another scope's lock, a container of it, keeps it there.
	return removeOwnImage(ctx, l.engine.cli, img.ID)
}

// ForceUnlock removes a lock or a lease whoever holds it, by the ID that a *planner.LockedError shows
// (its first 12 digits are enough).
func (e *Engine) ForceUnlock(ctx context.Context, id string) error {
	if len(id) < 12 {
		return fmt.Errorf("%q is not the ID of a lock: give at least its first 12 digits", id)
	}
	v, err := e.inspect(ctx, "/containers/"+url.PathEscape(id)+"/json")
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("there is no lock %s", id)
	}
	if err != nil {
		return fmt.Errorf("look at lock %s: %w", id, err)
	}
	// The engine also finds containers by name.
	if full := treeID(v); len(full) < len(id) || full[:len(id)] != id {
		return fmt.Errorf("%q is a name and not the ID of a lock", id)
	}
	owner, ok := readIdentity(labelsOf(treeLabels(v)))
	if ok = ok && isLock(owner.kind) || owner.kind == kindRemoval; !ok || treeStatus(v) != planner.StatusCreated && engineStatus(v) != "removing" {
		return fmt.Errorf("container %s is not a lock of sandplan's", shortID(treeID(v)))
	}
	if err := e.removeLock(ctx, treeID(v)); err != nil {
		return fmt.Errorf("remove lock %s: %w", shortID(treeID(v)), err)
	}
	return nil
}

// leases are those of the scope's invocations that this look found.
func (l *look) leases() []planner.Lease {
	var out []planner.Lease
	self, err := thisProcess("/proc", l.engine.options)
	for _, v := range l.listed[listContainers] {
		labels := labelsOf(treeLabels(v))
		id, ok := readIdentity(labels)
		if !ok || id.scope != l.scope || id.kind != kindLease {
			continue
		}
		info := readLock(treeID(v), labels)
		out = append(out, planner.Lease{Invocation: id.address, Info: info, Live: err != nil || !isDead("/proc", self, info)})
	}
	return out
}

// dropDeadLeases removes leases whose holders died, so that a destroy leaves nothing behind.
func (e *Engine) dropDeadLeases(ctx context.Context, scope planner.Scope) error {
	all, err := e.list(ctx, listContainers, url.Values{"all": {"1"}, "filters": {scopeFilter(scope)}})
	if err != nil {
		return err
	}
	l := &look{engine: e, scope: scope, listed: map[listName][]tree{listContainers: all}}
	for _, lease := range l.leases() {
		if lease.Live {
			continue
		}
		if err := e.removeLock(ctx, lease.Info.ID); err != nil {
			return fmt.Errorf("remove the lease of %s: %w", lease.Invocation, err)
		}
	}
	return nil
}

func lockLabels(scope planner.Scope, inv planner.Address, kind planner.Kind, i planner.LockInfo) map[string]string {
	return map[string]string{
		labelSchema:        planner.Schema,
		labelProject:       scope.Project,
		labelWorkspace:     scope.Workspace,
		labelAddress:       string(inv),
		labelKind:          string(kind),
		labelLockOperation: i.Operation,
		labelLockWho:       i.Who,
		labelLockBoot:      i.BootID,
		labelLockPIDNS:     i.PIDNS,
		labelLockPID:       strconv.Itoa(i.PID),
		labelLockStart:     strconv.FormatUint(i.StartTime, 10),
		labelLockVersion:   i.Version,
		labelLockTime:      i.Created.UTC().Format(time.RFC3339),
	}
}

// readLock reads labels; what cannot be read stays zero, and such a holder counts as alive.
func readLock(id string, labels map[string]string) planner.LockInfo {
	i := planner.LockInfo{ID: id, Operation: labels[labelLockOperation], Who: labels[labelLockWho],
		BootID: labels[labelLockBoot], PIDNS: labels[labelLockPIDNS], Version: labels[labelLockVersion]}
	i.PID, _ = strconv.Atoi(labels[labelLockPID])
	i.StartTime, _ = strconv.ParseUint(labels[labelLockStart], 10, 64)
	i.Created, _ = time.Parse(time.RFC3339, labels[labelLockTime])
	return i
}

// thisProcess is the holder that this process would be.
func thisProcess(proc string, o Options) (planner.LockInfo, error) {
	i := planner.LockInfo{Who: o.Who, Version: o.Version, PID: os.Getpid()}
	var err error
	if i.BootID, i.PIDNS, err = machine(proc); err != nil {
		return i, err
	}
	i.StartTime, _, err = processStart(proc, "self")
	return i, err
}
