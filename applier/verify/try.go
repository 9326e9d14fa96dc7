package verify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// proxyPort is where every proxy listens.
const proxyPort = 3128

// sightPatience is how long the canary may take to tell what it has seen.
const sightPatience = 20 * time.Second

// secretPrefix begins the second invocation's credentials: what follows is known to nobody else.
func (v *verification) secretPrefix() string { return "sandplan-verify-secret-" + v.Session + "-" }

// fileName is that of files that a probe tries to leave.
func (v *verification) fileName(run int) string {
	return "sandplan-verify-" + v.Session + "-" + strconv.Itoa(run)
}

// job is what all probes that try something are told.
func (v *verification) job(role string, run int) (probe.Job, error) {
	host, err := v.HostAddresses()
	return probe.Job{
		Role: role, Token: v.token(run), TCP: v.canary.ready.TCP, UDP: v.canary.ready.UDP, HostAddresses: host,
		Name: v.fileName(run), HostFile: v.places.file, HostSocket: v.places.socket, SecretPrefix: v.secretPrefix(),
		HostPID: v.PID, HostStart: probe.StartOf(v.PID),
	}, err
}

// tell hands a job to a probe.
func tell(p Probe, job probe.Job) error {
	b, err := json.Marshal(job)
	if err != nil {
		return err
	}
	return p.Tell(append(b, '\n'))
}

// tryOpen tries everything without the boundary, and waits until the canary has seen what it has to see.
// The container is gone when it returns: nothing but proxies may be on the uplink.
func (v *verification) tryOpen(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network, err := v.id(ctx, planner.AddrUplink)
	if err != nil {
		return err
	}
	job, err := v.job(probe.RoleAttempt, runOpen)
	if err != nil {
		return err
	}
	v.open = newCollector()
	said := &tail{}
	dns := v.token(runOpen).For("dns-engine").Outside()
	p, err := v.Control(ctx, v.canaries, Open{Network: network, DNS: dns, Tree: v.places.tree, ReadOnly: v.places.readOnly, Shown: v.places.shown}, v.open, said)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(ctx)) }()
	job.Open, job.Memories, job.PIDs, job.Memory = true, []probe.Memory{{Path: "/tmp", Size: 1 << 20}}, 64, 64<<20
	var watched []probe.Token
	for _, a := range probe.Attempts() {
		if a.Control != probe.ControlOpen {
			continue
		}
		job.Only = append(job.Only, a.ID)
		if a.Where == probe.AtHost {
			watched = append(watched, job.Token.For(a.ID))
		}
	}
	if err := tell(p, job); err != nil {
		return err
	}
	if err := v.open.until(ctx, p.Done(), func(c *collector) bool { return c.done }); err != nil {
		return fmt.Errorf("%w%s", err, said.text())
	}
	v.openLeft = v.places.left(v.places.tree, v.fileName(runOpen), v.token(runOpen))
	// What does not come within this time does not come, and its attempts are not proven.
	short, enough := context.WithTimeout(ctx, sightPatience)
	defer enough()
	own := &evidence{networks: v.networks()}
	_ = v.canary.until(short, nil, func(c *collector) bool {
		return !slices.ContainsFunc(watched, func(t probe.Token) bool {
			return !slices.ContainsFunc(c.sightings, func(s probe.Sighting) bool { return s.Token == t && own.mine(s) })
		})
	})
	return ctx.Err()
}

// id is the engine ID of an object of the scope.
func (v *verification) id(ctx context.Context, a planner.Address) (string, error) {
	snap, err := v.Engine.Observe(ctx, v.scope)
	if err != nil {
		return "", err
	}
	o, ok := snap.Object(a)
	if !ok {
		return "", fmt.Errorf("%s does not exist", a)
	}
	return o.ID, nil
}

// running is a probe in a sandbox, run as any agent is.
type running struct {
	*collector
	said   *tail
	cancel context.CancelFunc
	over   chan struct{} // closed when result is set
	result launch.Result
}

// end asks it to end and waits for that.
func (r *running) end() launch.Result {
	r.cancel()
	return r.wait()
}

func (r *running) wait() launch.Result {
	<-r.over
	return r.result
}

