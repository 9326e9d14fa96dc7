package docker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim/inside"
)

// desiredProxy is the container of an invocation's proxy: the one neighbour of the agent, and the only
// way out. It holds nothing but sandplan's own program.
type desiredProxy struct {
	scope   planner.Scope
	addr    planner.Address
	command policy.Command
	image   string // the ID of sandplan.image
	subnet  planner.Subnet
	uplink  planner.Subnet
	dns     []netip.Addr
	limits  hclspec.Limits
	// hardened is proxyHost, made once for all.
	hardened container.HostConfig
	// priority says that the engine knows which of two networks the default route goes to (API 1.48).
	// Older ones take the first.
	priority bool
}

// proxySysctls make the proxy no router between its networks, and let it answer for addresses of the
// interface only that is asked. IP forwarding is on in every new network namespace of an engine.
func proxySysctls() map[string]string {
	return map[string]string{
		"net.ipv4.ip_forward":          "0",
		"net.ipv4.conf.all.arp_ignore": "1",
		"net.ipv4.conf.all.rp_filter":  "1",
	}
}

// proxyHost is the hardening of a proxy.
func proxyHost() container.HostConfig {
	host := hardened(ProxySeccomp())
	host.LogConfig.Config["max-size"] = "32m" // above what the proxy writes before it ends by itself
	return host
}

func (d desiredProxy) container() (containerSpec, error) {
	c := egress.Config{
		Invocation:  d.command.Invocation(),
		Declaration: "vendor." + d.command.Vendor(),
		Listen:      netip.AddrPortFrom(d.subnet.Proxy, egress.Port).String(),
		Agent:       d.subnet.Agent.String(),
		UID:         policy.ProxyUID,
		GID:         policy.ProxyUID,
		Addresses: []string{netip.PrefixFrom(d.subnet.Uplink, d.uplink.Prefix.Bits()).String(),
			netip.PrefixFrom(d.subnet.Proxy, d.subnet.Prefix.Bits()).String()},
		Gateway:     d.uplink.Gateway.String(),
		Nameservers: []string{engineResolver},
		DNS:         []string{},
		Sysctls:     proxySysctls(),
		Limits:      proxyLimits(d.limits),
	}
	for _, a := range d.dns {
		c.DNS = append(c.DNS, a.String())
	}
	for _, h := range d.command.Hosts() {
		c.Hosts = append(c.Hosts, egress.Host{Name: h.Name, Port: h.Port, Addresses: h.Addresses, TLS: h.TLS, Decl: h.Decl})
	}
	arg, err := c.Arg()
	if err != nil {
		return containerSpec{}, err
	}
	config := hardenedConfig(d.image, []string{commandEgress, arg})
	config.Hostname = egress.Hostname
	config.User = proxyUser
	host := limits{memory: c.Limits.MemoryBytes, nanoCPUs: int64(c.Limits.CPUs) * 1e9, pids: 64}.on(d.hardened)
	host.NetworkMode = networkMode(planner.AddrUplink)
	host.Sysctls = proxySysctls()
	uplink := newEndpoint(roleUplink, planner.AddrUplink, d.subnet.Uplink)
	if d.priority {
		uplink.settings.GwPriority = 1
	}
	return containerSpec{
		name:   objectName(d.scope, d.addr),
		config: config,
		host:   host,
		own:    true,
		// The default route goes to the network that the container is created on, on every engine tested.
		endpoints: []endpointSpec{uplink, newEndpoint(roleNetwork, d.addr.Invocation().With(planner.PartNetwork), d.subnet.Proxy)},
	}, nil
}

// Inside is what the proxy at an address must find in its container.
func (c *Compiled) Inside(a planner.Address) (inside.Proxy, error) {
	spec, ok := c.desired[a].(containerSpec)
	if !ok || len(spec.config.Cmd) != 2 || spec.config.Cmd[0] != commandEgress {
		return inside.Proxy{}, fmt.Errorf("%s is no proxy of the configuration that was compiled", a)
	}
	cfg, err := egress.ParseConfig(spec.config.Cmd[1])
	if err != nil {
		return inside.Proxy{}, fmt.Errorf("%s: %w", a, err)
	}
	return cfg.Inside(), nil
}

