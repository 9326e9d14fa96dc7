//go:build linux

package shim

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// probeName is what the shim tries to create where it must not be able to.
const probeName = ".sandplan-probe"

// proveMounts holds every mount of the container against the declared ones and the engine's own.
func proveMounts(cfg *Config, p *proof) checks {
	var c checks
	lines, err := readMounts()
	if err != nil {
		c.fail("mounts", err)
		return c
	}
	p.mounts = lines
	count := map[string]int{}
	for _, m := range lines {
		p.report.Mounts = append(p.report.Mounts, m.report())
		count[m.path]++
	}
	for _, m := range lines {
		declared := slices.ContainsFunc(cfg.Mounts, func(d Mount) bool { return d.Path == m.path })
		if why := m.fromEngine(); !declared && why != "" {
			c.add("mount."+m.path, false, "a mount of %s (%s) at %s %s", m.source, m.root, m.path, why)
		}
		if count[m.path] > 1 {
			c.add("mount."+m.path, false, "%d mounts lie at %s, one over the other", count[m.path], m.path)
			count[m.path] = 0 // told once
		}
	}
	root := probeReadOnly("/")
	c.add("mount./", root == nil, "the root file system: %v", root)
	for _, d := range cfg.Mounts {
		i := slices.IndexFunc(lines, func(m mountLine) bool { return m.path == d.Path })
		if i < 0 {
			c.add("mount."+d.Path, false, "declared, and not there")
			continue
		}
		wrong := d.compare(lines[i], cfg)
		c.add("mount."+d.Path, len(wrong) == 0, "%s", strings.Join(wrong, "; "))
	}
	return append(c, proveHidden(lines)...)
}

// compare says what is not as declared about one mount.
func (d Mount) compare(m mountLine, cfg *Config) []string {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if d.ReadOnly {
		if !m.has("ro") {
			bad("mounted %s, declared read-only", strings.Join(m.options, ","))
		}
		if err := probeReadOnly(d.Path); err != nil {
			bad("%v", err)
		}
	} else {
		if !m.has("rw") {
			bad("mounted %s, declared writable", strings.Join(m.options, ","))
		}
		// A tmpfs that is nobody's only covers something.
		mine := d.Type != MountTmpfs || d.Own
		if err := unix.Faccessat(unix.AT_FDCWD, d.Path, unix.W_OK, 0); mine && err != nil {
			bad("declared writable, and the user may not write: %v", err)
		}
	}
	if d.Type == MountTmpfs {
		wrong = append(wrong, d.compareTmpfs(m, cfg)...)
	}
	return wrong
}

func (d Mount) compareTmpfs(m mountLine, cfg *Config) []string {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if m.fsType != "tmpfs" || m.root != "/" {
		bad("is %s of %s, declared a tmpfs", m.root, m.fsType)
	}
	for _, f := range d.Flags {
		if !m.has(f) {
			bad("mounted %s, declared %s", strings.Join(m.options, ","), f)
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.Path, &fs); err != nil {
		bad("%v", err)
	} else if size := int64(fs.Blocks) * fs.Bsize; d.Size > 0 && (size == 0 || size > roundUp(d.Size, fs.Bsize)) {
		bad("holds %d bytes (0: without bound), declared %d", size, d.Size)
	}
	var st unix.Stat_t
	if err := unix.Stat(d.Path, &st); err != nil {
		bad("%v", err)
		return wrong
	}
	if mode := st.Mode & 0o7777; d.Mode != 0 && mode != d.Mode {
		bad("mode %04o, declared %04o", mode, d.Mode)
	}
	if d.Own && (int(st.Uid) != cfg.UID || int(st.Gid) != cfg.GID) {
		bad("belongs to %d:%d, declared %d:%d", st.Uid, st.Gid, cfg.UID, cfg.GID)
	}
	return wrong
}

func roundUp(n, unit int64) int64 {
	if unit <= 0 {
		return n
	}
	return (n + unit - 1) / unit * unit
}

// probeReadOnly tries to write, and wants to hear that the file system is read-only: that the user
// has no permission would prove nothing about the mount. Creating a directory is refused with EROFS
// before permissions are looked at; so is opening a file for writing, unless they forbid that.
func probeReadOnly(p string) error {
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		return err
	}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		probe := path.Join(p, probeName)
		if err = unix.Mkdir(probe, 0o700); err == nil {
			_ = unix.Rmdir(probe)
		}
	} else {
		var fd int
		if fd, err = unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
		}
	}
	switch {
	case err == nil:
		return fmt.Errorf("%s could be written, declared read-only", p)
	case errors.Is(err, unix.EROFS):
		return nil
	case errors.Is(err, unix.EACCES) && st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return nil // and the mount's own flag is compared besides
	}
	return fmt.Errorf("writing %s fails with %q, not because it is read-only", p, err)
}