// launch starts a probe in the place of an invocation's agent, or of a runner.
func (v *verification) launch(ctx context.Context, b box, job probe.Job) (*running, error) {
	inv := b.inv
	command, err := seal(v.declared)(v.spec, inv.Address, b.runner)
	if err != nil {
		return nil, err
	}
	prompt, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{collector: newCollector(), said: &tail{}, cancel: cancel, over: make(chan struct{})}
	addr := planner.Address(inv.Address)
	p := launch.Params{
		Scope: v.scope, Origin: v.Origin, Version: v.Version, Invocation: inv, Runner: b.runner, Timeout: b.timeout(v.spec), Output: inv.Limits.Output.V,
		Command: command, Engine: v.Engine, Prompt: prompt, HostAddresses: routed(job.HostAddresses), Stdout: r.collector, Stderr: r.said, Now: v.Now, Kill: v.Kill,
		Compile:   func(ctx context.Context, s planner.Snapshot) (launch.Compiled, error) { return v.compile(ctx, s) },
		LockScope: func(ctx context.Context) (launch.Lock, error) { return v.LockScope(ctx, v.scope, "verify") },
		LockLease: func(ctx context.Context) (launch.Lock, error) { return v.LockLease(ctx, v.scope, addr) },
		Apply: func(ctx context.Context, c launch.Compiled, p *planner.Plan, l launch.Lock) error {
			return v.Apply(ctx, c.(Compiled), p, l)
		},
		Credentials: func() (map[string][]byte, error) { return v.secrets(command, job.Role) },
	}
	go func() {
		r.result = v.Launch(ctx, p)
		close(r.over)
		cancel()
	}()
	return r, nil
}

// routed are the addresses that are more than one link's: of those the shim asks.
func routed(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err != nil || a.IsLinkLocalUnicast()
	})
}

// secrets stand in for credentials: nothing that is worth anything comes near a probe. Only the second
// invocation's can be recognised.
func (v *verification) secrets(c policy.Command, role string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, cred := range c.Credentials() {
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		text := hex.EncodeToString(b[:])
		if role == probe.RoleSecond {
			text = v.secretPrefix() + text
		}
		out[cred.Name] = []byte(text)
	}
	return out, nil
}

// network is the addressing of an invocation.
func (v *verification) network(inv hclspec.Invocation) planner.Subnet {
	return v.compiled.Allocation().Networks[planner.Address(inv.Address)]
}

// networks are all that the verification has.
func (v *verification) networks() []netip.Prefix {
	out := []netip.Prefix{v.compiled.Allocation().Uplink.Prefix}
	for _, n := range v.compiled.Allocation().Networks {
		out = append(out, n.Prefix)
	}
	return out
}

func at(a netip.Addr) string { return netip.AddrPortFrom(a, proxyPort).String() }

// startSecond starts the second invocation, and waits until it listens and has shown that it is reachable
// from its own side.
func (v *verification) startSecond(ctx context.Context) error {
	job, err := v.job(probe.RoleSecond, runSecond)
	if err != nil {
		return err
	}
	own := v.network(v.secondInv)
	job.Proxy, job.SecondAgent = at(own.Proxy), own.Agent.String()
	r, err := v.launch(ctx, box{inv: v.secondInv}, job)
	if err != nil {
		return err
	}
	v.second = r
	ended := make(chan error, 1)
	go func() {
		if res := r.wait(); res.Decision != nil {
			ended <- res.Decision
			return
		}
		ended <- fmt.Errorf("it ended by itself%s", r.said.text())
	}()
	limited, enough := context.WithTimeout(ctx, launch.StartLimit+patience)
	defer enough()
	return r.until(limited, ended, func(c *collector) bool { return c.ready != nil })
}

// attempted is one subject after its probe has ended.
type attempted struct {
	Subject
	evidence *evidence
}

