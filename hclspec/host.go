package hclspec

import (
	"net/netip"
	"sort"

	"github.com/hashicorp/hcl/v2"
)

var hostShape = &shape{label: "name", optional: []string{"port", "addresses", "tls"}}

// decodeHosts reads the host blocks of a custom vendor.
func decodeHosts(r *reader) []Host {
	var out []Host
	type endpoint struct {
		name string
		port int
	}
	first := map[endpoint]hcl.Range{}
	for _, s := range r.inner("host") {
		hr := r.inside(s)
		if err := checkHostname(s.name); err != nil {
			hr.diags = append(hr.diags, problem(InvalidHostname, s.block.LabelRanges[0], "%s", capital(stop(err.Error()))))
		}
		port := read(hr, "port", wholeNumber(1, 65535), 443)
		h := Host{
			Name:      s.name,
			Port:      Val[int]{V: int(port.V), Range: port.Range, Set: port.Set, Unknown: port.Unknown},
			Addresses: read(hr, "addresses", addresses, []netip.Addr{}),
			TLS:       read(hr, "tls", boolean, true),
			Range:     s.block.DefRange,
		}
		r.diags = append(r.diags, hr.diags...)
		e := endpoint{h.Name, h.Port.V}
		if at, ok := first[e]; ok && !h.Port.Unknown {
			r.diags = append(r.diags, problem(DuplicateName, s.block.DefRange, "The host %q with port %d is already declared at %s.", clip(h.Name), h.Port.V, at))
			continue
		}
		first[e] = h.Range
		out = append(out, h)
	}
	sortHosts(out)
	return out
}

func sortHosts(hosts []Host) {
	sort.SliceStable(hosts, func(i, j int) bool {
		if hosts[i].Name != hosts[j].Name {
			return hosts[i].Name < hosts[j].Name
		}
		return hosts[i].Port.V < hosts[j].Port.V
	})
}
