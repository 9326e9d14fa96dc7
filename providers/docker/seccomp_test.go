package docker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// allowsBare reports whether a profile lets a call through whatever its arguments are.
func (p *seccompProfile) allowsBare(name string) bool {
	return slices.ContainsFunc(p.Syscalls, func(r seccompRule) bool {
		return r.Action == seccompAllow && len(r.Args) == 0 && slices.Contains(r.Names, name)
	})
}

func (p *seccompProfile) names(action string) map[string]bool {
	out := map[string]bool{}
	for _, r := range p.Syscalls {
		if r.Action == action {
			for _, n := range r.Names {
				out[n] = true
			}
		}
	}
	return out
}

func TestSeccompNamesNothingDangerous(t *testing.T) {
	never := map[string]string{
		"ptrace": "freezes and rewrites process 1", "process_vm_readv": "reads process 1", "process_vm_writev": "rewrites it",
		"pidfd_getfd": "takes its descriptors", "kcmp": "looks into it", "process_madvise": "acts on it",
		"keyctl": "keyrings have no namespace", "add_key": "keyrings", "request_key": "keyrings",
		"io_uring_setup": "system calls that no filter sees", "io_uring_enter": "the same",
		"unshare": "user namespaces", "setns": "other namespaces", "mount": "another view of files", "umount2": "uncovers .git",
		"move_mount": "mounts", "open_tree": "mounts", "fsopen": "mounts", "fsmount": "mounts", "mount_setattr": "mounts", "pivot_root": "mounts", "chroot": "another view of files",
		"bpf": "kernel surface", "perf_event_open": "kernel surface", "userfaultfd": "kernel surface", "open_by_handle_at": "leaves every mount",
		"init_module": "the kernel", "finit_module": "the kernel", "kexec_load": "the kernel", "reboot": "the host",
		"clone3": "flags behind a pointer", "openat2": "mode behind a pointer", "mq_open": "a way between containers",
		"swapon": "the host", "settimeofday": "the host's clock", "clock_settime": "the host's clock", "sethostname": "the host's name",
	}
	conditional := []string{"clone", "socket", "socketpair", "open", "openat", "creat", "chmod", "fchmod", "fchmodat",
		"fchmodat2", "mknod", "mknodat", "prlimit64", "setpriority", "sched_setscheduler", "sched_setaffinity", "personality"}
	for name, p := range map[string]*seccompProfile{"agent": agentProfile(true), "runner": agentProfile(false), "proxy": proxyProfile()} {
		if p.DefaultAction != seccompErrno {
			t.Errorf("%s: not an allow-list: %s", name, p.DefaultAction)
		}
		allowed := p.names(seccompAllow)
		for call, reason := range never {
			if allowed[call] {
				t.Errorf("%s allows %s (%s)", name, call, reason)
			}
		}
		for _, call := range conditional {
			if p.allowsBare(call) {
				t.Errorf("%s allows %s whatever its arguments", name, call)
			}
		}
		for call := range p.names(seccompErrno) {
			if allowed[call] {
				t.Errorf("%s both allows and denies %s", name, call)
			}
		}
	}
}

func TestSeccompRunnerHasNoUnixSockets(t *testing.T) {
	unix := func(p *seccompProfile) (sockets, datagramPairs bool) {
		for _, r := range p.Syscalls {
			if len(r.Args) == 0 || r.Args[0] != equal(0, afUnix) {
				continue
			}
			sockets = sockets || r.Names[0] == "socket"
			datagramPairs = datagramPairs || r.Names[0] == "socketpair" && r.Args[1] == masked(1, sockTypeMask, sockDgram)
		}
		return
	}
	if s, d := unix(agentProfile(true)); !s || !d {
		t.Errorf("agents: sockets %v, datagram pairs %v", s, d)
	}
	if s, d := unix(agentProfile(false)); s || d {
		t.Errorf("runners: sockets %v, datagram pairs %v: a path in the worktree is a way out", s, d)
	}
}

