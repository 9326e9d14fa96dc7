package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestRealProxyInside reads in the record what a real proxy says of its container: the addresses and routes that were
// chosen for it, the engine's own resolver, nobody's names. That the run goes on shows that none of it is refused.
func TestRealProxyInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 21, map[string][]string{"job": {"say=ran"}}, nil)
	w.apply()
	w.must("run", "invocation.job")
	b, err := os.ReadFile(filepath.Join(w.records(t)[0], "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Predicate struct {
			Proxy *wire.Ready `json:"proxy"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(b, &record); err != nil || record.Predicate.Proxy == nil {
		t.Fatalf("no ready line: %v: %.300s", err, b)
	}
	ready := *record.Predicate.Proxy
	if ready.Listen != "10.242.84.2:3128" {
		t.Errorf("it listens at %s", ready.Listen)
	}
	links := map[string]string{}
	for _, a := range ready.Addresses {
		if a.Interface != "lo" {
			links[a.Prefix] = a.Interface
		}
	}
	uplink, network := links["10.242.80.2/22"], links["10.242.84.2/29"]
	if len(links) != 2 || uplink == "" || network == "" || uplink == network {
		t.Errorf("its addresses are %+v", ready.Addresses)
	}
	for _, want := range []wire.Route{{Interface: uplink, Dest: "0.0.0.0/0", Gateway: "10.242.80.1"},
		{Interface: uplink, Dest: "10.242.80.0/22"}, {Interface: network, Dest: "10.242.84.0/29"}} {
		if len(ready.Routes) != 3 || !slices.Contains(ready.Routes, want) {
			t.Errorf("%+v is not among three routes %+v", want, ready.Routes)
		}
	}
	var servers []string
	for line := range strings.Lines(ready.ResolvConf) {
		if server, ok := strings.CutPrefix(line, "nameserver "); ok {
			servers = append(servers, strings.TrimSpace(server))
		}
	}
	if !slices.Equal(servers, []string{"127.0.0.11"}) {
		t.Errorf("its resolv.conf is %q", ready.ResolvConf)
	}
	for _, line := range []string{"10.242.84.2\tproxy\n", "10.242.80.2\tproxy\n"} {
		if !strings.Contains(ready.Hosts, line) {
			t.Errorf("%q is not in its hosts %q", line, ready.Hosts)
		}
	}
	if len(ready.Checks) != 18 || len(ready.Failed()) > 0 {
		t.Errorf("%d checks, %+v failed", len(ready.Checks), ready.Failed())
	}
}
