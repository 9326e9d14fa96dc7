package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/sandplan/sandplan/planner"
)

// Settings of a bridge are the kernel's, not the engine's: they are read from /proc/sys, set there, and
// are the only thing that is put back in place instead of being made anew.

// lostWithBridge is told when a setting differs.
const lostWithBridge = "the kernel forgets the setting when the engine makes the bridge anew, as after a reboot"

// settleTime is how long a starting or ending container may be seen by only one of kernel and engine.
const settleTime = 50 * time.Millisecond

// setting is one of the kernel's settings of one interface.
type setting struct {
	name   string
	family string // ipv4, ipv6
	value  string
	// holds reports for which value of the machine's setting "all" the interface's still counts; nil where
	// there is no such thing.
	holds func(all string) bool
}

func (s setting) path(bridge string) string {
	return filepath.Join("/proc/sys/net", s.family, "conf", bridge, s.name)
}

// bridgeSettings keep the host's other addresses out of reach. On engines 26.1 and 28.5 a datagram that
// was bound to the interface reached a listener on docker0's address across an internal bridge without
// any address of its own, and on 20.10 the host answered ARP for it; with arp_ignore and rp_filter at 1
// neither happened.
func bridgeSettings() []setting {
	return []setting{
		// The greater of the two counts: 2 and 8 are stricter, the others are not.
		{"arp_ignore", "ipv4", "1", anyOf("0", "1", "2", "8")},
		// The greater counts here, too. On an interface without an address the kernel drops all with 2 as with 1
		// (seen with broadcast, multicast and device-bound datagrams), and distributions set 2.
		{"rp_filter", "ipv4", "1", anyOf("0", "1", "2")},
		{"proxy_arp", "ipv4", "0", anyOf("0")},
		// An engine without its userland proxy sets it, and with it 127.0.0.1 of the host can be routed to.
		{"route_localnet", "ipv4", "0", anyOf("0")},
		// A bridge has a link-local address otherwise, on every engine. Writing "all" writes it everywhere.
		{"disable_ipv6", "ipv6", "1", nil},
	}
}

func anyOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

// bridgeLink is the state of a bridge's interface itself. The engine makes a bridge so; whatever else it is
// in was made by somebody with root on this machine.
type bridgeLink struct {
	up  bool
	mtu int
	// groupForward are the groups of link-local frames (LLDP, 802.1X) that the bridge passes on.
	groupForward uint16
}

func wantedLink() bridgeLink { return bridgeLink{up: true, mtu: bridgeMTU} }

// bridgeMTU is the value of optionMTU as a number.
const bridgeMTU = 1500

// linkState reads the interface of a bridge. Of what is no bridge it says nothing that is wanted.
func linkState(link netlink.Link) bridgeLink {
	b, ok := link.(*netlink.Bridge)
	if !ok {
		return bridgeLink{}
	}
	s := bridgeLink{up: b.Flags&net.FlagUp != 0, mtu: b.MTU}
	if b.GroupFwdMask != nil {
		s.groupForward = *b.GroupFwdMask
	}
	return s
}

// tree adds the state to the part "Bridge" of a network's tree.
func (s bridgeLink) tree(v map[string]any) {
	v["up"] = s.up
	v["mtu"] = json.Number(strconv.Itoa(s.mtu))
	v["group_fwd_mask"] = json.Number(strconv.Itoa(int(s.groupForward)))
}

// settingRows are the rows of what can be put back on a bridge.
func settingRows() []row {
	const changed = "somebody with root on this machine changed the interface"
	out := []row{
		{path: "Bridge.up", norm: boolean, class: planner.ClassSet, reason: changed},
		{path: "Bridge.mtu", norm: integer, class: planner.ClassSet, reason: changed},
		{path: "Bridge.group_fwd_mask", norm: integer, class: planner.ClassSet, reason: changed},
	}
	for _, s := range bridgeSettings() {
		out = append(out, row{path: "Bridge." + s.name, norm: exact, class: planner.ClassSet, reason: lostWithBridge})
	}
	return out
}

