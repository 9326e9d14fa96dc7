package dockertest

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// fakeNetwork is a network: what inspect answers, but for who is on it.
type fakeNetwork struct{ tree tree }

func (n *fakeNetwork) id() string     { return text(n.tree["Id"]) }
func (n *fakeNetwork) name() string   { return text(n.tree["Name"]) }
func (n *fakeNetwork) internal() bool { return n.tree["Internal"] == true }
func (n *fakeNetwork) option(name string) string {
	return text(object(n.tree["Options"])["com.docker.network.bridge."+name])
}
func (n *fakeNetwork) bridge() string { return n.option("name") }

// subnet is the network's first, and its gateway.
func (n *fakeNetwork) subnet() (prefix netip.Prefix, gateway string) {
	configs := list(object(n.tree["IPAM"])["Config"])
	if len(configs) == 0 {
		return netip.Prefix{}, ""
	}
	prefix, _ = netip.ParsePrefix(text(object(configs[0])["Subnet"]))
	return prefix, text(object(configs[0])["Gateway"])
}

func (f *Fake) network(ref string) (*fakeNetwork, error) {
	if n := f.networks[ref]; n != nil {
		return n, nil
	}
	for _, id := range keys(f.networks) {
		if n := f.networks[id]; n.name() == ref || len(ref) >= 12 && strings.HasPrefix(id, ref) {
			return n, nil
		}
	}
	return nil, failure(http.StatusNotFound, "network %s not found", ref)
}

// addNetwork fills in what the engine does.
func (f *Fake) addNetwork(asked tree) *fakeNetwork {
	n := &fakeNetwork{tree: tree{"Name": "", "Driver": "bridge", "Scope": "local", "EnableIPv6": false, "Internal": false, "Attachable": false, "Ingress": false,
		"ConfigOnly": false, "ConfigFrom": tree{"Network": ""}, "Options": tree{}, "Labels": tree{},
		"IPAM": tree{"Driver": "default", "Options": nil, "Config": []any{}}}}
	if f.profile.enableIPv4 {
		n.tree["EnableIPv4"] = true
	}
	for name, value := range asked {
		if _, known := n.tree[name]; known && value != nil {
			n.tree[name] = value
		}
	}
	n.tree["Id"], n.tree["Created"], n.tree["Containers"] = f.newID(), stamp(time.Now()), tree{}
	f.networks[n.id()] = n
	return n
}

func (f *Fake) createNetwork(r *http.Request) (any, error) {
	asked := body(r)
	if other, err := f.network(text(asked["Name"])); err == nil {
		return nil, failure(http.StatusConflict, "network with name %s already exists", other.name())
	}
	wanted := &fakeNetwork{tree: asked}
	if p, _ := wanted.subnet(); p.IsValid() {
		for _, other := range f.networks {
			if q, _ := other.subnet(); q.IsValid() && q.Overlaps(p) {
				return nil, failure(http.StatusForbidden, "Pool overlaps with other one on this address space")
			}
		}
	}
	n := f.addNetwork(asked)
	f.Host.addBridge(n)
	f.tell("network", "create", n.id(), tree{"name": n.name(), "type": "bridge"})
	return tree{"Id": n.id(), "Warning": ""}, nil
}

func (f *Fake) listNetworks(r *http.Request) (any, error) {
	out := []any{}
	for _, id := range keys(f.networks) {
		n := f.networks[id]
		if matches(r, labelsIn(n.tree), func(filter, value string) bool { return filter == "name" && strings.Contains(n.name(), value) }) {
			out = append(out, n.tree)
		}
	}
	return out, nil
}

