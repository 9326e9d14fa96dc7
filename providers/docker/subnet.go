package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// The sizes of our networks. /29 is the smallest that holds a gateway, a proxy and an agent; /22 gives
// the proxies of 1021 invocations an address on the uplink.
const (
	networkBits = 29
	uplinkBits  = 22
)

// pathUplinkAddress is the row of a proxy for its address on the uplink.
const pathUplinkAddress = "NetworkSettings.Networks.uplink.IPAMConfig.IPv4Address"

// addressing is all that decides which addresses a scope gets.
type addressing struct {
	pool netip.Prefix
	// invocations are those that are wanted, in the order in which they choose.
	invocations []planner.Address
	// uplink and networks are what networks of the scope have now, wanted or not; proxies are the
	// addresses on the uplink that proxies have now.
	uplink   netip.Prefix
	networks map[planner.Address]netip.Prefix
	proxies  map[planner.Address]netip.Addr
	taken    []planner.Taken
}

// allocation chooses the addresses of a scope: what exists keeps its own as long as nobody else uses
// them, what is new gets the first that is free.
func allocation(pool netip.Prefix, invocations []planner.Address, s planner.Snapshot) (planner.Allocation, error) {
	a := addressing{pool: pool, invocations: slices.Clone(invocations), taken: s.Taken,
		networks: map[planner.Address]netip.Prefix{}, proxies: map[planner.Address]netip.Addr{}}
	planner.SortAddresses(a.invocations)
	for _, o := range s.Objects {
		switch o.Kind {
		case planner.KindUplink:
			a.uplink, _ = netip.ParsePrefix(observedText(o, pathSubnet))
		case planner.KindNetwork:
			if p, err := netip.ParsePrefix(observedText(o, pathSubnet)); err == nil {
				a.networks[o.Addr.Invocation()] = p
			}
		case planner.KindProxy:
			if ip, err := netip.ParseAddr(observedText(o, pathUplinkAddress)); err == nil {
				a.proxies[o.Addr.Invocation()] = ip
			}
		}
	}
	return a.allocate()
}

// observedText is the text that an object shows at a path, "" when there is none.
func observedText(o planner.Object, path string) string {
	var s string
	for _, f := range o.Observed {
		if f.Path == path {
			_ = f.Value.Decode(&s) // anything but a text is none
		}
	}
	return s
}

func (a addressing) allocate() (planner.Allocation, error) {
	out := planner.Allocation{Pool: a.pool, Networks: map[planner.Address]planner.Subnet{}}
	var used ranges
	for _, t := range a.taken {
		used.add(t.Prefix)
	}
	// What stays comes first, so that nothing new can take it; the uplink before the networks, because
	// a /22 is hard to find among many /29.
	kept := a.keep(&used)
	uplink := a.uplink
	if !a.fits(uplink, uplinkBits) || a.isTaken(uplink) {
		var ok bool
		if uplink, ok = used.free(a.pool, uplinkBits); !ok {
			return out, a.exhausted("the uplink, a /22", 1, 0)
		}
	}
	used.add(uplink)
	out.Uplink = planner.Subnet{Prefix: uplink, Gateway: uplink.Addr().Next()}

	hosts, err := a.uplinkAddresses(uplink)
	if err != nil {
		return out, err
	}
	for i, inv := range a.invocations {
		p, ok := kept[inv]
		if !ok {
			if p, ok = used.free(a.pool, networkBits); !ok {
				return out, a.exhausted("networks of invocations, a /29 each", len(a.invocations), len(a.invocations)-i)
			}
			used.add(p)
		}
		gateway := p.Addr().Next()
		out.Networks[inv] = planner.Subnet{Prefix: p, Gateway: gateway, Proxy: gateway.Next(), Agent: gateway.Next().Next(), Uplink: hosts[inv]}
	}
	out.Free = min(used.count(a.pool, networkBits), uplinkHosts-len(a.invocations))
	return out, nil
}

// keep marks what the scope's networks have now as used, and returns those that may stay. Networks of
// invocations that are no longer wanted count too: they may be removed after the new ones are made.
func (a addressing) keep(used *ranges) map[planner.Address]netip.Prefix {
	kept := map[planner.Address]netip.Prefix{}
	var own ranges
	if a.fits(a.uplink, uplinkBits) && !a.isTaken(a.uplink) {
		own.add(a.uplink)
	}
	for _, inv := range sortedAddresses(a.networks) {
		p := a.networks[inv]
		if a.fits(p, networkBits) && !a.isTaken(p) && !own.overlaps(p) {
			kept[inv] = p
		}
		own.add(p)
		used.add(p)
	}
	return kept
}

func (a addressing) fits(p netip.Prefix, bits int) bool {
	return p.IsValid() && p.Bits() == bits && p == p.Masked() && a.pool.Contains(p.Addr())
}

func (a addressing) isTaken(p netip.Prefix) bool {
	return slices.ContainsFunc(a.taken, func(t planner.Taken) bool { return t.Prefix.Overlaps(p) })
}

// uplinkHosts are the addresses of a /22 without its own, its broadcast address and the gateway.
const uplinkHosts = 1<<(32-uplinkBits) - 3

