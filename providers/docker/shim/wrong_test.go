package shim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// wrong is one container with exactly one thing that is not as declared.
type wrong struct {
	do     func(t *testing.T, l *lab, b *box)
	check  string // that must fail
	detail string // part of what it says
	reason string
}

// Whoever starts a container that is not as declared, by whatever way and however late, gets a report
// that names it, and no command. That the command did not run is seen on the host: it would have
// written a file and printed a line.
func TestNothingRunsInAWrongSandbox(t *testing.T) {
	l := engineLab(t)
	for group, cases := range map[string]map[string]wrong{
		"network": wrongNetworks, "mounts": wrongMounts, "process": wrongProcesses, "limits": wrongLimits,
	} {
		for name, c := range cases {
			t.Run(group+"/"+name, func(t *testing.T) {
				b := agentBox(t, l, "write=/work/marker:x", "say=executed")
				c.do(t, l, b)
				b.verifyNothingRan(t, l, c)
			})
		}
	}
}

func TestNothingRunsInAWrongRunner(t *testing.T) {
	l := engineLab(t)
	for name, c := range wrongRunners {
		t.Run(name, func(t *testing.T) {
			b := runnerBox(t, l, "write=/work/marker:x", "say=executed")
			c.do(t, l, b)
			b.verifyNothingRan(t, l, c)
		})
	}
}

func (b *box) verifyNothingRan(t *testing.T, l *lab, c wrong) {
	t.Helper()
	o := b.run(t, l)
	if _, err := os.Lstat(filepath.Join(b.worktree, "marker")); err == nil || strings.Contains(o.out, "executed") {
		t.Errorf("the command ran (%s)", c.reason)
	}
	if o.report == nil {
		t.Fatalf("no report; stderr %q", o.err)
	}
	found := false
	for _, f := range o.report.Failed() {
		found = found || f.Name == c.check && strings.Contains(f.Detail, c.detail)
	}
	if !found {
		t.Errorf("failed checks %+v, want %s with %q (%s)", o.report.Failed(), c.check, c.detail, c.reason)
	}
	if o.exit == nil || o.exit.By != wire.ByShim || o.exit.Cause != wire.CauseProof || o.code != 121 {
		t.Errorf("it ended with %+v and code %d (%s)", o.exit, o.code, c.reason)
	}
}

// inside runs a program of this machine in the network namespace of a container.
func inside(l *lab, id string, args ...string) error {
	info, err := l.cli.ContainerInspect(context.Background(), id)
	if err != nil {
		return err
	}
	args = append([]string{"-t", fmt.Sprint(info.State.Pid), "-n"}, args...)
	if b, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("nsenter %v: %w: %s", args, err, b)
	}
	return nil
}

// secondNetwork makes one more network, for as long as the test runs.
func secondNetwork(t *testing.T, l *lab, isolated bool) string {
	t.Helper()
	id, err := l.network(context.Background(), "second", "10.234.0.8/29", isolated)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.remove(t, testName+"neighbour")
		// A container that was on it may be on its way out still.
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			err := l.cli.NetworkRemove(context.Background(), id)
			if err == nil {
				return
			}
			if time.Since(began) > soon {
				t.Error(err)
				return
			}
		}
	})
	return id
}

