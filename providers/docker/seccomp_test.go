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
