package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch is where it may write.
func (p *prober) scratch() string { return "/tmp" }

// leave makes a file that stays, so that it is seen on the host, which removes it.
func leave(path string) result {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return held("%s", cause(err))
	}
	f.Close()
	return through("%s was made", path)
}

// cause is an error without the path.
func cause(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}

func (p *prober) worktreeWrite() result { return leave(filepath.Join("/work", p.Name)) }

// gitWrite tries what is mounted over the worktree, .git first.
func (p *prober) gitWrite() result {
	var all []result
	for _, m := range mountPoints() {
		if strings.HasPrefix(m.path, "/work/") {
			all = append(all, p.intoCover(m.path)...)
		}
	}
	if len(all) == 0 {
		all = p.intoCover("/work/.git")
	}
	return summary(first(all...), all)
}

func (p *prober) intoCover(path string) []result {
	all := []result{leave(filepath.Join(path, p.Name)), leave(filepath.Join(path, "hooks", p.Name))}
	if f, err := os.OpenFile(filepath.Join(path, "config"), os.O_WRONLY|os.O_APPEND, 0); err == nil {
		f.Close()
		all = append(all, through("%s/config can be written", path))
	}
	aside := path + "-" + p.Name
	if err := os.Rename(path, aside); err == nil {
		_ = os.Rename(aside, path)
		return append(all, through("%s can be renamed", path))
	}
	return all
}

func (p *prober) rootfsWrite() result {
	var all []result
	for _, path := range []string{"/" + p.Name, "/etc/" + p.Name, "/usr/" + p.Name, "/.sandplan/" + p.Name, "/dev/" + p.Name} {
		r := leave(path)
		_ = os.Remove(path)
		all = append(all, r)
	}
	for _, path := range []string{"/.sandplan/sandplan", "/etc/resolv.conf", "/etc/hosts", "/etc/passwd"} {
		if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			f.Close()
			all = append(all, through("%s can be written", path))
		}
	}
	return summary(first(all...), all)
}

// hostFile reads a file of the host that is in no worktree: by its path, by links that lie where the agent may
// write, and by the roots and directories of other processes. What it reads is what it has to show.
func (p *prober) hostFile() result {
	if p.HostFile == "" {
		return result{absent: true, detail: "there is no such file"}
	}
	dir := filepath.Join(p.scratch(), p.Name+"-links")
	if err := os.MkdirAll(dir, 0o700); err == nil {
		defer os.RemoveAll(dir)
	}
	paths := []string{p.HostFile, "/work/../.." + p.HostFile, "/proc/1/root" + p.HostFile, "/proc/1/cwd/../.." + p.HostFile, "/proc/self/root/.." + p.HostFile}
	for i, to := range []string{p.HostFile, "/proc/1/root" + p.HostFile, strings.Repeat("../", 20) + p.HostFile} {
		link := filepath.Join(dir, fmt.Sprint(i))
		if os.Symlink(to, link) == nil {
			paths = append(paths, link)
		}
		link = filepath.Join("/work", p.Name+fmt.Sprint(i))
		if os.Symlink(to, link) == nil {
			paths = append(paths, link)
			defer os.Remove(link)
		}
	}
	var all []result
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err == nil {
			return through("%s", b)
		}
		all = append(all, held("%s", cause(err)))
	}
	return summary(first(all...), all)
}

func (p *prober) setIDFile() result {
	name := filepath.Join(p.scratch(), p.Name+"-setid")
	var all []result
	for _, call := range []struct {
		name string
		try  func() error
	}{
		{"chmod 4755", func() error {
			if err := opened(unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o700)); err != nil {
				return err
			}
			return unix.Chmod(name, 0o4755)
		}},
		{"creating with 4755", func() error { return opened(unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL, 0o4755)) }},
		{"mknod with 2755", func() error { return unix.Mknod(name, unix.S_IFREG|0o2755, 0) }},
	} {
		err := call.try()
		var st unix.Stat_t
		if err == nil && (unix.Stat(name, &st) != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0) {
			err = unix.EPERM // the bit was dropped
		}
		all = append(all, tried(call.name, err))
		_ = os.Remove(name)
	}
	return summary(first(all...), all)
}
