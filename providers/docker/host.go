package docker

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// The mistakes that the host shows, as the summaries of diagnostics.
const (
	summaryWorktreeMissing = "Worktree not found"
	summaryWorktree        = "Worktree refused"
	summaryGit             = "Repository refused"
	summaryUser            = "User refused"
	summaryExposed         = "Writable worktree exposes its declaration"
	summaryImage           = "Image not usable"
	summarySubnets         = "No room for networks"
	summarySeal            = "Command refused"
	summaryProxy           = "Proxy refused"
	summaryEngine          = "Engine or host not usable"
	summaryNested          = "Repository inside a writable worktree"
)

// refusal is a mistake in what the user declared, found by looking at the host.
type refusal struct{ summary, detail string }

func (r *refusal) Error() string { return r.summary + ": " + r.detail }

// host is what must not get into a container, read once per compilation.
type host struct {
	// mounts are all mount points.
	mounts []string
	// homes are home directories of people and of root.
	homes []string
	// engine are the engine's socket and its data.
	engine []string
}

// readHost reads it. A file that cannot be read is an error: what cannot be seen must not pass.
func readHost(home string, info Info) (*host, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	h := &host{mounts: mountPoints(table)}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read the users of this machine: %w", err)
	}
	h.homes = append(homeDirs(passwd), "/root")
	if home != "" {
		h.homes = append(h.homes, filepath.Clean(home))
	}
	for _, p := range []string{info.Socket, info.DataDir} {
		if p == "" {
			continue
		}
		h.engine = append(h.engine, filepath.Clean(p))
		// /var/run is a symlink nearly everywhere; both names count.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			h.engine = append(h.engine, real)
		}
	}
	return h, nil
}

// mountPoints reads mountinfo, proc(5): the fifth field, with \040 and the like for odd characters.
func mountPoints(table []byte) []string {
	var out []string
	for _, line := range bytes.Split(table, []byte("\n")) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		out = append(out, unescapeMount(fields[4]))
	}
	sort.Strings(out)
	return out
}

func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// homeDirs are the home directories in a passwd file of users that people are: root and those from
// 1000 on. Services have theirs in places such as /var/www, where a worktree may well be.
func homeDirs(passwd []byte) []string {
	var out []string
	for _, line := range strings.Split(string(passwd), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 6 || !filepath.IsAbs(f[5]) {
			continue
		}
		uid, err := strconv.Atoi(f[2])
		if dir := filepath.Clean(f[5]); err == nil && (uid == 0 || uid >= 1000) && dir != "/" && dir != "/nonexistent" {
			out = append(out, dir)
		}
	}
	return out
}

// systemDirs hold the machine itself. A worktree may lie below most of them, and be none of them.
func systemDirs() []string {
	return []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/mnt", "/opt", "/proc",
		"/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/var", "/var/lib", "/var/run"}
}

// forbids says as a clause why a directory must not be in a container, "" when it may.
func (h *host) forbids(path string) string {
	for _, dir := range systemDirs() {
		if path == dir {
			return "is a directory of the system"
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/etc", "/boot"} {
		if below(dir, path) {
			return "lies below " + dir
		}
	}
	for _, home := range h.homes {
		if within(path, home) {
			if path == home {
				return "is a home directory"
			}
			return "holds the home directory " + home
		}
	}
	for _, p := range h.engine {
		if within(path, p) {
			return "holds " + p + ", which is the engine's"
		}
		if below(p, path) {
			return "lies in " + p + ", which is the engine's"
		}
	}
	return ""
}
