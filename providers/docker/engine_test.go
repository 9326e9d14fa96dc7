package docker

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// testPool is for networks that tests of this package make by hand: 8192 addresses for each process, since
// tests may run from two checkouts on one engine. That is eight uplinks, of which small networks have the first.
func testPool() netip.Prefix {
	const processes = 8
	return netip.PrefixFrom(address(number(netip.MustParseAddr("10.230.0.0"))+uint32(os.Getpid()%processes)*8192), 19)
}

// unique makes a name this process's own.
func unique(name string) string { return name + strconv.Itoa(os.Getpid()) }

func noEnv(string) string { return "" }

// openSocket opens the engine at a socket as the product does.
func openSocket(t testing.TB, socket string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Options{Host: "unix://" + socket, Getenv: noEnv, Origin: "test:/here", Version: "0.0.0-test",
		Self: "/nonexistent/sandplan", Who: "tester@test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func openEngine(t testing.TB) *Engine {
	t.Helper()
	return openSocket(t, dockertest.Socket(t))
}

// testScope is a scope of this test's own; all that carries its labels is removed at the end.
func testScope(t testing.TB, e *Engine) planner.Scope {
	t.Helper()
	s := planner.Scope{Project: unique("dc-" + plainWords(t.Name()) + "-"), Workspace: "w"}
	clean := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
		defer cancel()
		l := &look{engine: e, scope: s}
		if err := l.load(ctx, nil); err != nil {
			t.Errorf("clean up: %v", err)
			return
		}
		for _, list := range []listName{listContainers, listNetworks, listVolumes} {
			for _, v := range l.listed[list] {
				if id, ok := readIdentity(labelsOf(treeLabels(v))); ok && id.scope == s {
					err := e.stray(list).remove(ctx, e, planner.Object{ID: treeID(v), Name: treeName(v)})
					if errors.Is(err, errMiscounted) {
						t.Logf("clean up: %v", err) // nothing but the engine can help it, and no look was wrong
						continue
					}
					if err != nil {
						t.Errorf("clean up: %v", err)
					}
				}
			}
		}
	}
	clean()
	t.Cleanup(clean)
	return s
}

// scoped are the objects of a snapshot that belong to its scope: images are everybody's, and other tests
// make some at the same time.
func scoped(s planner.Snapshot) []planner.Object {
	var out []planner.Object
	for _, o := range s.Objects {
		if o.Kind != planner.KindImage {
			out = append(out, o)
		}
	}
	return out
}

// resourceOf is a wanted object as Compile makes it.
func resourceOf(t testing.TB, e *Engine, kind planner.Kind, a planner.Address, d desired) planner.Resource {
	t.Helper()
	k, err := e.kind(kind)
	if err != nil {
		t.Fatal(err)
	}
	r := planner.Resource{Addr: a, Kind: kind, Fields: k.table.wanted(d.tree(), func(string) *hcl.Range { return &hcl.Range{Filename: "x.hcl"} })}
	r.Digest = planner.Digest(r.Fields)
	return r
}

func testNetwork(s planner.Scope, a planner.Address, n int) desiredNetwork {
	subnet := netip.PrefixFrom(address(number(testPool().Addr())+uint32(n)*8), networkBits)
	return desiredNetwork{Name: objectName(s, a), Bridge: bridgeName(s, a), Subnet: subnet, Gateway: subnet.Addr().Next()}
}

func testUplink(s planner.Scope, n int) desiredUplink {
	subnet := netip.PrefixFrom(address(number(testPool().Addr())+uint32(n)*1024), uplinkBits)
	return desiredUplink{Name: objectName(s, planner.AddrUplink), Bridge: bridgeName(s, planner.AddrUplink), Subnet: subnet, Gateway: subnet.Addr().Next()}
}

