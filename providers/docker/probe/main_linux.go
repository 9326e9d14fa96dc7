package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

const exitUsage = 125

// Main is the hidden subcommand "probe". Its job comes over standard input; what it has to say goes to
// stdout, one JSON line each. With an argument it is a child of itself that does one thing and ends.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return child(args, stdout)
	}
	var job Job
	if err := json.NewDecoder(stdin).Decode(&job); err != nil {
		fmt.Fprintln(stderr, "sandplan: probe: internal command; its job, as JSON on standard input:", err)
		return exitUsage
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "sandplan: probe:", err)
		return exitUsage
	}
	p := &prober{Job: job, self: self, out: &speaker{to: stdout}}
	switch job.Role {
	case RoleAttempt:
		p.attempt()
	case RoleSecond:
		err = p.second()
	case RoleCanary:
		err = p.canary(stdin)
	default:
		err = fmt.Errorf("no such role: %q", job.Role)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sandplan: probe:", err)
		return 1
	}
	return 0
}

// prober is one run of the program.
type prober struct {
	Job
	self  string // the path of the program, for children
	out   *speaker
	seen  once
	links links
}

// result is what came of an attempt.
type result struct {
	through bool
	absent  bool
	untried bool
	detail  string
}

func through(format string, args ...any) result {
	return result{through: true, detail: fmt.Sprintf(format, args...)}
}

func held(format string, args ...any) result { return result{detail: fmt.Sprintf(format, args...)} }

// tried is the result of a single call: without an error it went through.
func tried(what string, err error) result {
	switch {
	case err == nil:
		return through("%s succeeded", what)
	case isAbsent(err):
		return result{absent: true, detail: fmt.Sprintf("%s: %v", what, err)}
	}
	return held("%s: %v", what, err)
}

// first is the first result that went through, or all of them in one.
func first(results ...result) result {
	out := result{absent: len(results) > 0}
	for _, r := range results {
		if r.through {
			return r
		}
		out.absent = out.absent && r.absent
		if out.detail != "" && r.detail != "" {
			out.detail += "; "
		}
		out.detail += r.detail
	}
	return out
}

// atOnce are attempts that wait for answers which do not come, and disturb nobody: they run at the same
// time. The others run one after another, since some change what the next would find.
func (p *prober) atOnce() map[string]func() result {
	return map[string]func() result{
		"egress-tcp4": p.egressTCP, "egress-udp4": p.egressUDP, "egress-icmp4": p.egressICMP, "egress-ip6": p.egressIPv6,
		"host-tcp4": p.hostTCP, "host-udp4": p.hostUDP, "host-device": p.hostDevice, "host-icmp4": p.hostICMP, "host-tcp6": p.hostIPv6,
		"gateway": p.gateway, "host-abstract": p.hostAbstract, "host-socket": p.hostSocket,
		"dns-direct": p.dnsDirect, "dns-engine": p.dnsEngine,
		"proxy-name": p.proxyName, "proxy-port": p.proxyPort, "proxy-private": p.proxyPrivate, "proxy-metadata": p.proxyMetadata,
		"proxy-get": p.proxyGet, "proxy-sni": p.proxySNI, "proxy-no-sni": p.proxyNoSNI, "proxy-no-tls": p.proxyNoTLS, "proxy-uplink": p.proxyOnUplink,
		"second-agent": p.secondAgent, "second-proxy": p.secondProxy, "second-abstract": p.secondAbstract,
	}
}

func (p *prober) inTurn() map[string]func() result {
	return map[string]func() result{
		"second-secret": p.secondSecret, "vsock": p.vsock, "packet": p.packet, "raw": p.raw, "netlink": p.netlink,
		"mount": p.mount, "remount": p.remount, "unmount": p.unmount, "user-namespace": p.userNamespace, "unshare": p.unshare,
		"setns": p.setns, "keyctl": p.keyctl, "bpf": p.bpf, "userfaultfd": p.userfaultfd, "io-uring": p.ioUring, "perf": p.perf,
		"handle": p.handle, "mknod": p.mknod, "devices": p.devices, "capabilities": p.capabilities, "setuid": p.setuid,
		"set-id-file": p.setIDFile, "hostname": p.hostname, "sysctl": p.sysctl, "core-pattern": p.corePattern, "sysrq": p.sysrq,
		"trace": p.trace, "memory-of-guard": p.memoryOfGuard, "secrets-of-guard": p.secretsOfGuard, "host-processes": p.hostProcesses,
		"worktree-write": p.worktreeWrite, "git-write": p.gitWrite, "rootfs-write": p.rootfsWrite, "host-file": p.hostFile,
		"tmpfs-size": p.tmpfsSize, "pids": p.pids, "memory": p.memory, "kill-guard": p.killGuard,
	}
}

// attempt tries everything, and says what came of each as soon as it is known: the last ones may be the
// end of this process.
func (p *prober) attempt() {
	if p.Declared != "" {
		p.report("", p.declaredWay())
	}
	atOnce, inTurn := p.atOnce(), p.inTurn()
	var wg sync.WaitGroup
	for _, a := range p.attempts() {
		if try := atOnce[a.ID]; try != nil {
			wg.Go(func() { p.report(a.ID, guarded(try)) })
		}
	}
	wg.Wait()
	for _, a := range p.attempts() {
		if try := inTurn[a.ID]; try != nil {
			p.report(a.ID, guarded(try))
		}
	}
	p.out.say(Message{Done: true})
}

// attempts are those that this run is to make.
func (p *prober) attempts() []Attempt {
	all := Attempts()
	if len(p.Only) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(a Attempt) bool { return !slices.Contains(p.Only, a.ID) })
}

func (p *prober) report(id string, r result) {
	const most = 400 // of a detail: what is said of forty addresses says nothing more
	if len(r.detail) > most {
		r.detail = r.detail[:most] + "…"
	}
	p.out.say(Message{Outcome: &Outcome{ID: id, Through: r.through, Absent: r.absent, Untried: r.untried, Detail: r.detail}})
}

// guarded keeps one attempt that breaks from hiding the rest.
func guarded(try func() result) (r result) {
	defer func() {
		if broken := recover(); broken != nil {
			r = held("the attempt broke: %v", broken)
		}
	}()
	return try()
}

// untilTold waits until the program is asked to end.
func untilTold(limit time.Duration) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-asked:
	case <-time.After(limit):
	}
}
