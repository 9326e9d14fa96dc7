package docker

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func inv(name string) planner.Address { return planner.Address("invocation." + name) }

func TestAllocate(t *testing.T) {
	const pool = "10.213.0.0/16"
	type prefixes = map[planner.Address]netip.Prefix
	for _, tc := range []struct {
		reason string
		a      addressing
		uplink string
		nets   string
	}{
		{"an empty engine", addressing{invocations: []planner.Address{inv("a"), inv("b")}},
			"10.213.0.0/22", "a 10.213.4.0/29 .4.2 .4.3 10.213.0.2, b 10.213.4.8/29 .4.10 .4.11 10.213.0.3"},
		{"what exists keeps its own", addressing{invocations: []planner.Address{inv("a"), inv("b")},
			uplink: prefix("10.213.8.0/22"), networks: prefixes{inv("b"): prefix("10.213.4.0/29")},
			proxies: map[planner.Address]netip.Addr{inv("b"): netip.MustParseAddr("10.213.8.2")}},
			"10.213.8.0/22", "a 10.213.0.0/29 .0.2 .0.3 10.213.8.3, b 10.213.4.0/29 .4.2 .4.3 10.213.8.2"},
		{"what goes is not given out again at once", addressing{invocations: []planner.Address{inv("new")},
			uplink: prefix("10.213.0.0/22"), networks: prefixes{inv("old"): prefix("10.213.4.0/29")},
			proxies: map[planner.Address]netip.Addr{inv("old"): netip.MustParseAddr("10.213.0.2")}},
			"10.213.0.0/22", "new 10.213.4.8/29 .4.10 .4.11 10.213.0.3"},
		{"others' networks are stepped over", addressing{invocations: []planner.Address{inv("a")},
			taken: []planner.Taken{{Prefix: prefix("10.213.2.0/24")}, {Prefix: prefix("10.213.4.4/32")}, {Prefix: prefix("172.17.0.0/16")}}},
			"10.213.8.0/22", "a 10.213.0.0/29 .0.2 .0.3 10.213.8.2"},
		{"a route that came later makes way", addressing{invocations: []planner.Address{inv("a")}, uplink: prefix("10.213.0.0/22"),
			networks: prefixes{inv("a"): prefix("10.213.4.0/29")}, taken: []planner.Taken{{Prefix: prefix("10.213.0.0/21")}}},
			"10.213.8.0/22", "a 10.213.12.0/29 .12.2 .12.3 10.213.8.2"},
		{"another pool, another size: not ours to keep", addressing{invocations: []planner.Address{inv("a"), inv("b")}, uplink: prefix("10.99.0.0/22"),
			networks: prefixes{inv("a"): prefix("10.213.4.0/28"), inv("b"): prefix("10.99.4.0/29")}},
			"10.213.0.0/22", "a 10.213.4.16/29 .4.18 .4.19 10.213.0.2, b 10.213.4.24/29 .4.26 .4.27 10.213.0.3"},
		{"two at the same subnet: the second moves", addressing{invocations: []planner.Address{inv("a"), inv("b")}, uplink: prefix("10.213.0.0/22"),
			networks: prefixes{inv("a"): prefix("10.213.4.0/29"), inv("b"): prefix("10.213.4.0/29")}},
			"10.213.0.0/22", "a 10.213.4.0/29 .4.2 .4.3 10.213.0.2, b 10.213.4.8/29 .4.10 .4.11 10.213.0.3"},
	} {
		tc.a.pool = prefix(pool)
		got, err := tc.a.allocate()
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		var nets []string
		for _, a := range sortedAddresses(got.Networks) {
			n := got.Networks[a]
			tail := func(ip netip.Addr) string { return strings.TrimPrefix(ip.String(), "10.213") }
			nets = append(nets, fmt.Sprintf("%s %s %s %s %s", strings.TrimPrefix(string(a), "invocation."), n.Prefix, tail(n.Proxy), tail(n.Agent), n.Uplink))
		}
		if diff := cmp.Diff(tc.uplink+"; "+tc.nets, got.Uplink.Prefix.String()+"; "+strings.Join(nets, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func TestAllocateExhausted(t *testing.T) {
	many := func(n int) []planner.Address {
		var out []planner.Address
		for i := range n {
			out = append(out, inv(fmt.Sprintf("a[%d]", i)))
		}
		return out
	}
	for _, tc := range []struct {
		reason, pool string
		n            int
		taken        []planner.Taken
		want         []string
	}{
		{"a /21 has room for 128 beside the uplink", "10.213.0.0/21", 129, nil,
			[]string{"subnet_pool 10.213.0.0/21", "256 subnets of /29", "128 of them used by the uplink", "1 of 129 invocations have none"}},
		{"others are counted and named", "10.213.0.0/21", 100, []planner.Taken{{Prefix: prefix("10.213.4.0/23"), By: `network "x"`}},
			[]string{"64 of them used by others", `network "x" (10.213.4.0/23)`, "36 of 100 invocations have none"}},
		{"a route over the whole pool", "10.213.0.0/16", 1, []planner.Taken{{Prefix: prefix("10.0.0.0/8"), By: "the route 10.0.0.0/8 dev tun0"}},
			[]string{"lies within what the route 10.0.0.0/8 dev tun0 uses", "choose another subnet_pool"}},
		{"no /22 left", "10.213.0.0/21", 1, []planner.Taken{{Prefix: prefix("10.213.3.0/32"), By: "a"}, {Prefix: prefix("10.213.7.0/32"), By: "b"}},
			[]string{"no room for the uplink, a /22"}},
		{"more proxies than a /22 has addresses", "10.0.0.0/8", uplinkHosts + 1, nil, []string{"has addresses for 1021 proxies, 1022 are wanted", "divide"}},
	} {
		_, err := addressing{pool: prefix(tc.pool), invocations: many(tc.n), taken: tc.taken}.allocate()
		for _, part := range tc.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", tc.reason, err, part)
			}
		}
	}
	full, err := addressing{pool: prefix("10.213.0.0/21"), invocations: many(128)}.allocate()
	if err != nil || full.Free != 0 {
		t.Errorf("128 invocations fill a /21 exactly: free %d, %v", full.Free, err)
	}
	some, err := addressing{pool: prefix("10.213.0.0/21"), invocations: many(28)}.allocate()
	if err != nil || some.Free != 100 {
		t.Errorf("28 invocations in a /21 leave room for 100: free %d, %v", some.Free, err)
	}
}

// TestAllocateProperties holds the choice of addresses to its promises on random engines: nothing
// overlaps anything, what may stay stays, and choosing again changes nothing.
func TestAllocateProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(bits int) netip.Prefix {
		return netip.PrefixFrom(address(number(netip.MustParseAddr("10.213.0.0"))|rng.Uint32N(1<<14)), bits).Masked()
	}
	for round := range 500 {
		a := addressing{pool: prefix("10.213.0.0/18"), networks: map[planner.Address]netip.Prefix{}, proxies: map[planner.Address]netip.Addr{}}
		for range rng.IntN(6) {
			a.taken = append(a.taken, planner.Taken{Prefix: pick(18 + rng.IntN(15)), By: "x"})
		}
		if rng.IntN(2) == 0 {
			a.uplink = pick(22)
		}
		for i := range rng.IntN(60) {
			name := inv(fmt.Sprintf("a[%d]", i))
			if rng.IntN(3) > 0 {
				a.invocations = append(a.invocations, name)
			}
			if rng.IntN(2) == 0 {
				a.networks[name] = pick(29)
			}
			if rng.IntN(2) == 0 && a.uplink.IsValid() {
				a.proxies[name] = address(number(a.uplink.Addr()) + rng.Uint32N(1024))
			}
		}
		got, err := a.allocate()
		if err != nil {
			continue // full: TestAllocateExhausted
		}
		checkAllocation(t, round, a, got)
		again := a
		again.uplink, again.networks, again.proxies = got.Uplink.Prefix, map[planner.Address]netip.Prefix{}, map[planner.Address]netip.Addr{}
		for name, n := range got.Networks {
			again.networks[name], again.proxies[name] = n.Prefix, n.Uplink
		}
		if second, err := again.allocate(); err != nil || !cmp.Equal(got.Networks, second.Networks, cmp.Comparer(func(x, y planner.Subnet) bool { return x == y })) {
			t.Fatalf("round %d: choosing again changes what was chosen (%v)", round, err)
		}
	}
}

func checkAllocation(t *testing.T, round int, a addressing, got planner.Allocation) {
	t.Helper()
	used := []netip.Prefix{got.Uplink.Prefix}
	hosts := map[netip.Addr]bool{got.Uplink.Gateway: true}
	for _, name := range a.invocations {
		n := got.Networks[name]
		if kept, ok := a.networks[name]; ok && kept != n.Prefix && !a.isTaken(kept) && !kept.Overlaps(got.Uplink.Prefix) {
			free := true
			for other, p := range a.networks {
				free = free && (other == name || p != kept)
			}
			if free {
				t.Fatalf("round %d: %s had %s, which is free, and got %s", round, name, kept, n.Prefix)
			}
		}
		for _, ip := range []netip.Addr{n.Gateway, n.Proxy, n.Agent} {
			if !n.Prefix.Contains(ip) || ip == n.Prefix.Addr() {
				t.Fatalf("round %d: %s is no host of %s", round, ip, n.Prefix)
			}
		}
		if hosts[n.Uplink] || !got.Uplink.Prefix.Contains(n.Uplink) {
			t.Fatalf("round %d: %s is given out twice, or is not on the uplink", round, n.Uplink)
		}
		hosts[n.Uplink] = true
		used = append(used, n.Prefix)
	}
	for i, p := range used {
		if a.isTaken(p) || !a.pool.Contains(p.Addr()) || p != p.Masked() {
			t.Fatalf("round %d: %s is taken, outside the pool, or no subnet", round, p)
		}
		for _, q := range used[:i] {
			if p.Overlaps(q) {
				t.Fatalf("round %d: %s and %s overlap", round, p, q)
			}
		}
	}
}

func TestTakenSeesRoutesOfAllTables(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	at := func(offset uint32, bits int) netip.Prefix {
		return netip.PrefixFrom(address(number(testPool().Addr())+offset), bits)
	}
	route, table := at(2048, 24), strconv.Itoa(1_000_000+os.Getpid())
	ip(t, "route", "add", "blackhole", route.String(), "table", table)
	defer ip(t, "route", "del", "blackhole", route.String(), "table", table)
	d := testUplink(s, 1)
	want := resourceOf(t, e, planner.KindUplink, planner.AddrUplink, d)
	created(t, e, s, want, d)
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, taken := range snap.Taken {
		by[taken.Prefix.String()] = taken.By
		if taken.Prefix.Overlaps(d.Subnet) {
			t.Errorf("the scope's own uplink counts as taken: %+v", taken)
		}
	}
	if got := by[route.String()]; got != "the route "+route.String()+" table "+table {
		t.Errorf("a route in a table of its own is seen as %q", got)
	}
	// Usually 172.17.0.0/16; daemon.json may say otherwise.
	bridge, err := e.inspect(t.Context(), "/networks/bridge")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := lookup(bridge, mustParsePath(pathSubnet)).(string)
	if got := by[own]; got != `network "bridge"` {
		t.Errorf("Docker's own network %q is seen as %q", own, got)
	}
	alloc, err := allocation(at(2048, 21), []planner.Address{inv("a")}, snap)
	if err != nil || alloc.Uplink.Prefix != at(3072, 22) || alloc.Networks[inv("a")].Prefix != at(2048+256, 29) {
		t.Errorf("around the route: %+v, %v", alloc, err)
	}
	alloc, err = allocation(testPool(), []planner.Address{inv("a")}, snap)
	if err != nil || alloc.Uplink.Prefix != d.Subnet {
		t.Errorf("the uplink that exists is not kept: %+v, %v", alloc.Uplink, err)
	}
}