// subject runs the probe in one sandbox.
func (v *verification) subject(ctx context.Context, b box, run int) (attempted, error) {
	inv, began := b.inv, v.Now()
	job, err := v.subjectJob(b, run)
	if err != nil {
		return attempted{}, err
	}
	r, err := v.launch(ctx, b, job)
	if err != nil {
		return attempted{}, err
	}
	res := r.wait()
	v.fence(ctx)
	e := &evidence{
		token: v.token(run), bridge: v.bridge(b), networks: v.networks(), applies: v.applies(b),
		subject: r.collector,
		canary:  v.canary.collector, open: v.open, second: v.second.collector,
		openToken: v.token(runOpen), hostToken: v.token(runHost), secondToken: v.token(runSecond),
		subjectFiles: v.places.left(inv.Worktree.V, v.fileName(run), v.token(run)),
		openFiles:    v.openLeft, guarded: res.By == launch.ByAgent, secret: v.places.secret,
	}
	out := Subject{Addr: b.addr(), Decision: res.Decision, Took: v.Now().Sub(began)}
	if res.Decision == nil && res.Code != 0 {
		out.Decision = &launch.Decision{Code: launch.CodeProof, Reason: fmt.Sprintf("the probe ended with %d%s", res.Code, r.said.text())}
	}
	if res.Unsettled != nil {
		v.Tell(fmt.Sprintf("%s: %v", b.addr(), res.Unsettled))
	}
	return attempted{out, e}, nil
}

// derived are invocations as they are verified.
func (v *verification) derived(declared []hclspec.Invocation) []hclspec.Invocation {
	out := make([]hclspec.Invocation, len(declared))
	for i, d := range declared {
		out[i] = v.spec.Invocations[slices.IndexFunc(v.spec.Invocations, func(s hclspec.Invocation) bool { return s.Address == d.Address })]
	}
	return out
}

// noBridge is where the packets of a sandbox without a network may be seen: nowhere.
const noBridge = "none"

func (v *verification) bridge(b box) string {
	if b.runner != "" {
		return noBridge
	}
	return v.compiled.Bridge(planner.Address(b.inv.Address))
}

func (v *verification) subjectJob(b box, run int) (probe.Job, error) {
	inv := b.inv
	own, second := v.network(inv), v.network(v.secondInv)
	job, err := v.job(probe.RoleAttempt, run)
	if b.runner == "" {
		job.Proxy, job.ProxyUplink = at(own.Proxy), at(own.Uplink)
		job.Declared = net.JoinHostPort(v.declared.Name, strconv.Itoa(v.declared.Port))
	}
	job.SecondAgent, job.SecondProxies = second.Agent.String(), []string{at(second.Proxy), at(second.Uplink)}
	job.EngineSocket, job.PIDs, job.Memory = v.EngineSocket, inv.Limits.PIDs.V, inv.Limits.Memory.V
	memories := v.compiled.Memories(b.container())
	for _, path := range slices.Sorted(maps.Keys(memories)) {
		job.Memories = append(job.Memories, probe.Memory{Path: path, Size: memories[path]})
	}
	return job, err
}

// applies says whether a sandbox has what an attempt is about.
func (v *verification) applies(b box) func(probe.Needs) bool {
	inv := b.inv
	_, noGit := os.Lstat(filepath.Join(inv.Worktree.V, ".git"))
	return func(n probe.Needs) bool {
		switch n {
		case probe.NeedsReadOnly:
			return !v.writable(inv)
		case probe.NeedsGit:
			return noGit == nil
		case probe.NeedsProxy:
			return b.runner == ""
		}
		return true
	}
}

// log are the hosts that the second invocation's proxy was asked for. It is complete once that has ended.
func (v *verification) log() []string {
	egress := v.second.end().Egress
	return append(slices.Sorted(maps.Keys(egress.Refused)), slices.Sorted(maps.Keys(egress.Allowed))...)
}

func (v *verification) writable(inv hclspec.Invocation) bool {
	c, err := policy.Seal(v.spec, inv.Address)
	return err == nil && c.Writable()
}

// fence waits until the canary has told of everything that came before: what it is sent now comes last.
func (v *verification) fence(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sightPatience)
	defer cancel()
	t := v.token(runFence)
	v.fences++
	t.Attempt = v.fences & 0xff // an earlier one must not pass for this one
	conn, err := net.Dial("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(v.canary.ready.UDP)))
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(t.String()))
	packet := !v.canary.ready.Capture
	datagram := false
	_ = v.canary.until(ctx, nil, func(c *collector) bool {
		for _, s := range c.sightings {
			if s.Token == t {
				packet, datagram = packet || s.Interface != "", datagram || s.Interface == ""
			}
		}
		return packet && datagram
	})
	time.Sleep(200 * time.Millisecond) // a connection has a reader of its own, which nothing comes after
}
