package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/vishvananda/netlink"
)

// writeLink puts the interface of a bridge into the state in which we have the engine make it. Only what
// differs is written: a user who is not root may look, and on a bridge that the engine has just made
// nothing differs.
func writeLink(bridge string) error {
	link, err := netlink.LinkByName(bridge)
	var absent netlink.LinkNotFoundError
	if errors.As(err, &absent) {
		return &fs.PathError{Op: "find interface", Path: bridge, Err: syscall.ENOENT} // as for its settings
	}
	if err != nil {
		return err
	}
	now, want := linkState(link), wantedLink()
	if now == want {
		return nil
	}
	// All but these stays as it is: attributes that are not set are not sent.
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index, attrs.MTU = bridge, link.Attrs().Index, want.mtu
	mask := want.groupForward
	if err := netlink.LinkModify(&netlink.Bridge{LinkAttrs: attrs, GroupFwdMask: &mask}); err != nil {
		return fmt.Errorf("set MTU and group_fwd_mask: %w", err)
	}
	if now.up {
		return nil
	}
	return netlink.LinkSetUp(link)
}