func (f *Fake) inspectNetwork(r *http.Request) (any, error) {
	n, err := f.network(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := clone(n.tree)
	out["Containers"] = f.attached(n)
	return out, nil
}

// attached are the endpoints of containers that run.
func (f *Fake) attached(n *fakeNetwork) tree {
	out := tree{}
	for _, c := range f.containers {
		for _, e := range c.endpoints() {
			e := object(e)
			if e["NetworkID"] != n.id() || text(e["EndpointID"]) == "" {
				continue
			}
			address := ""
			if text(e["IPAddress"]) != "" {
				address = fmt.Sprintf("%v/%v", e["IPAddress"], e["IPPrefixLen"])
			}
			out[c.id()] = tree{"Name": c.name(), "EndpointID": e["EndpointID"], "MacAddress": e["MacAddress"], "IPv4Address": address, "IPv6Address": ""}
		}
	}
	return out
}

func (f *Fake) deleteNetwork(r *http.Request) (any, error) {
	n, err := f.network(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if on := f.attached(n); len(on) > 0 {
		if !f.profile.gwPriority {
			return nil, failure(http.StatusForbidden, "error while removing network: network %s id %s has active endpoints", n.name(), n.id())
		}
		var names []string
		for _, id := range keys(on) {
			e := object(on[id])
			names = append(names, fmt.Sprintf("name:%q id:%q", e["Name"], short(text(e["EndpointID"]))))
		}
		return nil, failure(http.StatusForbidden, "error while removing network: network %s has active endpoints (%s)", n.name(), strings.Join(names, ", "))
	}
	delete(f.networks, n.id())
	f.Host.removeBridge(n.bridge())
	f.tell("network", "destroy", n.id(), tree{"name": n.name()})
	return nil, nil
}

// attachNetworks gives a new container the endpoints that it asked for.
func (f *Fake) attachNetworks(c *fakeContainer, asked tree) {
	networks := tree{}
	c.tree["NetworkSettings"] = tree{"Bridge": "", "EndpointID": "", "Gateway": "", "GlobalIPv6Address": "", "GlobalIPv6PrefixLen": 0, "HairpinMode": false,
		"IPAddress": "", "IPPrefixLen": 0, "IPv6Gateway": "", "LinkLocalIPv6Address": "", "LinkLocalIPv6PrefixLen": 0, "MacAddress": "",
		"Networks": networks, "Ports": tree{}, "SandboxID": "", "SandboxKey": "", "SecondaryIPAddresses": nil, "SecondaryIPv6Addresses": nil}
	if c.config()["NetworkDisabled"] == true {
		return
	}
	mode := text(c.host()["NetworkMode"])
	if strings.HasPrefix(mode, "container:") {
		return
	}
	if mode == "default" {
		mode = "bridge"
	}
	endpoints := object(object(asked["NetworkingConfig"])["EndpointsConfig"])
	endpoint := f.endpoint(object(endpoints[mode]))
	name := mode
	if n, err := f.network(mode); err == nil {
		name = n.name()
	}
	networks[name] = endpoint
}

// endpoint is one that is not live.
func (f *Fake) endpoint(asked tree) tree {
	out := tree{"IPAMConfig": nil, "Links": nil, "Aliases": nil, "DriverOpts": nil, "NetworkID": "", "EndpointID": "", "Gateway": "", "IPAddress": "",
		"IPPrefixLen": 0, "IPv6Gateway": "", "GlobalIPv6Address": "", "GlobalIPv6PrefixLen": 0, "MacAddress": ""}
	if !f.profile.ownAliases {
		out["DNSNames"] = nil
	}
	if f.profile.gwPriority {
		out["GwPriority"] = 0
	}
	for name, value := range asked {
		if _, known := out[name]; known {
			out[name] = value
		}
	}
	return out
}

// join makes a container's endpoints live, or none of them.
func (f *Fake) join(c *fakeContainer) error {
	found := map[string]*fakeNetwork{}
	for _, name := range keys(c.endpoints()) {
		ref := name
		if mode := text(c.host()["NetworkMode"]); !f.profile.byName && len(mode) == 64 && len(c.endpoints()) == 1 {
			ref = mode // as it was asked for, not as it is shown
		}
		n, err := f.network(ref)
		if err != nil {
			return err
		}
		if holder := f.holder(n, text(object(object(c.endpoints()[name])["IPAMConfig"])["IPv4Address"])); holder != "" {
			return failure(http.StatusForbidden, "Address already in use")
		}
		found[name] = n
	}
	for _, name := range keys(found) {
		f.live(c, name, found[name])
	}
	if _, isHost := found["host"]; !isHost && c.config()["NetworkDisabled"] != true {
		c.settings()["SandboxID"] = f.newID()
		c.settings()["SandboxKey"] = "/var/run/docker/netns/" + short(c.id())
	}
	return nil
}

// holder is the container that has an address of a network now.
func (f *Fake) holder(n *fakeNetwork, address string) string {
	for id, e := range f.attached(n) {
		if has, _, _ := strings.Cut(text(object(e)["IPv4Address"]), "/"); address != "" && has == address {
			return id
		}
	}
	return ""
}

// live makes one endpoint live.
func (f *Fake) live(c *fakeContainer, name string, n *fakeNetwork) {
	e := object(c.endpoints()[name])
	e["NetworkID"], e["EndpointID"] = n.id(), f.newID()
	prefix, gateway := n.subnet()
	if prefix.IsValid() {
		address := text(object(e["IPAMConfig"])["IPv4Address"])
		if address == "" {
			address = prefix.Addr().Next().Next().Next().Next().String()
		}
		e["IPAddress"], e["IPPrefixLen"], e["MacAddress"] = address, prefix.Bits(), "02:42:"+macOf(address)
		if !n.internal() || f.profile.gateway {
			e["Gateway"] = gateway
		}
		f.nameEndpoint(c, e)
	}
	f.Host.plug(n.bridge(), text(e["EndpointID"]))
	f.tell("network", "connect", n.id(), tree{"container": c.id(), "name": n.name()})
}

// nameEndpoint writes down under which names others on the network find a container.
func (f *Fake) nameEndpoint(c *fakeContainer, e tree) {
	names := []any{short(c.id())}
	if host := text(c.config()["Hostname"]); host != short(c.id()) {
		names = append(names, host)
	}
	if f.profile.ownAliases {
		e["Aliases"] = names
		return
	}
	e["DNSNames"] = append([]any{c.name()}, names...)
}

func macOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "00:00:00:00"
	}
	b := a.As4()
	return fmt.Sprintf("%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// leave ends all endpoints of a container.
func (f *Fake) leave(c *fakeContainer) {
	for _, name := range keys(c.endpoints()) {
		f.unlive(c, object(c.endpoints()[name]))
	}
	if !f.profile.keepsSandbox {
		c.settings()["SandboxID"], c.settings()["SandboxKey"] = "", ""
	}
}

func (f *Fake) unlive(c *fakeContainer, e tree) {
	if text(e["EndpointID"]) == "" {
		return
	}
	f.Host.unplug(text(e["EndpointID"]))
	for _, field := range []string{"EndpointID", "Gateway", "IPAddress", "MacAddress"} {
		e[field] = ""
	}
	e["IPPrefixLen"] = 0
	f.tell("network", "disconnect", text(e["NetworkID"]), tree{"container": c.id()})
}

func (f *Fake) connect(r *http.Request) (any, error) {
	asked := body(r)
	n, err := f.network(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, err := f.container(text(asked["Container"]))
	if err != nil {
		return nil, err
	}
	if _, on := c.endpoints()[n.name()]; on {
		return nil, failure(http.StatusForbidden, "endpoint with name %s already exists in network %s", c.name(), n.name())
	}
	c.endpoints()[n.name()] = f.endpoint(object(asked["EndpointConfig"]))
	f.nameEndpoint(c, object(c.endpoints()[n.name()]))
	if c.runs() { // connecting a container that does not run tells nobody
		f.live(c, n.name(), n)
	}
	return nil, nil
}

func (f *Fake) disconnect(r *http.Request) (any, error) {
	asked := body(r)
	n, err := f.network(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, err := f.container(text(asked["Container"]))
	if err != nil {
		return nil, err
	}
	if e := object(c.endpoints()[n.name()]); e != nil {
		f.unlive(c, e)
		delete(c.endpoints(), n.name())
	}
	return nil, nil
}
