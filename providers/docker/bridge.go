package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// bridgeSettings keep the host's other addresses out of reach. On engines 26.1 and 28.5 a datagram that
// was bound to the interface reached a listener on docker0's address across an internal bridge without
// any address of its own; with arp_ignore or rp_filter at 1 it did not.
func bridgeSettings() map[string]string {
	return map[string]string{"arp_ignore": "1", "rp_filter": "1"}
}

// wantedBridge and observedBridge are the part "Bridge" of a network's tree.
func wantedBridge() map[string]any {
	v := map[string]any{"foreign_ports": json.Number("0")}
	for name, value := range bridgeSettings() {
		v[name] = json.Number(value)
	}
	return v
}

// observedBridge reads the settings of a bridge that we named. A setting that cannot be read is null
// and so differs: where the engine's bridges are not here, nothing can be said of them.
func observedBridge(bridge string, foreignPorts int) map[string]any {
	v := map[string]any{"foreign_ports": json.Number(strconv.Itoa(foreignPorts))}
	if !ownBridge.MatchString(bridge) { // the name comes from the engine and becomes part of a path
		return v
	}
	for name := range bridgeSettings() {
		v[name] = readSetting(settingPath(bridge, name))
	}
	return v
}

// readSetting is a number below /proc/sys; nil when there is none, which no row takes for a number.
func readSetting(path string) any {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil
	}
	return json.Number(strconv.Itoa(n))
}

func settingPath(bridge, name string) string {
	return filepath.Join("/proc/sys/net/ipv4/conf", bridge, name)
}

// ports is the number of interfaces attached to a bridge; 0 when the bridge is not there.
func (l *look) ports(bridge string, again bool) (int, error) {
	if l.bridges != nil && !again {
		return l.bridges[bridge], nil
	}
	now, err := hostBridges()
	return now[bridge], err
}

// hostBridges are this machine's bridges and how many ports each has.
func hostBridges() (map[string]int, error) {
	all, err := links()
	if err != nil {
		return nil, err
	}
	out, byIndex := map[string]int{}, map[int]string{}
	for _, link := range all {
		if link.Type() == "bridge" {
			out[link.Attrs().Name] = 0
			byIndex[link.Attrs().Index] = link.Attrs().Name
		}
	}
	for _, link := range all {
		if name, ok := byIndex[link.Attrs().MasterIndex]; ok {
			out[name]++
		}
	}
	return out, nil
}

// refuseForeignBridge is called before a network is created.
func (e *Engine) refuseForeignBridge(bridge string) error {
	link, err := netlink.LinkByName(bridge)
	var absent netlink.LinkNotFoundError
	switch {
	case errors.As(err, &absent):
		return nil
	case err != nil:
		return fmt.Errorf("look for an interface named %s: %w", bridge, err)
	}
	return inTheWay{fmt.Errorf("an interface named %s is there already (%s) and the engine has no network for it: it would be adopted "+
		"with all that is attached to it; remove it with \"ip link delete %s\"", bridge, link.Type(), bridge)}
}

// setBridge puts the settings on a bridge: directly where this process may, else from a container.
func (e *Engine) setBridge(ctx context.Context, bridge string, owner identity) error {
	err := writeSettings(bridge)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		// Not root, or not in the engine's network namespace. The helper is in there by construction.
		err = e.setBridgeFromHelper(ctx, bridge, owner)
	}
	if err != nil {
		return fmt.Errorf("set %s on bridge %s: %w", settingNames(), bridge, err)
	}
	return nil
}

func writeSettings(bridge string) error {
	settings := bridgeSettings()
	for _, name := range sortedKeys(settings) {
		// O_TRUNC and O_CREATE have no meaning below /proc/sys, and the latter is refused there.
		f, err := os.OpenFile(settingPath(bridge, name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(settings[name])
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func settingNames() string { return strings.Join(sortedKeys(bridgeSettings()), " and ") }

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