// wantedBridge and observedBridge are the part "Bridge" of a network's tree. The addresses are the
// host's own on the bridge.
func wantedBridge(addresses ...string) map[string]any {
	v := map[string]any{"foreign_ports": json.Number("0"), "addresses": texts(addresses), "joined": []any{}, "answers_for": []any{}}
	wantedLink().tree(v)
	for _, s := range bridgeSettings() {
		v[s.name] = json.Number(s.value)
	}
	return v
}

// observedBridge reads the settings of a bridge that we named. A setting that cannot be read is null
// and so differs: where the engine's bridges are not here, nothing can be said of them.
func (l *look) observedBridge(bridge string, state bridgeState, foreignPorts int) map[string]any {
	v := map[string]any{"foreign_ports": json.Number(strconv.Itoa(foreignPorts)), "addresses": texts(state.addresses),
		"joined": texts(state.joined), "answers_for": texts(state.answersFor)}
	state.link.tree(v)
	if !ownBridge.MatchString(bridge) { // the name comes from the engine and becomes part of a path
		return v
	}
	for _, s := range bridgeSettings() {
		v[s.name] = readSetting(l.engine.options.Kernel, s.path(bridge))
		switch {
		case v[s.name] == nil && !isFamilyThere(s.family):
			v[s.name] = json.Number(s.value)
		case v[s.name] == json.Number(s.value):
			if stronger := l.overruled(s); stronger != "" {
				v[s.name] = stronger
			}
		}
	}
	return v
}

// overruled is what overrules a setting, read once for all bridges.
func (l *look) overruled(s setting) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	stronger, ok := l.stronger[s.name]
	if !ok {
		if l.stronger == nil {
			l.stronger = map[string]string{}
		}
		stronger = overruled(l.engine.options.Kernel, s)
		l.stronger[s.name] = stronger
	}
	return stronger
}

// overruled says what overrules a setting that a bridge has: the machine's own, of the name "all", which the
// kernel combines with that of each interface. "" is nothing.
func overruled(kernel Kernel, s setting) string {
	if s.holds == nil {
		return ""
	}
	all := readSetting(kernel, s.path("all"))
	n, _ := all.(json.Number)
	if all == nil || s.holds(n.String()) {
		return ""
	}
	return fmt.Sprintf("overruled by net.%s.conf.all.%s=%s", s.family, s.name, n)
}

// isFamilyThere reports whether the kernel has a protocol family at all: one without IPv6 has no
// settings of it, and no need for them.
func isFamilyThere(family string) bool {
	_, err := os.Stat(filepath.Join("/proc/sys/net", family))
	return err == nil
}