// Engines take a profile as a string and echo it; the row is the hash of its bytes. So the bytes must
// be the same in every process, and each call must stand in one place with one meaning.
func TestSeccompEncoding(t *testing.T) {
	for name, profile := range map[string]func() string{"agent": AgentSeccomp, "runner": RunnerSeccomp, "proxy": ProxySeccomp} {
		text := profile()
		if text != profile() || strings.ContainsAny(text, " \n") {
			t.Errorf("%s: not canonical", name)
		}
		var p seccompProfile
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p.encode() != text {
			t.Errorf("%s: reading and writing it changes it", name)
		}
		seen := map[string]bool{}
		for _, r := range p.Syscalls {
			if !slices.IsSorted(r.Names) {
				t.Errorf("%s: names are not sorted: %v", name, r.Names)
			}
			for _, n := range r.Names {
				if seen[n] && len(r.Args) == 0 {
					t.Errorf("%s: %s stands twice, once without conditions", name, n)
				}
				seen[n] = true
			}
		}
	}
}

func TestSecurityOptRow(t *testing.T) {
	agent := securityOpt(seccompOption + AgentSeccomp())
	for in, want := range map[string]string{
		"no-new-privileges":                            "no-new-privileges",
		"seccomp=unconfined":                           "seccomp=unconfined",
		"apparmor=unconfined":                          "apparmor=unconfined",
		seccompOption + AgentSeccomp():                 agent,
		seccompOption + " " + AgentSeccomp():           seccompOption + seccompDigest(" "+AgentSeccomp()),
		seccompOption + `{"defaultAction":"SCMP_ACT_"`: seccompOption + seccompDigest(`{"defaultAction":"SCMP_ACT_"`),
	} {
		if got := securityOpt(in); got != want {
			t.Errorf("%.60s: %s, want %s", in, got, want)
		}
	}
	if agent == securityOpt(seccompOption+RunnerSeccomp()) || len(agent) != len("seccomp=sha256:")+64 {
		t.Errorf("a digest is no digest: %s", agent)
	}
}

// allows reports whether a call with these arguments goes through.
func (p *seccompProfile) allows(call string, args ...uint64) bool {
	holds := func(a seccompArg) bool {
		v := uint64(0)
		if int(a.Index) < len(args) {
			v = args[a.Index]
		}
		if a.Op == "SCMP_CMP_MASKED_EQ" {
			return v&a.Value == a.ValueTwo
		}
		return a.Op == "SCMP_CMP_EQ" && v == a.Value
	}
	return slices.ContainsFunc(p.Syscalls, func(r seccompRule) bool {
		return r.Action == seccompAllow && slices.Contains(r.Names, call) && !slices.ContainsFunc(r.Args, func(a seccompArg) bool { return !holds(a) })
	})
}

