package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tmpfsSize reserves more than a memory file system may hold. A file system that is too small refuses at
// once, so that nothing is used up.
func (p *prober) tmpfsSize() result {
	if len(p.Memories) == 0 {
		return result{absent: true, detail: "there is none"}
	}
	var all []result
	for _, m := range p.Memories {
		name := filepath.Join(m.Path, p.Name+"-size")
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			all = append(all, held("%s: %v", m.Path, err))
			continue
		}
		err = unix.Fallocate(fd, 0, 0, m.Size+1<<20)
		_ = unix.Close(fd)
		_ = os.Remove(name)
		all = append(all, tried(fmt.Sprintf("%d bytes in %s", m.Size+1<<20, m.Path), err))
	}
	return first(all...)
}

// pids starts more processes than it may have. A child does it, so that this process needs none meanwhile.
func (p *prober) pids() result {
	if p.PIDs == 0 {
		return result{absent: true, detail: "there is no limit"}
	}
	want := p.PIDs + 8
	cmd := exec.Command(p.self, Command, "fork", strconv.FormatInt(want, 10))
	out, err := cmd.Output()
	n, bad := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	switch {
	case bad != nil:
		return held("processes could not be started at all: %v", err)
	case n >= want:
		return through("%d processes run at once, the limit is %d", n, p.PIDs)
	}
	return held("after %d processes no further one could be started; the limit is %d", n, p.PIDs)
}

// forkMany starts processes until that fails or there are enough, says how many, and ends them. They do
// nothing but wait: it is the kernel's own call, since a program in each would need the time and memory that
// this is not about.
func forkMany(args []string, stdout io.Writer) int {
	if len(args) != 1 {
		return exitUsage
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return exitUsage
	}
	var pids []int
	for len(pids) < want {
		pid, errno := forkWaiting()
		if errno != 0 {
			break
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	fmt.Fprintln(stdout, len(pids))
	return 0
}

// memory uses more than it may have. The child does it in the hope to be the one that the kernel ends.
func (p *prober) memory() result {
	if p.Memory == 0 {
		return result{absent: true, detail: "there is no limit"}
	}
	if free := availableMemory(); !p.Open && free < p.Memory+p.Memory/4 {
		return result{detail: fmt.Sprintf("not tried: this machine has %d MiB left, the limit is %d MiB", free>>20, p.Memory>>20), untried: true}
	}
	// The kernel ends who is the easier victim: that must be the child, though its memory is mapped nowhere.
	// What the guard of the sandbox raised for this process is taken back as far as that may be.
	const usual = "500"
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(usual), 0)
	cmd := exec.Command(p.self, Command, "eat", strconv.FormatInt(p.Memory+64<<20, 10))
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return through("%d MiB are in use, the limit is %d MiB", (p.Memory+64<<20)>>20, p.Memory>>20)
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return held("the kernel ended it (%s); the limit is %d MiB", exit.Sys().(syscall.WaitStatus).Signal(), p.Memory>>20)
	}
	return held("%v; the limit is %d MiB", err, p.Memory>>20)
}

// eatMemory uses memory until there is as much as it was asked for. It is a file in memory, which the kernel
// counts like any other use; unlike pages that are touched it need not be cleared, which takes a machine
// with much to do a minute.
func eatMemory(args []string) int {
	if len(args) != 1 {
		return exitUsage
	}
	want, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return exitUsage
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	fd, err := unix.MemfdCreate("sandplan-verify", unix.MFD_CLOEXEC)
	if err != nil {
		return exitUsage
	}
	const step = 16 << 20
	for used := int64(0); used < want; used += step {
		if err := unix.Fallocate(fd, 0, used, step); err != nil {
			return 1
		}
	}
	return 0
}

// availableMemory is what the machine has left, as far as it tells.
func availableMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 3 && f[0] == "MemAvailable:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