func TestFindEndpoint(t *testing.T) {
	home := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The directory's name is the SHA-256 of the context's.
	const local = "25bf8e1a2393f1108d37029b3df5593236c755742ec93465bbafa9b290bddcf6"
	write(".docker/contexts/meta/"+local+"/meta.json", `{"Name":"local","Endpoints":{"docker":{"Host":"unix:///run/local.sock"}}}`)
	write("empty/contexts/meta/"+local+"/meta.json", `{"Name":"local","Endpoints":{}}`)
	write("chosen/config.json", `{"currentContext":"local"}`)
	write("chosen/contexts/meta/"+local+"/meta.json", `{"Endpoints":{"docker":{"Host":"unix:///run/chosen.sock"}}}`)
	write("broken/config.json", `{`)
	for _, tc := range []struct {
		reason, host string
		env          map[string]string
		want, from   string
		err          []string
	}{
		{reason: "nothing is said", want: "/var/run/docker.sock", from: "the default"},
		{reason: "the configuration goes before all", host: "unix:///a.sock", env: map[string]string{"DOCKER_HOST": "unix:///b.sock"}, want: "/a.sock", from: `provider "docker" { host }`},
		{reason: "DOCKER_HOST goes before the context", env: map[string]string{"DOCKER_HOST": "unix:///b.sock", "DOCKER_CONTEXT": "local"}, want: "/b.sock", from: "DOCKER_HOST"},
		{reason: "a context by its name", env: map[string]string{"DOCKER_CONTEXT": "local"}, want: "/run/local.sock", from: `docker context "local"`},
		{reason: "the current context of another directory", env: map[string]string{"DOCKER_CONFIG": home + "/chosen"}, want: "/run/chosen.sock", from: `docker context "local"`},
		{reason: "default is no context", env: map[string]string{"DOCKER_CONTEXT": "default"}, want: "/var/run/docker.sock", from: "the default"},
		{reason: "a context that is not there", env: map[string]string{"DOCKER_CONTEXT": "gone"}, err: []string{`"gone"`, "DOCKER_CONTEXT", "docker context ls"}},
		{reason: "a context without an engine", env: map[string]string{"DOCKER_CONTEXT": "local", "DOCKER_CONFIG": home + "/empty"}, err: []string{"names no docker endpoint"}},
		{reason: "a configuration that is no JSON", env: map[string]string{"DOCKER_CONFIG": home + "/broken"}, err: []string{"broken/config.json is not JSON"}},
		{reason: "another machine", env: map[string]string{"DOCKER_HOST": "tcp://10.0.0.1:2376"}, err: []string{"tcp://10.0.0.1:2376", "DOCKER_HOST", "local engine only"}},
		{reason: "another machine by ssh", host: "ssh://me@there", err: []string{"ssh://me@there", `provider "docker" { host }`}},
		{reason: "a relative path", host: "unix://run.sock", err: []string{"absolute path"}},
	} {
		got, err := findEndpoint(Options{Host: tc.host, Home: home, Getenv: func(k string) string { return tc.env[k] }})
		if len(tc.err) > 0 {
			for _, part := range tc.err {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: error %v, want %q in it", tc.reason, err, part)
				}
			}
			continue
		}
		if err != nil || got.socket != tc.want || got.from != tc.from {
			t.Errorf("%s: %q from %q (%v), want %q from %q", tc.reason, got.socket, got.from, err, tc.want, tc.from)
		}
	}
}

func TestOpenWithoutEngine(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	for _, tc := range []struct{ reason, socket string }{
		{"no socket", filepath.Join(dir, "none.sock")},
		{"a socket that nobody listens on", stale},
	} {
		_, err := Open(t.Context(), Options{Host: "unix://" + tc.socket, Getenv: noEnv})
		if err == nil || !strings.Contains(err.Error(), "no Docker engine answers at unix://"+tc.socket) || !strings.Contains(err.Error(), "scripts/engine") {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

func TestOpenRefusesEngines(t *testing.T) {
	socket := dockertest.Socket(t)
	info := func(key string, value any) []dockertest.Fault {
		return []dockertest.Fault{{Call: `^GET /info$`, Edit: func(b any) any { b.(map[string]any)[key] = value; return b }}}
	}
	for _, tc := range []struct {
		reason string
		faults []dockertest.Fault
		want   string
	}{
		{"users of containers are others", info("SecurityOptions", []any{"name=userns"}), "runs in userns mode"},
		{"rootless", info("SecurityOptions", []any{"name=seccomp,profile=default", "name=rootless"}), "runs in rootless mode"},
		{"another architecture", info("Architecture", "s390x"), "runs on s390x"},
		{"Windows containers", info("OSType", "windows"), "needs a Linux engine"},
		{"it is broken", []dockertest.Fault{{Call: "^GET /info$", Status: 500, Message: "out of order"}}, "the engine answered 500: out of order"},
	} {
		p := dockertest.NewProxy(t, socket, tc.faults...)
		_, err := Open(t.Context(), Options{Host: "unix://" + p.Socket, Getenv: noEnv})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", tc.reason, err, tc.want)
		}
	}
}

func TestLessVersion(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"1.9", "1.41", true}, {"1.41", "1.9", false}, {"1.41", "1.41", false}, {"1.51", "1.52", true}, {"", "1.1", true}, {"1", "1.0", true}, {"2.0", "1.99", false}} {
		if got := lessVersion(tc.a, tc.b); got != tc.want {
			t.Errorf("lessVersion(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}
