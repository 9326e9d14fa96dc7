package docker

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim/inside"
)

// TestProxyHoldsWhatIsDeclared: each bound arrives in the proxy's command line and in what people are shown. A
// declaration that says nothing of them gives the one that proxies had before they could be declared.
func TestProxyHoldsWhatIsDeclared(t *testing.T) {
	const end = "  worktree = \"WORKTREE\"\n}"
	for _, tt := range []struct {
		limits string
		want   egress.Limits
		shown  permission.Limits
		reason string
	}{
		{"", egress.DefaultLimits(64 << 20), permission.Limits{Upload: 64 << 20, Download: permission.Unbounded, Tunnels: 256, TunnelsPerSecond: 100}, "defaults"},
		{"download = null", egress.DefaultLimits(64 << 20), permission.Limits{Upload: 64 << 20, Download: permission.Unbounded, Tunnels: 256, TunnelsPerSecond: 100}, "null is left out"},
		{"upload = \"1MiB\"\n download = \"2MiB\"\n tunnels = 3\n tunnels_per_second = 4",
			func() egress.Limits {
				l := egress.DefaultLimits(1 << 20)
				l.DownloadBytes, l.Tunnels, l.TunnelsPerSecond = 2<<20, 3, 4
				return l
			}(), permission.Limits{Upload: 1 << 20, Download: 2 << 20, Tunnels: 3, TunnelsPerSecond: 4}, "all of them"},
	} {
		config := strings.Replace(paperConfig, end, strings.TrimSuffix(end, "}")+"  limits {\n "+tt.limits+"\n }\n}", 1)
		rs, diags := onPaperIn(t, t.TempDir(), config, paperLock)
		if diags.HasErrors() {
			t.Fatalf("%s: %v", tt.reason, diags)
		}
		for path, want := range map[string]int64{
			"upload_bytes": tt.want.UploadBytes, "download_bytes": tt.want.DownloadBytes,
			"tunnels": int64(tt.want.Tunnels), "tunnels_per_second": int64(tt.want.TunnelsPerSecond),
		} {
			if got := valueAt(t, rs, "invocation.a.proxy", "Config.Cmd[1].limits."+path).Text(); got != fmt.Sprint(want) {
				t.Errorf("%s: %s is %s, want %d", tt.reason, path, got, want)
			}
		}
		l := Permissions(Wanted(rs))[0].Limits
		got := permission.Limits{Upload: l.Upload, Download: l.Download, Tunnels: l.Tunnels, TunnelsPerSecond: l.TunnelsPerSecond}
		if got != tt.shown {
			t.Errorf("%s: shown is %+v, want %+v", tt.reason, got, tt.shown)
		}
	}
}

// TestProxyMustFindWhatItGets: what a proxy has to find inside is what its container is made with.
func TestProxyMustFindWhatItGets(t *testing.T) {
	dir := t.TempDir()
	if _, diags := onPaperIn(t, dir, paperConfig, paperLock); diags.HasErrors() {
		t.Fatal(diags)
	}
	spec, diags := hclspec.Load(hclspec.Source{Path: dir, Cwd: dir, Version: "0.1.0"}, hclspec.Vars{}, policy.Catalog())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c, diags := NoEngine(dir).Compile(t.Context(), spec, planner.Snapshot{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	const proxy = "invocation.a.proxy"
	got, err := c.Inside(proxy)
	if err != nil {
		t.Fatal(err)
	}
	made := c.desired[proxy].(containerSpec)
	var addresses []string
	for i, bits := range []int{uplinkBits, networkBits} {
		addresses = append(addresses, fmt.Sprintf("%s/%d", made.endpoints[i].settings.IPAMConfig.IPv4Address, bits))
	}
	want := inside.Proxy{Listen: c.Allocation().Networks["invocation.a"].Proxy.String() + ":3128", Hostname: made.config.Hostname,
		UID: policy.ProxyUID, GID: policy.ProxyUID, Addresses: addresses, Gateway: c.Allocation().Uplink.Gateway.String(),
		Nameservers: []string{"127.0.0.11"}, Sysctls: made.host.Sysctls}
	if !reflect.DeepEqual(got, want) || made.config.User != fmt.Sprintf("%d:%d", got.UID, got.GID) || len(got.Sysctls) != 3 {
		t.Errorf("%+v\nwant %+v as %s", got, want, made.config.User)
	}
	for _, a := range []planner.Address{"invocation.a.agent", "invocation.z.proxy", planner.AddrUplink} {
		if _, err := c.Inside(a); err == nil || !strings.Contains(err.Error(), "no proxy") {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// TestProxyHasItsAgentsProcessors: whole ones, so that the engine's machine has them wherever it has the agent's.
func TestProxyHasItsAgentsProcessors(t *testing.T) {
	const end = "  worktree = \"WORKTREE\"\n}"
	for _, tt := range []struct {
		limits string
		want   int64
		reason string
	}{
		{"", 2, "the agent's default"},
		{"cpus = 0.5", 1, "a machine with one processor has it"},
		{"cpus = 1", 1, "the agent's"},
		{"cpus = 1.01", 2, "the agent needs two as well"},
		{"cpus = 16", 2, "the most"},
	} {
		config := strings.Replace(paperConfig, end, strings.TrimSuffix(end, "}")+"  limits {\n "+tt.limits+"\n }\n}", 1)
		rs, diags := onPaperIn(t, t.TempDir(), config, paperLock)
		if diags.HasErrors() {
			t.Fatalf("%s: %v", tt.reason, diags)
		}
		for path, want := range map[string]int64{"Config.Cmd[1].limits.cpus": tt.want, "HostConfig.NanoCpus": tt.want * 1e9} {
			if got := valueAt(t, rs, "invocation.a.proxy", path).Text(); got != fmt.Sprint(want) {
				t.Errorf("%q: %s is %s, want %d: %s", tt.limits, path, got, want, tt.reason)
			}
		}
	}
}

// TestUnreadableBoundIsNone: an object whose label does not tell a bound is not taken for one without a bound:
// whatever is declared now is more than that.
func TestUnreadableBoundIsNone(t *testing.T) {
	rs, diags := onPaperIn(t, t.TempDir(), paperConfig, paperLock)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	rows := Wanted(rs)
	now := Permissions(rows)
	rows["invocation.a.proxy"] = nil
	had := Permissions(rows)
	if had[0].Limits.Download != 0 {
		t.Errorf("a proxy that says nothing allowed %d bytes down", had[0].Limits.Download)
	}
	told := map[string]bool{}
	for _, w := range permission.Widened(had[0], now[0]) {
		told[w.What] = true
	}
	for _, what := range []string{"limits.upload", "limits.download", "limits.tunnels", "limits.tunnels_per_second"} {
		if !told[what] {
			t.Errorf("%s is no widening of what nobody knows", what)
		}
	}
}

// TestDescriptorsSuffice: the most tunnels that can be declared have the descriptors that each may hold (two
// connections, and two pipes while it carries much both ways), beside those of refused connections and of the
// process itself.
func TestDescriptorsSuffice(t *testing.T) {
	const perTunnel, others = 6, 64 + 32
	for _, l := range resourceLimits() {
		if need := int64(hclspec.MaxTunnels*perTunnel + others); l.Name == "nofile" && l.Hard < need {
			t.Errorf("%d tunnels may hold %d descriptors, and a container has %d", hclspec.MaxTunnels, need, l.Hard)
		}
	}
}
