package probe

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoint is a line of /proc/self/mountinfo.
type mountPoint struct {
	path     string
	readOnly bool
}

func mountPoints() []mountPoint {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var out []mountPoint
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		path := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(f[4])
		out = append(out, mountPoint{path, strings.HasPrefix(f[5]+",", "ro,")})
	}
	return out
}

func (p *prober) mount() result {
	dir := filepath.Join(p.scratch(), p.Name+"-mount")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return held("%v", err)
	}
	defer os.Remove(dir)
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	return first(tried("mount of a tmpfs", unix.Mount("none", dir, "tmpfs", 0, "size=4096")),
		tried("mount of proc", unix.Mount("none", dir, "proc", 0, "")),
		tried("a bind mount", unix.Mount("/proc", dir, "", unix.MS_BIND, "")),
		tried("fsopen", opened(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC))))
}

// remount makes what is read-only writable, and puts it back where that works.
func (p *prober) remount() result {
	var all []result
	for _, m := range mountPoints() {
		// What the engine covers in /proc is beside the point, and without the boundary one is enough.
		if !m.readOnly || p.Open && m.path != "/ro" {
			continue
		}
		r := tried("remounting "+m.path, unix.Mount("", m.path, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		if r.through {
			_ = unix.Mount("", m.path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return held("nothing is mounted read-only")
	}
	return first(all...)
}

// unmount takes away what covers something. It comes after remount, whose mount it takes.
func (p *prober) unmount() result {
	var all []result
	for _, m := range mountPoints() {
		covers := strings.HasPrefix(m.path, "/work") || strings.HasPrefix(m.path, "/.sandplan") || strings.HasPrefix(m.path, "/proc/")
		if p.Open {
			covers = m.path == "/ro"
		}
		if covers {
			all = append(all, tried("unmounting "+m.path, unix.Unmount(m.path, unix.MNT_DETACH)))
		}
	}
	if len(all) == 0 {
		return held("nothing covers anything")
	}
	return first(all...)
}