// uplinkAddresses gives each proxy an address on the uplink. A proxy keeps its own: another one would
// be another declaration, and its container would be replaced whenever an earlier invocation goes.
// Those of proxies that will go are not given out again at once.
func (a addressing) uplinkAddresses(uplink netip.Prefix) (map[planner.Address]netip.Addr, error) {
	first := number(uplink.Addr()) + 2
	last := first + uplinkHosts - 1
	out, held := map[planner.Address]netip.Addr{}, map[uint32]bool{}
	for _, inv := range sortedAddresses(a.proxies) {
		n := number(a.proxies[inv])
		if uplink.Contains(a.proxies[inv]) && n >= first && n <= last && !held[n] {
			held[n] = true
			out[inv] = a.proxies[inv]
		}
	}
	next := first
	for _, inv := range a.invocations {
		if _, ok := out[inv]; ok {
			continue
		}
		for held[next] {
			next++
		}
		if next > last {
			return nil, fmt.Errorf("the uplink %s has addresses for %d proxies, %d are wanted or still there; "+
				"divide the invocations among projects or workspaces", uplink, uplinkHosts, len(out)+1)
		}
		held[next] = true
		out[inv] = address(next)
	}
	return out, nil
}

// exhausted says in numbers why the pool is not enough, and who else uses it.
func (a addressing) exhausted(what string, wanted, missing int) error {
	size := uint64(1) << (networkBits - a.pool.Bits())
	var others ranges
	var names []string
	for _, t := range a.taken {
		if !t.Prefix.Overlaps(a.pool) {
			continue
		}
		others.add(t.Prefix)
		if t.Prefix.Bits() <= a.pool.Bits() {
			return fmt.Errorf("subnet_pool %s lies within what %s uses (%s): no subnet in it is free; choose another subnet_pool", a.pool, t.By, t.Prefix)
		}
		names = append(names, fmt.Sprintf("%s (%s)", t.By, t.Prefix))
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], fmt.Sprintf("%d more", len(names)-shown))
	}
	by := ""
	if len(names) > 0 {
		by = fmt.Sprintf(", %d of them used by others: %s", size-uint64(others.count(a.pool, networkBits)), strings.Join(names, ", "))
	}
	lack := ""
	if missing > 0 {
		lack = fmt.Sprintf("; %d of %d invocations have none", missing, wanted)
	}
	return fmt.Errorf("subnet_pool %s has no room for %s: it holds %d subnets of /29, %d of them used by the uplink%s%s; choose a larger subnet_pool",
		a.pool, what, size, 1<<(networkBits-uplinkBits), by, lack)
}

// ranges is a set of IPv4 addresses as sorted ranges that neither overlap nor touch: a pool may hold two
// million subnets, and is never walked one by one.
type ranges struct{ all []span }

type span struct{ first, last uint32 }

func spanOf(p netip.Prefix) (span, bool) {
	if !p.Addr().Is4() {
		return span{}, false
	}
	first := number(p.Masked().Addr())
	return span{first, first | uint32(uint64(1)<<(32-p.Bits())-1)}, true
}

func (r *ranges) add(p netip.Prefix) {
	s, ok := spanOf(p)
	if !ok {
		return
	}
	// The ranges that s overlaps or touches become one with it.
	lo := sort.Search(len(r.all), func(i int) bool { return uint64(r.all[i].last)+1 >= uint64(s.first) })
	hi := sort.Search(len(r.all), func(i int) bool { return uint64(r.all[i].first) > uint64(s.last)+1 })
	if lo < hi {
		s.first, s.last = min(s.first, r.all[lo].first), max(s.last, r.all[hi-1].last)
	}
	r.all = slices.Replace(r.all, lo, hi, s)
}

// hit is a range that has an address in common with s.
func (r *ranges) hit(s span) (span, bool) {
	i := sort.Search(len(r.all), func(i int) bool { return r.all[i].last >= s.first })
	if i < len(r.all) && r.all[i].first <= s.last {
		return r.all[i], true
	}
	return span{}, false
}

func (r *ranges) overlaps(p netip.Prefix) bool {
	s, ok := spanOf(p)
	_, hit := r.hit(s)
	return ok && hit
}

// free is the first subnet of a size within the pool that holds no address of the set.
func (r *ranges) free(pool netip.Prefix, bits int) (netip.Prefix, bool) {
	var out netip.Prefix
	r.gaps(pool, bits, func(first uint32, _ int) bool {
		out = netip.PrefixFrom(address(first), bits)
		return false
	})
	return out, out.IsValid()
}

// count is how many such subnets there are.
func (r *ranges) count(pool netip.Prefix, bits int) int {
	total := 0
	r.gaps(pool, bits, func(_ uint32, n int) bool { total += n; return true })
	return total
}

// gaps calls f with each run of free subnets: its first address, and how many there are.
func (r *ranges) gaps(pool netip.Prefix, bits int, f func(first uint32, n int) bool) {
	whole, ok := spanOf(pool)
	if !ok || bits < pool.Bits() {
		return
	}
	size := uint64(1) << (32 - bits)
	for at := uint64(whole.first); at+size-1 <= uint64(whole.last); {
		end := uint64(whole.last) + 1
		if i := sort.Search(len(r.all), func(i int) bool { return uint64(r.all[i].last) >= at }); i < len(r.all) {
			end = min(end, uint64(r.all[i].first))
		}
		if end > at && (end-at)/size > 0 {
			if !f(uint32(at), int((end-at)/size)) {
				return
			}
		}
		// Behind the range that ends the gap, at the next multiple of the size.
		h, ok := r.hit(span{uint32(max(end, at)), whole.last})
		if !ok {
			return
		}
		at = (uint64(h.last) + size) / size * size
	}
}

func number(ip netip.Addr) uint32 {
	b := ip.Unmap().As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func sortedAddresses[V any](m map[planner.Address]V) []planner.Address {
	out := make([]planner.Address, 0, len(m))
	for a := range m {
		out = append(out, a)
	}
	planner.SortAddresses(out)
	return out
}
