package docker

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"
)

// Kernel is what the machine below the engine shows of its network, and lets be set. An engine in memory
// has one in memory.
type Kernel interface {
	// Links, Addresses and Routes are those that there are now.
	Links() ([]netlink.Link, error)
	Addresses() ([]netlink.Addr, error)
	Routes() ([]netlink.Route, error)
	// Proxied are the addresses that this machine answers for though they are not its own.
	Proxied() ([]netlink.Neigh, error)
	// Link is the interface of a name, nil when there is none.
	Link(name string) (netlink.Link, error)
	// Setting is the content of a file below /proc/sys.
	Setting(path string) (string, error)
	// SetBridge brings the interface of a bridge into the state in which we have the engine make it, and
	// writes settings below /proc/sys by their path. Errors are those of package fs.
	SetBridge(bridge string, settings map[string]string) error
}

// thisKernel is the one that this process runs on.
type thisKernel struct{}

func (thisKernel) Links() ([]netlink.Link, error)      { return links() }
func (thisKernel) Addresses() ([]netlink.Addr, error)  { return addresses() }
func (thisKernel) Routes() ([]netlink.Route, error)    { return routes() }
func (thisKernel) Proxied() ([]netlink.Neigh, error)   { return proxied() }
func (thisKernel) Setting(path string) (string, error) { return readShort(path) }

func (thisKernel) Link(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if absent := (netlink.LinkNotFoundError{}); errors.As(err, &absent) {
		return nil, nil
	}
	return link, err
}

func (thisKernel) SetBridge(bridge string, settings map[string]string) error {
	if err := writeLink(bridge); err != nil {
		return err
	}
	for _, path := range sortedKeys(settings) {
		// O_TRUNC and O_CREATE have no meaning below /proc/sys, and the latter is refused there.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(settings[path])
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