// proxyLimits are those of the declaration, and the proxy's own for what nobody declares.
func proxyLimits(l hclspec.Limits) egress.Limits {
	out := egress.DefaultLimits(l.Upload.V)
	out.DownloadBytes = l.Download.V // no bound is 0 on both sides
	out.Tunnels, out.TunnelsPerSecond = int(l.Tunnels.V), int(l.TunnelsPerSecond.V)
	out.CPUs = min(int(math.Ceil(l.CPUs.V)), maxProxyCPUs)
	return out
}

// maxProxyCPUs bounds the processors of a proxy. It has as many as its agent, in whole ones, so that it is not what
// an agent waits for, and the engine's machine has them wherever it has the agent's.
const maxProxyCPUs = 2

func networkMode(a planner.Address) container.NetworkMode { return container.NetworkMode(refTo(a)) }

func proxyRows() []row {
	at := "Config.Cmd[1]."
	rows := append(containerRows(), endpointRows(roleUplink)...)
	rows = append(rows, endpointRows(roleNetwork)...)
	for i := range rows {
		switch rows[i].path {
		case "NetworkSettings.Networks.uplink.IPAMConfig.IPv4Address":
			rows[i].label, rows[i].show = "uplink address", planner.Headline
		case "Image", "Config.User", "HostConfig.Memory", "HostConfig.MemorySwap", "HostConfig.PidsLimit":
			rows[i].attr, rows[i].show = "", planner.Detail // built in
		case "HostConfig.NanoCpus":
			rows[i].show = planner.Detail // the agent's says more
		}
	}
	rows = append(rows,
		row{path: at + "invocation", norm: text},
		row{path: at + "declaration", norm: text},
		row{path: at + "listen", norm: text, label: "listen", show: planner.Headline},
		row{path: at + "agent", norm: text},
		row{path: at + "uid", norm: integer},
		row{path: at + "gid", norm: integer},
		row{path: at + "addresses", norm: list},
		row{path: at + "gateway", norm: text},
		row{path: at + "nameservers", norm: list},
		row{path: at + "hosts", norm: each(hostText), attr: "hosts", show: planner.Headline},
		row{path: at + "hosts_decl", norm: list},
		row{path: at + "dns", norm: list, attr: "dns"},
		row{path: at + "sysctls", norm: dict},
		row{path: at + "limits.upload_bytes", norm: integer, attr: "limits.upload", unit: planner.UnitBytes},
		row{path: at + "limits.download_bytes", norm: integer, attr: "limits.download", unit: planner.UnitBound},
		row{path: at + "limits.tunnels", norm: integer, attr: "limits.tunnels"},
		row{path: at + "limits.tunnels_per_second", norm: integer, attr: "limits.tunnels_per_second"},
		row{path: at + "limits.cpus", norm: integer, attr: "limits.cpus"},
	)
	for _, name := range []string{"head_bytes", "head_ms", "hello_bytes", "hello_ms", "lookup_ms", "dial_ms", "log_bytes", "silence_ms", "memory_bytes"} {
		rows = append(rows, row{path: at + "limits." + name, norm: integer})
	}
	return rows
}

// hostText is a host as people write it: NAME:PORT, and what is out of the ordinary behind it.
func hostText(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var h egress.Host
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil || h.Decl != "" {
		return v
	}
	for _, a := range h.Addresses { // nothing but an address, which could say the rest as well
		if ip, err := netip.ParseAddr(a); err != nil || ip.String() != a {
			return v
		}
	}
	s := hostPort(h.Name, h.Port)
	if len(h.Addresses) > 0 {
		s += " at " + strings.Join(h.Addresses, ", ")
	}
	if !h.TLS {
		s += " without TLS"
	}
	return s
}

// splitHosts takes the addresses of declarations, which only log lines show, apart from the hosts.
func splitHosts(said tree) {
	hosts, ok := said["hosts"].([]any)
	decls := make([]any, len(hosts))
	if ok {
		hosts = slices.Clone(hosts) // nobody writes into what may be remembered
		said["hosts"] = hosts
	}
	for i, h := range hosts {
		if h, ok := h.(map[string]any); ok {
			decls[i] = h["decl"]
			h = maps.Clone(h)
			delete(h, "decl")
			hosts[i] = h
		}
	}
	said["hosts_decl"] = decls
}

func proxyKind() kind {
	k := containerKind(planner.KindProxy, proxyRows())
	k.needs = func(a planner.Address) []planner.Address {
		return []planner.Address{planner.AddrImage, planner.AddrUplink, a.Invocation().With(planner.PartNetwork)}
	}
	return k
}