func texts(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// readSetting is a number below /proc/sys; nil when there is none, which no row takes for a number.
func readSetting(kernel Kernel, path string) any {
	raw, err := kernel.Setting(path)
	if err != nil {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(raw))
	if err != nil {
		return nil
	}
	return json.Number(strconv.Itoa(n))
}

// bridgeState is what the kernel shows of a bridge.
type bridgeState struct {
	index     int      // of the interface
	ports     int      // interfaces attached to it
	addresses []string // the host's on it, of both families
	link      bridgeLink
	// joined are interfaces of the host that are on the bridge without a port of their own: stacked on it
	// (VLANs, macvlans), or a VRF that it is in. answersFor are foreign addresses that the host answers for on it.
	joined, answersFor []string
}

// bridge is the state of a bridge; the zero state when it is not there.
func (l *look) bridge(name string, again bool) (bridgeState, error) {
	if l.bridges != nil && !again {
		return l.bridges[name], nil
	}
	now, err := l.hostBridges()
	return now[name], err
}

// hostBridges are this machine's bridges.
func (l *look) hostBridges() (map[string]bridgeState, error) {
	all, err := l.engine.options.Kernel.Links()
	if err != nil {
		return nil, err
	}
	addrs, err := l.engine.options.Kernel.Addresses()
	if err != nil {
		return nil, err
	}
	out, byIndex := map[string]bridgeState{}, map[int]string{}
	for _, link := range all {
		if link.Type() == "bridge" {
			out[link.Attrs().Name] = bridgeState{index: link.Attrs().Index, link: linkState(link)}
			byIndex[link.Attrs().Index] = link.Attrs().Name
		}
	}
	change := func(index int, f func(*bridgeState)) {
		if name, ok := byIndex[index]; ok {
			state := out[name]
			f(&state)
			out[name] = state
		}
	}
	names := map[int]string{}
	for _, link := range all {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	for _, link := range all {
		a := link.Attrs()
		change(a.MasterIndex, func(s *bridgeState) { s.ports++ })
		// The other end of a container's port is in its namespace, where the number means another interface.
		if a.NetNsID < 0 && link.Type() != "veth" {
			change(a.ParentIndex, func(s *bridgeState) { s.joined = append(s.joined, a.Name) })
		}
		if a.MasterIndex != 0 {
			change(a.Index, func(s *bridgeState) { s.joined = append(s.joined, names[a.MasterIndex]) })
		}
	}
	proxied, err := l.engine.options.Kernel.Proxied()
	if err != nil {
		return nil, err
	}
	for _, n := range proxied {
		change(n.LinkIndex, func(s *bridgeState) { s.answersFor = append(s.answersFor, n.IP.String()) })
	}
	for _, a := range addrs {
		change(a.LinkIndex, func(s *bridgeState) { s.addresses = append(s.addresses, a.IPNet.String()) })
	}
	return out, nil
}

// refuseForeignBridge is called before a network is created.
func (e *Engine) refuseForeignBridge(bridge string) error {
	link, err := e.options.Kernel.Link(bridge)
	if err != nil {
		return fmt.Errorf("look for an interface named %s: %w", bridge, err)
	}
	if link == nil {
		return nil
	}
	return inTheWay{fmt.Errorf("an interface named %s is there already (%s) and the engine has no network for it: it would be adopted "+
		"with all that is attached to it; remove it with \"ip link delete %s\"", bridge, link.Type(), bridge)}
}

// setBridge puts the settings on a bridge: directly where this process may, else from a container.
func (e *Engine) setBridge(ctx context.Context, bridge string, owner identity) error {
	if err := refuseOverruled(e.options.Kernel); err != nil {
		return err
	}
	err := writeSettings(e.options.Kernel, bridge)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		// Not root, or not in the engine's network namespace. The helper is in there by construction.
		err = e.setBridgeFromHelper(ctx, bridge, owner)
	}
	if err != nil {
		return fmt.Errorf("set what the kernel must do on bridge %s: %w", bridge, err)
	}
	return nil
}

// refuseOverruled is called before a network is created, too: what the machine overrules cannot be held.
func refuseOverruled(kernel Kernel) error {
	for _, s := range bridgeSettings() {
		if stronger := overruled(kernel, s); stronger != "" {
			return fmt.Errorf("%s of a bridge cannot be %s on this machine: it is %s; run \"sysctl -w net.%s.conf.all.%[1]s=%[2]s\"",
				s.name, s.value, stronger, s.family)
		}
	}
	return nil
}

func writeSettings(kernel Kernel, bridge string) error {
	settings := map[string]string{}
	for _, s := range bridgeSettings() {
		if isFamilyThere(s.family) {
			settings[s.path(bridge)] = s.value
		}
	}
	return kernel.SetBridge(bridge, settings)
}

// restoreBridge puts the settings back on the bridge of a network that exists.
func restoreBridge(ctx context.Context, e *Engine, scope planner.Scope, o planner.Object) error {
	for _, f := range o.Observed {
		if f.Path != pathBridge {
			continue
		}
		var bridge string
		if err := f.Value.Decode(&bridge); err != nil || !ownBridge.MatchString(bridge) {
			return fmt.Errorf("network %s has the bridge %s, which sandplan did not name", o.Name, f.Value.Text())
		}
		return e.setBridge(ctx, bridge, identity{scope: scope, address: o.Addr})
	}
	return fmt.Errorf("network %s shows no bridge", o.Name)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
