//go:build linux

package shim

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// mountLine is one line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mountLine struct {
	device  string // major:minor
	root    string
	path    string
	options []string // of this mount
	fsType  string
	source  string
}

func readMounts() ([]mountLine, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text))
}

func parseMounts(text string) ([]mountLine, error) {
	var out []mountLine
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 2 {
			return nil, fmt.Errorf("mountinfo: line %q", line)
		}
		out = append(out, mountLine{
			device: l[2], root: unescape(l[3]), path: unescape(l[4]), options: strings.Split(l[5], ","),
			fsType: r[0], source: unescape(r[1]),
		})
	}
	return out, nil
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func (m mountLine) has(option string) bool { return slices.Contains(m.options, option) }

// same reports whether a mount still is what it was. What the file system's own options say is not
// compared: an administrator may change those for all of a disk.
func (m mountLine) same(o mountLine) bool {
	return m.device == o.device && m.root == o.root && m.path == o.path && slices.Equal(m.options, o.options)
}

// changedMounts describes the first difference between two lists of mounts, in the order of mounting.
func changedMounts(was, is []mountLine) string {
	for i, m := range was {
		switch {
		case i >= len(is) || is[i].path != m.path && !slices.ContainsFunc(is, func(o mountLine) bool { return o.path == m.path }):
			return fmt.Sprintf("the mount at %s is gone", m.path)
		case is[i].path != m.path:
			return fmt.Sprintf("there is a mount at %s that was not there", is[i].path)
		case !m.same(is[i]):
			return fmt.Sprintf("the mount at %s has changed", m.path)
		}
	}
	if len(is) > len(was) {
		return fmt.Sprintf("there is a mount at %s that was not there", is[len(was)].path)
	}
	return ""
}

// report describes a mount for sandplan, which compares device and inode with what it saw outside.
func (m mountLine) report() wire.Mount {
	out := wire.Mount{Path: m.path, FSType: m.fsType, Source: m.source, Root: m.root,
		Options: strings.Join(m.options, ","), ReadOnly: m.has("ro")}
	var st unix.Stat_t
	if err := unix.Lstat(m.path, &st); err == nil {
		out.Dev, out.Inode = st.Dev, st.Ino
	}
	return out
}

// engineMount is a mount that every container has without declaring it.
type engineMount struct {
	path     string
	fsTypes  []string // any when empty
	readOnly bool
}

var engineMounts = []engineMount{
	{"/", nil, true},
	{"/proc", []string{"proc"}, false},
	{"/dev", []string{"tmpfs"}, false}, // its directory belongs to root
	{"/dev/pts", []string{"devpts"}, false},
	{"/dev/mqueue", []string{"mqueue"}, false},
	{"/dev/shm", []string{"tmpfs"}, false}, // bounded by ShmSize
	{"/sys", []string{"sysfs"}, true},
	{"/sys/fs/cgroup", []string{"tmpfs", "cgroup2"}, false},
	{"/etc/resolv.conf", nil, true},
	{"/etc/hostname", nil, true},
	{"/etc/hosts", nil, true},
}

// fromEngine says why a mount that nobody declared is not one of the engine's own; "" when it is.
func (m mountLine) fromEngine() string {
	if strings.HasPrefix(m.path, "/sys/fs/cgroup/") {
		if m.fsType != "cgroup" || !m.has("ro") {
			return "is no read-only control group"
		}
		return ""
	}
	for _, e := range engineMounts {
		if e.path != m.path {
			continue
		}
		if len(e.fsTypes) > 0 && !slices.Contains(e.fsTypes, m.fsType) {
			return fmt.Sprintf("is %s, should be %s", m.fsType, strings.Join(e.fsTypes, " or "))
		}
		// Control groups of version 2 are one mount, and must not be writable.
		if (e.readOnly || m.fsType == "cgroup2") && !m.has("ro") {
			return "is writable"
		}
		return ""
	}
	if m.masks() {
		return ""
	}
	return "is not declared"
}

// masks reports whether the mount only takes away: a part of proc made read-only, or a path below
// /proc or /sys covered by nothing.
func (m mountLine) masks() bool {
	if !strings.HasPrefix(m.path, "/proc/") && !strings.HasPrefix(m.path, "/sys/") {
		return false
	}
	switch m.fsType {
	case "proc":
		return m.has("ro") && m.root == strings.TrimPrefix(m.path, "/proc")
	case "tmpfs", "devtmpfs":
		return m.has("ro") && m.root == "/" || m.root == "/null"
	}
	return false
}
