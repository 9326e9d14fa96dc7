package docker

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// testSandbox is a sandbox without an engine: enough to make trees of.
func testSandbox() sandbox {
	inv := hclspec.Invocation{Address: "invocation.one"}
	inv.Limits.Memory.V, inv.Limits.CPUs.V, inv.Limits.PIDs.V, inv.Limits.Output.V = 1<<30, 1.5, 100, 1<<20
	return sandbox{scope: planner.Scope{Project: "p", Workspace: "w"}, addr: "invocation.one.agent", invocation: inv,
		image: pinnedImage{ref: "agent", id: "sha256:00", config: hclspec.ImageConfig{Env: map[string]string{"PATH": "/bin", "FOO": "x"},
			Labels: map[string]string{"a": "b"}, Volumes: []string{"/data", "/tmp"}, ExposedPorts: []string{"80/tcp"}}},
		user: policy.User{UID: 1000, GID: 100}, binds: []bind{{"/src", "/work", true}, {"/src/.git", "/work/.git", true}},
		shimVolume: "volume", timeoutMS: 1000, hostname: "agent", hardened: hardened("{}")}
}

// A sandbox's command is sealed by policy, which these tests do without: the shim's argument must hold one.
func testSpec(t *testing.T) containerSpec {
	t.Helper()
	s := testSandbox()
	memory, err := s.tmpfses()
	if err != nil {
		t.Fatal(err)
	}
	arg, err := (&shim.Config{Invocation: "invocation.one", Argv: []string{"/agent"}, Env: []string{}, Dir: "/work", Mounts: []shim.Mount{},
		Nameservers: []string{}, Bounds: shim.Bounds{TimeoutMS: 1, GraceMS: 1, SilenceMS: 1, Output: 1}}).Arg()
	if err != nil {
		t.Fatal(err)
	}
	spec := containerSpec{name: "name", config: hardenedConfig(s.image.id, []string{commandShim, arg}), host: hardenedHost(limits{1, 2, 3}, "{}")}
	spec.host.Tmpfs = map[string]string{}
	for _, m := range memory {
		spec.host.Tmpfs[m.target] = m.options(s.user)
	}
	for _, b := range s.binds {
		spec.host.Mounts = append(spec.host.Mounts, b.mount())
	}
	spec.host.NetworkMode = networkMode("invocation.one.network")
	spec.endpoints = []endpointSpec{newEndpoint(roleNetwork, "invocation.one.network", netip.MustParseAddr("10.0.0.3"))}
	return spec
}

func TestTmpfsCoversVolumesOfTheImage(t *testing.T) {
	s := testSandbox()
	list, err := s.tmpfses()
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range list {
		targets = append(targets, m.target)
	}
	if want := []string{"/data", "/home/agent", "/run/sandplan", "/tmp"}; !slices.Equal(targets, want) {
		t.Errorf("memory file systems at %v, want %v", targets, want)
	}
	if got, want := list[2].options(s.user), "rw,nosuid,nodev,noexec,size=16777216,mode=0700,uid=1000,gid=100"; got != want {
		t.Errorf("options %q, want %q", got, want)
	}
	for _, taken := range []string{"/", "/work", "/work/src", "/.sandplan", "/proc/x", "/dev"} {
		s.image.config.Volumes = []string{taken}
		if _, err := s.tmpfses(); err == nil {
			t.Errorf("a VOLUME at %s is accepted", taken)
		}
	}
}

func TestArrangeTwiceIsArrangeOnce(t *testing.T) {
	v := testSpec(t).tree()
	before := planner.JSON(v)
	arrangeContainer(v, "")
	if after := planner.JSON(v); after != before {
		t.Errorf("an arranged tree changes:\n%s\n%s", before.Text(), after.Text())
	}
}

