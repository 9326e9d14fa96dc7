package docker

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// TestSeccompProxyIsNarrower: whatever a proxy may call an agent may call with the same arguments, and much that an
// agent may call a proxy may not.
func TestSeccompProxyIsNarrower(t *testing.T) {
	t.Parallel()
	agent, proxy := agentProfile(true), proxyProfile()
	for _, r := range proxy.Syscalls {
		if r.Action != seccompAllow {
			continue
		}
		for _, name := range r.Names {
			if !slices.ContainsFunc(agent.Syscalls, func(a seccompRule) bool { return a.Action == seccompAllow && covers(a, r, name) }) {
				t.Errorf("proxies may call %s with %+v, and agents may not", name, r.Args)
			}
		}
	}
	less, more := proxy.names(seccompAllow), agent.names(seccompAllow)
	var missing []string
	for name := range more {
		if !less[name] {
			missing = append(missing, name)
		}
	}
	if len(less)+len(missing) != len(more) || len(missing) < len(programCalls) {
		t.Errorf("of an agent's %d calls a proxy has %d, all but %v", len(more), len(less), slices.Sorted(slices.Values(missing)))
	}
	if denied := proxy.names(seccompErrno); !maps.Equal(denied, agent.names(seccompErrno)) {
		t.Errorf("calls that look as if the kernel had none differ: %v", denied)
	}
}

// covers says that a rule lets a call through wherever another one does: it has no condition that the other has not.
func covers(wide, narrow seccompRule, name string) bool {
	return slices.Contains(wide.Names, name) &&
		(wide.Includes == nil || reflect.DeepEqual(wide.Includes, narrow.Includes)) &&
		!slices.ContainsFunc(wide.Args, func(a seccompArg) bool { return !slices.Contains(narrow.Args, a) })
}

// TestSeccompProxyMakesNothing: what our own binary never does, and what whoever takes it over would want.
func TestSeccompProxyMakesNothing(t *testing.T) {
	t.Parallel()
	const pointer, here = ^uint64(0), ^uint64(99) // AT_FDCWD
	agent, proxy := agentProfile(true), proxyProfile()
	for _, c := range []struct {
		call   string
		args   []uint64
		agent  bool
		proxy  bool
		reason string
	}{
		{"openat", []uint64{here, pointer, 0, pointer}, true, true, "it reads its own resolv.conf"},
		{"openat", []uint64{here, pointer, 0o100 | 1, 0o644}, true, false, "a file"},
		{"openat", []uint64{here, pointer, 0o20200000 | 1, 0o600}, true, false, "a file without a name"},
		{"open", []uint64{pointer, 0}, true, false, "Go has openat"},
		{"creat", []uint64{pointer, 0o644}, true, false, "a file"},
		{"memfd_create", []uint64{pointer, 0}, true, false, "a program that is in no image"},
		{"execveat", []uint64{3, pointer}, true, false, "the same, started"},
		{"chmod", []uint64{pointer, 0o755}, true, false, "it has no files"},
		{"fchmod", []uint64{3, 0o755}, true, false, "it has no files"},
		{"fchmodat", []uint64{here, pointer, 0o755}, true, false, "it has no files"},
		{"mkdirat", []uint64{here, pointer, 0o755}, true, false, "it has no files"},
		{"mknodat", []uint64{here, pointer, 0o100644}, true, false, "it has no files"},
		{"unlinkat", []uint64{here, pointer}, true, false, "it has no files"},
		{"renameat2", []uint64{here, pointer, here, pointer}, true, false, "it has no files"},
		{"linkat", []uint64{here, pointer, here, pointer}, true, false, "it has no files"},
		{"truncate", []uint64{pointer, 0}, true, false, "it has no files"},
		{"fork", nil, true, false, "it starts nothing"},
		{"vfork", nil, true, false, "it starts nothing"},
		{"socket", []uint64{afInet, sockStream, protoAny}, true, true, "its work"},
		{"socket", []uint64{afInet, sockDgram, protoUDP}, true, true, "a lookup"},
		{"socket", []uint64{afNetlink, 3, netlinkRoute}, true, true, "the interfaces"},
		{"socket", []uint64{afUnix, sockStream}, true, false, "it has no neighbours of that kind"},
		{"socketpair", []uint64{afUnix, sockStream}, true, false, "it starts nothing"},
		{"socketpair", []uint64{afUnix, sockDgram}, true, false, "it sends to any path"},
		{"socket", []uint64{17, 3}, false, false, "AF_PACKET"},
		{"splice", nil, true, true, "bulk goes by pipes"},
		{"fcntl", []uint64{3, setPipeSize, 1 << 20}, true, true, "bulk goes by pipes"},
		{"fcntl", []uint64{3, 1024, 1}, false, false, "F_SETLEASE"},
	} {
		if got := agent.allows(c.call, c.args...); got != c.agent {
			t.Errorf("agents: %s%#x: allowed %v, want %v (%s)", c.call, c.args, got, c.agent, c.reason)
		}
		if got := proxy.allows(c.call, c.args...); got != c.proxy {
			t.Errorf("proxies: %s%#x: allowed %v, want %v (%s)", c.call, c.args, got, c.proxy, c.reason)
		}
	}
	if ProxySeccomp() != proxy.encode() || ProxySeccomp() == AgentSeccomp() || ProxySeccomp() == RunnerSeccomp() {
		t.Error("a proxy does not get a proxy's profile")
	}
	if got := proxyHost().SecurityOpt; !slices.Contains(got, seccompOption+ProxySeccomp()) {
		t.Errorf("the container asks for %.200q", got)
	}
}
