package shim

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

func TestUndeclaredEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		got, declared []string
		want          string
		reason        string
	}{
		"engine's":      {[]string{"PATH=/x", "HOSTNAME=a", "HOME=/"}, nil, "", "engines set these"},
		"declared":      {[]string{"A=1"}, []string{"A=1"}, "", "as declared"},
		"other value":   {[]string{"A=2"}, []string{"A=1"}, "A", "the image's value won"},
		"undeclared":    {[]string{"LD_PRELOAD=/x", "GODEBUG=y"}, []string{"A=1"}, "GODEBUG,LD_PRELOAD", "sorted, without values"},
		"without value": {[]string{"B"}, nil, "B", "not a variable at all"},
	} {
		if got := strings.Join(undeclared(c.got, c.declared), ","); got != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, got, c.want, c.reason)
		}
	}
}

func mountTable(t *testing.T, text string) []mountLine {
	t.Helper()
	m, err := parseMounts(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseMounts(t *testing.T) {
	m := mountTable(t, "92 72 254:0 /tmp/a\\040b /work rw,nosuid master:1 - ext4 /dev/vda rw,discard\n"+
		"93 72 0:48 / /tmp rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=65536k\n")
	if len(m) != 2 || m[0].root != "/tmp/a b" || m[0].path != "/work" || !m[0].has("nosuid") || m[0].has("discard") || m[1].fsType != "tmpfs" {
		t.Errorf("%+v", m)
	}
	for line, reason := range map[string]string{
		"92 72 254:0 / /work rw\n":              "no separator",
		"92 72 - ext4 /dev/vda rw\n":            "fields are missing",
		"92 72 254:0 / /work rw master:1 - x\n": "no source",
	} {
		if _, err := parseMounts(line); err == nil {
			t.Errorf("accepted %q (%s)", line, reason)
		}
	}
}

func TestWhatEnginesMount(t *testing.T) {
	for line, c := range map[string]struct{ want, reason string }{
		"1 0 0:1 / / ro - overlay overlay rw":                                       {"", "the root"},
		"1 0 0:1 / / rw - overlay overlay rw":                                       {"is writable", "a writable root"},
		"1 0 0:2 / /proc rw - proc proc rw":                                         {"", "proc"},
		"1 0 0:2 / /proc rw - ext4 /dev/sda rw":                                     {"is ext4, should be proc", "something else there"},
		"1 0 0:2 /sys /proc/sys ro - proc proc rw":                                  {"", "made read-only"},
		"1 0 0:2 /sys /proc/sys rw - proc proc rw":                                  {"is not declared", "made writable again"},
		"1 0 0:2 /1 /proc/sys ro - proc proc rw":                                    {"is not declared", "another part of proc"},
		"1 0 0:3 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw":                      {"", "masked by /dev/null"},
		"1 0 0:4 / /sys/firmware ro - tmpfs tmpfs ro":                               {"", "masked by an empty directory"},
		"1 0 0:4 / /sys/firmware rw - tmpfs tmpfs rw":                               {"is not declared", "a writable place"},
		"1 0 0:5 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory":      {"", "a control group"},
		"1 0 0:5 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory":      {"is no read-only control group", "limits that can be written"},
		"1 0 0:6 / /sys/fs/cgroup ro - cgroup2 cgroup rw":                           {"", "version 2"},
		"1 0 0:6 / /sys/fs/cgroup rw - cgroup2 cgroup rw":                           {"is writable", "limits that can be written"},
		"1 0 8:1 /var/lib/docker/containers/x/hosts /etc/hosts rw - ext4 /dev/a rw": {"is writable", "names can be changed"},
		"1 0 8:1 /etc /host ro - ext4 /dev/a rw":                                    {"is not declared", "a view of the host"},
		"1 0 8:1 / /procfs ro - proc proc rw":                                       {"is not declared", "beside the known paths"},
	} {
		if got := mountTable(t, line+"\n")[0].fromEngine(); got != c.want {
			t.Errorf("%s: %q, want %q (%s)", line, got, c.want, c.reason)
		}
	}
}

func TestChangedMounts(t *testing.T) {
	const a, b, git = "1 0 0:1 / / ro - overlay o rw\n", "2 1 8:1 /w /work rw - ext4 d rw\n", "3 2 8:1 /w/.git /work/.git ro - ext4 d rw\n"
	was := mountTable(t, a+b+git)
	for name, c := range map[string]struct{ is, want, reason string }{
		"same":       {a + b + git, "", "nothing happened"},
		"remounted":  {a + b + strings.Replace(git, " ro ", " rw ", 1), "the mount at /work/.git has changed", "writable now"},
		"gone":       {a + b, "the mount at /work/.git is gone", "what it covered was removed"},
		"gone first": {b + git, "the mount at / is gone", "in the middle"},
		"new":        {a + b + git + "4 2 8:1 /x /work/x rw - ext4 d rw\n", "there is a mount at /work/x that was not there", "something appeared"},
		"new before": {a + "4 2 8:1 /x /x rw - ext4 d rw\n" + b + git, "there is a mount at /x that was not there", "in the middle"},
		"other root": {a + strings.Replace(b, "/w ", "/v ", 1) + git, "the mount at /work has changed", "another directory"},
		"options":    {a + b + strings.Replace(git, "d rw", "d rw,discard", 1), "", "an administrator tunes the disk"},
	} {
		if got := changedMounts(was, mountTable(t, c.is)); got != c.want {
			t.Errorf("%s: %q, want %q (%s)", name, got, c.want, c.reason)
		}
	}
}

func TestWrongRoutes(t *testing.T) {
	n := &Network{Address: "10.0.0.3/29", Proxy: "10.0.0.2:3128"}
	r := func(dest, gateway, link string) route {
		out := route{dest: netip.MustParsePrefix(dest), link: link}
		if gateway != "" {
			out.gateway = netip.MustParseAddr(gateway)
		}
		return out
	}
	for name, c := range map[string]struct {
		route  route
		agent  bool // accepted for an agent
		runner bool
		reason string
	}{
		"own network":       {r("10.0.0.0/29", "", "eth0"), true, false, "the only one an agent needs"},
		"dead default":      {r("0.0.0.0/0", "10.0.0.1", "eth0"), true, false, "20.10 makes it; nobody holds the address"},
		"default by proxy":  {r("0.0.0.0/0", "10.0.0.2", "eth0"), false, false, "its kernel forwards"},
		"default elsewhere": {r("0.0.0.0/0", "172.17.0.1", "eth0"), false, false, "the host"},
		"default on link":   {r("0.0.0.0/0", "", "eth0"), false, false, "everybody is a neighbour"},
		"larger network":    {r("10.0.0.0/16", "", "eth0"), false, false, "other invocations are neighbours"},
		"one host":          {r("192.0.2.1/32", "10.0.0.1", "eth0"), false, false, "nobody declared it"},
		"IPv6":              {r("::/0", "fe80::1", "eth0"), false, false, "no IPv6 at all"},
		"loopback":          {r("::1/128", "", "lo"), true, true, "some kernels list it"},
	} {
		for kind, want := range map[*Network]bool{n: c.agent, nil: c.runner} {
			if got := len(wrongRoutes([]route{c.route}, kind)) == 0; got != want {
				t.Errorf("%s, network %v: accepted %v (%s)", name, kind, got, c.reason)
			}
		}
	}
}

func TestNeighbourStates(t *testing.T) {
	n := &Network{Address: "10.0.0.3/29", Proxy: "10.0.0.2:3128"}
	at := func(a string, state uint16) []neighbour {
		return []neighbour{{link: "eth0", addr: netip.MustParseAddr(a), state: state}}
	}
	for name, c := range map[string]struct {
		list   []neighbour
		wrong  bool
		reason string
	}{
		"proxy":      {at("10.0.0.2", 0x02), false, "reachable, as it must be"},
		"failed":     {at("10.0.0.1", 0x20), false, "nobody is there"},
		"incomplete": {at("10.0.0.1", 0x01), false, "nobody has answered yet"},
		"reachable":  {at("10.0.0.1", 0x02), true, "somebody answers"},
		"stale":      {at("10.0.0.4", 0x04), true, "somebody spoke to us"},
		"permanent":  {at("10.0.0.4", 0x80), true, "somebody was entered by hand"},
	} {
		if got := wrongNeighbours(c.list, n); (len(got) > 0) != c.wrong {
			t.Errorf("%s: %v (%s)", name, got, c.reason)
		}
		if c.wrong && c.list[0].report().State == "none" {
			t.Errorf("%s has no name", name)
		}
	}
}

func TestReadLimits(t *testing.T) {
	const none = "9223372036854771712"
	v1 := map[string]string{"memory/memory.limit_in_bytes": "1000", "memory/memory.memsw.limit_in_bytes": "1000", "pids/pids.max": "64", "cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}
	v2 := map[string]string{"cgroup.controllers": "cpu memory pids", "memory.max": "1000", "memory.swap.max": "0", "pids.max": "64", "cpu.max": "150000 100000"}
	with := func(base map[string]string, kv ...string) map[string]string {
		out := map[string]string{}
		for k, v := range base {
			out[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		files  map[string]string
		want   wire.Limits
		swap   int64
		reason string
	}{
		"v1":          {v1, wire.Limits{Memory: 1000, PIDs: 64, CPUs: 1.5}, 0, "as declared"},
		"v2":          {v2, wire.Limits{Memory: 1000, PIDs: 64, CPUs: 1.5}, 0, "as declared"},
		"v1 none":     {with(v1, "memory/memory.limit_in_bytes", none, "memory/memory.memsw.limit_in_bytes", none, "pids/pids.max", "max", "cpu/cpu.cfs_quota_us", "-1"), wire.Limits{Memory: -1, PIDs: -1, CPUs: -1}, -1, "its way to say none"},
		"v2 none":     {with(v2, "memory.max", "max", "memory.swap.max", "max", "pids.max", "max", "cpu.max", "max 100000"), wire.Limits{Memory: -1, PIDs: -1, CPUs: -1}, -1, "its way to say none"},
		"v1 swap":     {with(v1, "memory/memory.memsw.limit_in_bytes", "3000"), wire.Limits{Memory: 1000, PIDs: 64, CPUs: 1.5}, 2000, "both together minus memory"},
		"v1 all swap": {with(v1, "memory/memory.memsw.limit_in_bytes", none), wire.Limits{Memory: 1000, PIDs: 64, CPUs: 1.5}, -1, "memory is bounded, swap is not"},
	} {
		got, swap, err := readLimits(func(n string) (string, error) {
			if v, ok := c.files[n]; ok {
				return v, nil
			}
			return "", os.ErrNotExist
		})
		if err != nil || got != c.want || swap != c.swap {
			t.Errorf("%s: %+v, swap %d, %v; want %+v, %d (%s)", name, got, swap, err, c.want, c.swap, c.reason)
		}
	}
	if _, _, err := readLimits(func(string) (string, error) { return "", os.ErrNotExist }); err == nil {
		t.Error("limits that cannot be read pass")
	}
}

func TestWalkTree(t *testing.T) {
	build := func(t *testing.T) string {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := os.WriteFile(filepath.Join(dir, "a", "b", fmt.Sprint(i)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for name, c := range map[string]struct {
		do     func(dir string) error
		bound  int
		want   string
		reason string
	}{
		"plain":           {func(string) error { return nil }, 100, "", "files and directories"},
		"link to a FIFO":  {func(dir string) error { return os.Symlink("/dev/null", filepath.Join(dir, "l")) }, 100, "", "links are not followed"},
		"link to itself":  {func(dir string) error { return os.Symlink(".", filepath.Join(dir, "l")) }, 100, "", "no endless walk"},
		"FIFO":            {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a", "b", "f"), 0o600) }, 100, "/a/b/f is a FIFO", "a way to the host"},
		"exactly so many": {func(string) error { return nil }, 5, "", "the bound is inclusive"},
		"too many":        {func(string) error { return nil }, 4, "more entries than can be looked at", "not looked at in part"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := build(t)
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			err := walkTree(dir, os.Getuid(), c.bound)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q (%s)", err, c.want, c.reason)
			}
		})
	}
}