// TestSeccompJudgesArguments calls what may be called with some arguments only. A pointer with every bit
// set shows a condition on the wrong argument.
func TestSeccompJudgesArguments(t *testing.T) {
	const (
		pointer, here   = ^uint64(0), ^uint64(99) // AT_FDCWD
		create, tmpfile = 0o100 | 1, 0o20200000 | 1
		regular         = 0o100000
	)
	agent, runner := agentProfile(true), agentProfile(false)
	for _, c := range []struct {
		call   string
		args   []uint64
		agent  bool
		runner bool
		reason string
	}{
		{"chmod", []uint64{pointer, 0o777}, true, true, "as chmod(1) does"},
		{"chmod", []uint64{pointer, 0o4755}, false, false, "set-uid"},
		{"chmod", []uint64{pointer, 0o2755}, false, false, "set-gid"},
		{"fchmod", []uint64{3, 0o1777}, true, true, "sticky is no identity"},
		{"fchmod", []uint64{3, 0o4755}, false, false, "set-uid"},
		{"fchmodat", []uint64{here, pointer, 0o644}, true, true, "as chmod(1) does"},
		{"fchmodat", []uint64{here, pointer, 0o4755}, false, false, "set-uid"},
		{"fchmodat2", []uint64{here, pointer, 0o644, pointer}, true, true, "the newer call"},
		{"fchmodat2", []uint64{here, pointer, 0o2755}, false, false, "set-gid"},
		{"mknod", []uint64{pointer, regular | 0o644, pointer}, true, true, "a file"},
		{"mknod", []uint64{pointer, regular | 0o4755}, false, false, "a set-uid file from the beginning"},
		{"mknodat", []uint64{here, pointer, regular | 0o644}, true, true, "a file"},
		{"mknodat", []uint64{here, pointer, regular | 0o4755}, false, false, "a set-uid file from the beginning"},
		{"creat", []uint64{pointer, 0o644}, true, true, "a file"},
		{"creat", []uint64{pointer, 0o6755}, false, false, "a set-uid file from the beginning"},
		{"open", []uint64{pointer, create, 0o644}, true, true, "a file"},
		{"open", []uint64{pointer, create, 0o4755}, false, false, "a set-uid file from the beginning"},
		{"open", []uint64{pointer, tmpfile, 0o4755}, false, false, "the same, without a name"},
		{"open", []uint64{pointer, 0, pointer}, true, true, "it has no mode without O_CREAT"},
		{"openat", []uint64{here, pointer, create, 0o644}, true, true, "a file"},
		{"openat", []uint64{here, pointer, create, 0o4755}, false, false, "a set-uid file from the beginning"},
		{"openat", []uint64{here, pointer, tmpfile, 0o2755}, false, false, "the same, without a name"},
		{"openat", []uint64{here, pointer, 0, pointer}, true, true, "it has no mode without O_CREAT"},
		{"fcntl", []uint64{3, 2, 1}, true, true, "F_SETFD"},
		{"fcntl", []uint64{3, 38, pointer}, true, true, "F_OFD_SETLKW: git and databases lock files"},
		{"fcntl", []uint64{3, 1030, 3}, true, true, "F_DUPFD_CLOEXEC"},
		{"fcntl", []uint64{3, 1033, 1}, true, true, "F_ADD_SEALS"},
		{"fcntl", []uint64{3, 1024, 1}, false, false, "F_SETLEASE: whoever opens the file waits"},
		{"fcntl", []uint64{3, 1<<32 | 1024, 1}, false, false, "the same, with what the kernel does not look at"},
		{"fcntl", []uint64{3, 1040, 1}, false, false, "F_SETDELEG, which newer kernels have"},
		{"clone", []uint64{17, pointer}, true, true, "fork"},
		{"clone", []uint64{17 | 0x10000000, pointer}, false, false, "a user namespace"},
		{"clone", []uint64{17 | 0x00020000, pointer}, false, false, "a mount namespace"},
		{"clone", []uint64{17 | 0x40000000, pointer}, false, false, "a network namespace"},
		{"socket", []uint64{1, 1}, true, false, "AF_UNIX: a path in the worktree is a way out"},
		{"socket", []uint64{2, 1}, true, true, "AF_INET"},
		{"socket", []uint64{10, 1}, true, true, "AF_INET6"},
		{"socket", []uint64{16, 3}, true, true, "AF_NETLINK, for the interfaces"},
		{"socket", []uint64{17, 3}, false, false, "AF_PACKET"},
		{"socket", []uint64{38, 5}, false, false, "AF_ALG"},
		{"socket", []uint64{40, 1}, false, false, "AF_VSOCK, which no network namespace confines"},
		{"prlimit64", []uint64{0, 7}, true, true, "its own limits"},
		{"prlimit64", []uint64{1, 7}, false, false, "process 1 without descriptors"},
		{"setpriority", []uint64{0, 0, 19}, true, true, "its own priority"},
		{"setpriority", []uint64{0, 1, 19}, false, false, "process 1 starved"},
		{"setpriority", []uint64{2, 0, 19}, false, false, "all of a user, process 1 with it"},
		{"sched_setaffinity", []uint64{1, 8}, false, false, "process 1 moved"},
		{"personality", []uint64{0}, true, true, "as it is"},
		{"personality", []uint64{0x0400000}, false, false, "READ_IMPLIES_EXEC"},
	} {
		if got := agent.allows(c.call, c.args...); got != c.agent {
			t.Errorf("agents: %s%#x: allowed %v, want %v (%s)", c.call, c.args, got, c.agent, c.reason)
		}
		if got := runner.allows(c.call, c.args...); got != c.runner {
			t.Errorf("runners: %s%#x: allowed %v, want %v (%s)", c.call, c.args, got, c.runner, c.reason)
		}
	}
}
