package probe

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// target is the process that attempts are made on: process 1, which guards the sandbox, or, without the
// boundary, a child of the same user.
func (p *prober) target() (pid int, end func()) {
	if !p.Open {
		return 1, func() {}
	}
	cmd := exec.Command(p.self, Command, "wait")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, func() {}
	}
	return cmd.Process.Pid, func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func (p *prober) trace() result {
	pid, end := p.target()
	defer end()
	const seize = 0x4206
	return first(
		tried("PTRACE_SEIZE", apart(func() error {
			_, err := syscallError(unix.SYS_PTRACE, seize, uintptr(pid), 0, 0)
			return err
		})),
		tried("PTRACE_ATTACH", apart(func() error { return unix.PtraceAttach(pid) })),
		tried("pidfd_getfd", func() error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return opened(unix.PidfdGetfd(fd, 0, 0))
		}()))
}

func (p *prober) memoryOfGuard() result {
	pid, end := p.target()
	defer end()
	var all []result
	for _, mode := range []int{unix.O_RDONLY, unix.O_WRONLY} {
		all = append(all, tried(fmt.Sprintf("opening /proc/%d/mem", pid), opened(unix.Open(fmt.Sprintf("/proc/%d/mem", pid), mode, 0))))
	}
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: len(buf)}}, 0)
	all = append(all, tried("process_vm_readv", err))
	_, err = unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: 0x1, Len: len(buf)}}, 0)
	all = append(all, tried("process_vm_writev", err))
	return first(all...)
}

func (p *prober) secretsOfGuard() result {
	pid, end := p.target()
	defer end()
	dir := fmt.Sprintf("/proc/%d/", pid)
	var all []result
	for _, file := range []string{"environ", "maps", "auxv", "stack"} {
		b, err := os.ReadFile(dir + file)
		if err == nil && len(b) > 0 {
			return through("%s%s can be read", dir, file)
		}
		all = append(all, held("%s: %v", file, err))
	}
	for _, link := range []string{"root", "cwd", "exe", "fd/0"} {
		if to, err := os.Readlink(dir + link); err == nil {
			return through("%s%s leads to %s", dir, link, to)
		}
	}
	return summary(first(all...), all)
}

// hostProcesses looks for processes that are not of this container: sandplan's own on the host, and whatever
// is not a child of who guards it.
func (p *prober) hostProcesses() result {
	if start := startOf(p.HostPID); p.HostPID != 0 && start != "" && start == p.HostStart {
		return through("process %d of the host is seen", p.HostPID)
	}
	if p.Open {
		return held("process %d of the host is not seen", p.HostPID)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return held("%v", err)
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		n++
		if !p.descends(pid) {
			return through("process %d is none of this container's", pid)
		}
	}
	return held("%d processes, all of this container", n)
}

// descends: every process of a container is its first one, or a child of one.
func (p *prober) descends(pid int) bool {
	for range 100 {
		if pid == 1 {
			return true
		}
		f := statOf(pid)
		if len(f) < 2 {
			return true // it has ended
		}
		parent, err := strconv.Atoi(f[1])
		if err != nil || parent == 0 {
			return false
		}
		pid = parent
	}
	return false
}

// statOf are the fields of /proc/PID/stat from the state on.
func statOf(pid int) []string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// startOf is when a process was started, in the kernel's own ticks; "" when there is none.
func startOf(pid int) string {
	const field = 19 // the 22nd, counted from the state
	if f := statOf(pid); len(f) > field {
		return f[field]
	}
	return ""
}

// StartOf is when a process was started, as Job.HostStart wants it.
func StartOf(pid int) string { return startOf(pid) }

// killGuard sends what ends or stops a process, but for what its guard passes on by design. Whether the
// guard is still itself is told by its last words, which only it can say.
func (p *prober) killGuard() result {
	pid, end := p.target()
	defer end()
	if pid == 0 {
		return held("there is no process to try it on")
	}
	for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGABRT, unix.SIGSEGV, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS, unix.SIGXCPU, unix.SIGKILL} {
		_ = unix.Kill(pid, s)
	}
	// What is killed is a zombie until somebody waits for it.
	for range 200 {
		f := statOf(pid)
		if len(f) == 0 || strings.Contains("TtZX", f[0]) {
			return through("process %d is in state %q", pid, strings.Join(f[:min(1, len(f))], ""))
		}
		if !p.Open {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return held("process %d goes on", pid)
}

// child is one of the program's own children.
func child(args []string, stdout io.Writer) int {
	switch args[0] {
	case "nothing":
		return 0
	case "wait": // until standard input ends
		_, _ = io.Copy(io.Discard, os.Stdin) // architecture: a child of the program that is the process
		return 0
	case "fork":
		return forkMany(args[1:], stdout)
	case "eat":
		return eatMemory(args[1:])
	}
	return exitUsage
}