var wrongNetworks = map[string]wrong{
	"second network": {func(t *testing.T, l *lab, b *box) {
		second := secondNetwork(t, l, false)
		b.before = func(l *lab, id string) error { return l.cli.NetworkConnect(context.Background(), second, id, nil) }
	}, "net.interfaces", "eth1", "docker network connect on a created container raises no event"},
	"network with a gateway": {func(t *testing.T, l *lab, b *box) {
		open := secondNetwork(t, l, false)
		if err := l.startProxy(context.Background(), "neighbour", open, "10.234.0.10", vendorHost); err != nil {
			t.Fatal(err)
		}
		b.host.NetworkMode, b.net = container.NetworkMode(open), endpoint(open, "10.234.0.11")
		b.shim.Network.Address, b.shim.Network.Proxy = "10.234.0.11/29", "10.234.0.10:3128"
	}, "net.neighbours", "10.234.0.9 answers on eth0", "20.10 starts a container on another network of the same name"},
	"host answers on the bridge": {func(t *testing.T, _ *lab, _ *box) {
		if err := setBridge("net", "0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := setBridge("net", "1"); err != nil {
				t.Error(err)
			}
		})
	}, "net.neighbours", " answers on eth0 with ", "an internal bridge without address still answers ARP for docker0"},
	"somebody else on the network": {func(t *testing.T, l *lab, _ *box) {
		if err := l.startProxy(context.Background(), "neighbour", l.net, "10.234.0.5"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.remove(t, testName+"neighbour") })
	}, "net.neighbours", "10.234.0.5 answers on eth0", "a container with another way out"},
	"route": {func(_ *testing.T, _ *lab, b *box) {
		b.started = func(l *lab, id string) error {
			return inside(l, id, "ip", "route", "add", "198.51.100.0/24", "via", "10.234.0.5")
		}
	}, "net.routes", "198.51.100.0/24 via 10.234.0.5 on eth0", "somebody with root on the host"},
	"route by way of the proxy": {func(_ *testing.T, _ *lab, b *box) {
		b.started = func(l *lab, id string) error {
			return inside(l, id, "ip", "route", "replace", "default", "via", proxyAddr)
		}
	}, "net.routes", "0.0.0.0/0 via 10.234.0.2", "the proxy's kernel forwards packets"},
	"other address": {func(_ *testing.T, l *lab, b *box) { b.net = endpoint(l.net, "10.234.0.4") },
		"net.interfaces", "10.234.0.4/29], declared one with 10.234.0.3/29", "the proxy accepts only the declared one"},
	"no network": {func(_ *testing.T, _ *lab, b *box) { b.net, b.host.NetworkMode = nil, "none" },
		"net.interfaces", "declared one with 10.234.0.3/29", "a probe that finds nothing proves nothing"},
	"host's network": {func(_ *testing.T, _ *lab, b *box) {
		b.net, b.host.NetworkMode, b.host.Sysctls = nil, "host", nil
	}, "net.interfaces", "docker0", "no network namespace at all"},
	"proxy lets all through": {func(_ *testing.T, _ *lab, b *box) { b.shim.Network.Refused = vendorHost },
		"net.refused", "the proxy answers 200, must be 403", "an impostor at the proxy's address"},
	"proxy refuses the vendor": {func(_ *testing.T, _ *lab, b *box) { b.shim.Network.Hosts = []string{"other.test:443"} },
		"net.vendor", "the proxy answers 403 (refused), must be 200", "another invocation's proxy"},
	"proxy absent": {func(_ *testing.T, _ *lab, b *box) { b.shim.Network.Proxy = "10.234.0.5:3128" },
		"net.vendor", "no route to host", "it would fail later anyway, and slowly"},
	"engine's resolver leads elsewhere": {func(_ *testing.T, _ *lab, b *box) { b.host.DNS = []string{"192.0.2.53"} },
		"dns.refused", "127.0.0.11", "resolv.conf looks the same"},
	"search domain": {func(_ *testing.T, _ *lab, b *box) { b.host.DNSSearch = []string{"evil.example"} },
		"dns.resolv_conf", "search evil.example", "names turn into others"},
	"extra host": {func(_ *testing.T, _ *lab, b *box) { b.host.ExtraHosts = []string{"vendor.test:192.0.2.1"} },
		"dns.hosts", "192.0.2.1", "names without a lookup"},
}