// asShown is a wanted container as the engine would show it before anything is arranged.
func asShown(t *testing.T, s containerSpec) tree {
	t.Helper()
	v := tree{"Id": "0123456789abcdef", "Name": "/name", "Image": s.config.Image, "Path": s.config.Entrypoint[0], "Platform": "linux",
		"Config": map[string]any(treeOf(s.config)), "HostConfig": map[string]any(treeOf(s.host))}
	args, err := decodeTree([]byte(`{"v":` + string(must(json.Marshal([]string(s.config.Cmd)))) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	v["Args"] = args["v"]
	var mounts []any
	host := v["HostConfig"].(map[string]any)
	for _, m := range host["Mounts"].([]any) {
		mounts = append(mounts, mountPoint(m.(map[string]any), "/data"))
	}
	slices.Reverse(mounts) // the engine keeps no order
	v["Mounts"] = mounts
	endpoint := map[string]any(treeOf(s.endpoints[0].settings))
	endpoint["Aliases"] = []any{"0123456789ab", s.config.Hostname}
	v["NetworkSettings"] = map[string]any{"Networks": map[string]any{roleNetwork: endpoint}}
	return v
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestObservedIsWanted(t *testing.T) {
	s := testSpec(t)
	refs := map[string]planner.Address{"id-of-network": "invocation.one.network"}
	tab := agentKind().table
	want := tab.wanted(s.tree(), func(string) *hcl.Range { return nil })
	observe := func(change func(v tree)) []string {
		shown := s
		shown.host.NetworkMode = container.NetworkMode("id-of-network")
		v := asShown(t, shown)
		change(v)
		arrangeContainer(v, "/data")
		var out []string
		for _, m := range planner.Compare(want, tab.observed(v, refs)) {
			out = append(out, m.Field.Path)
		}
		return out
	}
	for _, tt := range []struct {
		reason string
		change func(v tree)
		want   []string
	}{
		{"as it was asked for", func(tree) {}, nil},
		{"the engine runs something else than Config says", func(v tree) { v["Path"] = "/bin/sh" }, []string{"Args", "Path"}},
		{"one argument is not Config's", func(v tree) { v["Args"] = append(v["Args"].([]any), "x") }, []string{"Args", "Path"}},
		{"a mount that nobody asked for", func(v tree) {
			v["Mounts"] = append(v["Mounts"].([]any), map[string]any{"Type": "volume", "Destination": "/x"})
		}, []string{"Mounts"}},
		{"a mount of another place than HostConfig says", func(v tree) { v["Mounts"].([]any)[0].(map[string]any)["Source"] = "/etc" }, []string{"Mounts"}},
		{"a mount twice", func(v tree) { v["Mounts"].([]any)[0] = v["Mounts"].([]any)[1] }, []string{"Mounts"}},
		{"an alias of somebody else", func(v tree) {
			e := v["NetworkSettings"].(map[string]any)["Networks"].(map[string]any)[roleNetwork].(map[string]any)
			e["Aliases"] = append(e["Aliases"].([]any), "proxy")
		}, []string{"NetworkSettings.Networks.network.Aliases"}},
		{"another address than the fixed one", func(v tree) {
			e := v["NetworkSettings"].(map[string]any)["Networks"].(map[string]any)[roleNetwork].(map[string]any)
			e["IPAddress"] = "10.0.0.4"
		}, []string{"NetworkSettings.Networks.network.IPAddress"}},
		{"a variable twice", func(v tree) { v["Config"].(map[string]any)["Env"] = []any{"A=1", "A=2"} }, []string{"Config.Env"}},
		{"a file in the container", func(v tree) { v["Changes"] = []any{map[string]any{"Path": "/x"}} }, []string{"Changes"}},
	} {
		if got := observe(tt.change); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v differ, want %v", tt.reason, got, tt.want)
		}
	}
}

func TestUnexpectedChanges(t *testing.T) {
	v := tree{"HostConfig": map[string]any{"Tmpfs": map[string]any{"/run/sandplan": ""}, "Mounts": []any{map[string]any{"Target": "/work/.git"}}}}
	changes := must(decodeTrees([]byte(`[{"Path":"/run","Kind":0},{"Path":"/run/sandplan","Kind":1},{"Path":"/work","Kind":1},
		{"Path":"/workshop","Kind":1},{"Path":"/run/x","Kind":1},{"Path":"/run","Kind":2}]`)))
	var got []string
	for _, c := range unexpectedChanges(v, changes) {
		got = append(got, c.(map[string]any)["Path"].(string))
	}
	if want := []string{"/workshop", "/run/x", "/run"}; !slices.Equal(got, want) {
		t.Errorf("unexpected changes %v, want %v: directories that lead to a mount are the engine's, deleted ones are not", got, want)
	}
}

func TestHostText(t *testing.T) {
	for _, tt := range []struct{ reason, host, want string }{
		{"the ordinary", `{"name":"a.example","port":443,"tls":true}`, `"a.example:443"`},
		{"all that can be different", `{"name":"a.example","port":80,"addresses":["10.0.0.1","10.0.0.2"],"tls":false}`, `"a.example:80 at 10.0.0.1, 10.0.0.2 without TLS"`},
		{"an address that says more than an address", `{"addresses":["10.0.0.1 without TLS"],"name":"a.example","port":443,"tls":true}`,
			`{"addresses":["10.0.0.1 without TLS"],"name":"a.example","port":443,"tls":true}`},
		{"a field that nobody knows", `{"name":"a.example","new":1,"port":443,"tls":true}`, `{"name":"a.example","new":1,"port":443,"tls":true}`},
	} {
		if got := planner.JSON(hostText(parseJSON(t, tt.host))).Text(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}