var wrongMounts = map[string]wrong{
	".git writable": {func(_ *testing.T, _ *lab, b *box) { b.host.Mounts[1].ReadOnly = false },
		"mount./work/.git", "could be written, declared read-only", "a hook planted there runs on the host"},
	".git not covered": {func(_ *testing.T, _ *lab, b *box) { b.host.Mounts = b.host.Mounts[:1] },
		"mount./work/.git", "not there", "the same"},
	"worktree writable": {func(_ *testing.T, _ *lab, b *box) { b.shim.Mounts[0].ReadOnly = true },
		"mount./work", "could be written, declared read-only", "a review that can change what it reviews"},
	"worktree read-only": {func(_ *testing.T, _ *lab, b *box) { b.host.Mounts[0].ReadOnly = true },
		"mount./work", "declared writable", "as declared in both directions"},
	"undeclared mount": {func(_ *testing.T, _ *lab, b *box) {
		b.host.Mounts = append(b.host.Mounts, mount.Mount{Type: mount.TypeBind, Source: "/etc", Target: "/host-etc", ReadOnly: true})
	}, "mount./host-etc", "is not declared", "a view of the host"},
	"mount over a declared one": {func(_ *testing.T, _ *lab, b *box) {
		b.host.Mounts = append(b.host.Mounts, mount.Mount{Type: mount.TypeBind, Source: b.worktree + "/sub", Target: "/work/sub"})
	}, "mount./work/sub", "is not declared", "a mount below the worktree"},
	"engine's socket": {func(_ *testing.T, _ *lab, b *box) {
		b.host.Mounts = append(b.host.Mounts, mount.Mount{Type: mount.TypeBind, Source: "/var/run/docker.sock", Target: "/run/docker.sock"})
	}, "mount./run/docker.sock", "is not declared", "root on the host"},
	"anonymous volume": {func(_ *testing.T, _ *lab, b *box) { b.config.Volumes = map[string]struct{}{"/data": {}} },
		"mount./data", "is not declared", "a VOLUME of the image that nothing covers"},
	"root file system writable": {func(_ *testing.T, _ *lab, b *box) { b.host.ReadonlyRootfs = false },
		"mount./", "is writable", "a place to keep things, and /etc to change"},
	"tmpfs executable": {func(_ *testing.T, _ *lab, b *box) { b.host.Tmpfs["/tmp"] = "rw,nosuid,nodev,size=8388608,exec" },
		"mount./tmp", "declared noexec", "programs from nowhere"},
	"tmpfs too large": {func(_ *testing.T, _ *lab, b *box) { b.host.Tmpfs["/tmp"] = "rw,nosuid,nodev,noexec,size=16777216" },
		"mount./tmp", "holds 16777216 bytes", "memory of the host"},
	"tmpfs of somebody else": {func(_ *testing.T, _ *lab, b *box) {
		b.host.Tmpfs["/run/sandplan"] = "rw,nosuid,nodev,noexec,size=8388608"
	},
		"mount./run/sandplan", "belongs to 0:0", "credentials that others read"},
	"proc writable": {func(_ *testing.T, _ *lab, b *box) { b.host.ReadonlyPaths = []string{"/proc/bus"} },
		"proc.readonly", "/proc/sys", "the kernel's switches"},
	"proc not hidden": {func(_ *testing.T, _ *lab, b *box) { b.host.MaskedPaths = []string{"/proc/acpi"} },
		"proc.masked", "/proc/keys", "what engines hide from every container"},
	"socket in the worktree": {func(t *testing.T, _ *lab, b *box) {
		ln, err := net.Listen("unix", filepath.Join(b.worktree, "sub", "s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
	}, "tree./work", "/work/sub/s is a socket", "two-way to a process on the host"},
	"FIFO in the worktree": {func(t *testing.T, _ *lab, b *box) {
		if err := syscall.Mkfifo(filepath.Join(b.worktree, "f"), 0o666); err != nil {
			t.Fatal(err)
		}
	}, "tree./work", "/work/f is a FIFO", "one-way to a process on the host"},
	"device in the worktree": {func(t *testing.T, _ *lab, b *box) {
		if err := syscall.Mknod(filepath.Join(b.worktree, "d"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
			t.Fatal(err)
		}
	}, "tree./work", "/work/d is a device", "hardware"},
}

var wrongProcesses = map[string]wrong{
	"capability": {func(_ *testing.T, _ *lab, b *box) { b.host.CapAdd = []string{"NET_RAW"} },
		"proc.cap_bnd", "must be empty", "what a set-uid program could regain"},
	"new privileges": {func(_ *testing.T, _ *lab, b *box) { b.host.SecurityOpt = nil },
		"proc.no_new_privs", "is 0, must be 1", "set-uid programs of the image"},
	"seccomp unconfined": {func(_ *testing.T, _ *lab, b *box) { b.seccomp = "unconfined" },
		"proc.seccomp", "mode is 0", "the whole kernel"},
	"engine's own profile": {func(_ *testing.T, _ *lab, b *box) { b.seccomp = "" },
		"seccomp.denied", "fchmod(set-uid) reaches the kernel", "mode 2 says nothing of what is filtered"},
	"profile without set-id rules": {func(t *testing.T, _ *lab, b *box) { b.seccomp = bareModes(t) },
		"seccomp.denied", "fchmodat(set-uid) reaches the kernel", "an engine that ignores conditions"},
	"user": {func(_ *testing.T, _ *lab, b *box) { b.config.User = fmt.Sprintf("%d:%d", testUID+1, testUID) },
		"proc.uid", "declared 4242", "files of another owner"},
	"root": {func(_ *testing.T, _ *lab, b *box) { b.config.User = "0:0" },
		"proc.uid", "declared 4242", "root in the container is root on its files"},
	"group": {func(_ *testing.T, _ *lab, b *box) { b.config.User = fmt.Sprintf("%d:%d", testUID, testUID+1) },
		"proc.gid", "declared 4242", "files of another group"},
	"supplementary group": {func(_ *testing.T, _ *lab, b *box) { b.host.GroupAdd = []string{"0"} },
		"proc.groups", "declared none but 4242", "the group of the engine's socket"},
	"environment": {func(_ *testing.T, _ *lab, b *box) { b.config.Env = []string{"GODEBUG=netdns=cgo"} },
		"proc.env", "GODEBUG", "it changes what the shim itself does"},
	"device": {func(_ *testing.T, _ *lab, b *box) {
		b.host.Devices = []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/kvm", CgroupPermissions: "rwm"}}
	}, "devices", "/dev/kvm is not declared", "devices are no mounts"},
	"exec before the challenge": {func(_ *testing.T, _ *lab, b *box) {
		b.started = func(l *lab, id string) error {
			e, err := l.cli.ContainerExecCreate(context.Background(), id, container.ExecOptions{Cmd: []string{"/agent", "sleep=30s"}})
			if err != nil {
				return err
			}
			return l.cli.ContainerExecStart(context.Background(), e.ID, container.ExecStartOptions{Detach: true})
		}
	}, "proc.alone", "other processes", "somebody is inside already"},
}

// bareModes is the agent's profile as an engine would have it that does not know conditions.
func bareModes(t *testing.T) string {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(docker.AgentSeccomp()), &p); err != nil {
		t.Fatal(err)
	}
	for _, r := range p["syscalls"].([]any) {
		if r := r.(map[string]any); fmt.Sprint(r["names"]) == "[fchmodat fchmodat2 mknodat]" {
			delete(r, "args")
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var wrongLimits = map[string]wrong{
	"no memory limit": {func(_ *testing.T, _ *lab, b *box) { b.host.Memory, b.host.MemorySwap = 0, 0 },
		"limits.memory", "memory -1, declared 134217728", "it starves the host"},
	"more memory": {func(_ *testing.T, _ *lab, b *box) { b.host.Memory, b.host.MemorySwap = 256<<20, 256<<20 },
		"limits.memory", "memory 268435456, declared 134217728", "docker update"},
	"swap": {func(_ *testing.T, _ *lab, b *box) { b.host.MemorySwap = -1 },
		"limits.swap", "declared none", "it starves the host's disk"},
	"no process limit": {func(_ *testing.T, _ *lab, b *box) { b.host.PidsLimit = nil },
		"limits.pids", "processes -1, declared 64", "a fork bomb"},
	"more CPU": {func(_ *testing.T, _ *lab, b *box) { b.host.NanoCPUs = 2e9 },
		"limits.cpus", "CPUs 2.000, declared 1.500", "docker update"},
}

var wrongRunners = map[string]wrong{
	"a network": {func(_ *testing.T, l *lab, b *box) {
		b.net, b.host.NetworkMode = endpoint(l.net, agentAddr), container.NetworkMode(l.net)
	}, "net.interfaces", "declared no network", "HostConfig says none, NetworkSettings has one"},
	"resolver": {func(_ *testing.T, _ *lab, b *box) { b.host.DNS = []string{"192.0.2.53"} },
		"dns.resolv_conf", "declared [127.0.0.1]", "lookups by another way"},
	"unix sockets": {func(_ *testing.T, _ *lab, b *box) { b.seccomp = docker.AgentSeccomp() },
		"seccomp.denied", "socket(AF_UNIX) is allowed", "a socket in the worktree is a network"},
}

// Process 1 of the host's PID namespace is not the shim: it must not go on, and above all not kill
// every process that it sees.
func TestHostsPIDNamespaceIsRefused(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "write=/work/marker:x")
	b.host.PidMode = "host"
	o := b.run(t, l)
	if _, err := os.Lstat(filepath.Join(b.worktree, "marker")); err == nil || o.report != nil || o.code != 125 {
		t.Errorf("code %d, report %+v", o.code, o.report)
	}
	if !strings.Contains(o.err, "only as the first process") {
		t.Errorf("stderr %q", o.err)
	}
}
