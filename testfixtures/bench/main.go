// Command bench runs sandplan and the bare engine calls that it needs side by side, in one run, and
// prints goal, value and "met" or "missed" for each line. It exits with 1 when a goal is missed.
//
// The calls of apply and destroy are recorded from sandplan itself and made again without it: what is
// measured is what sandplan adds, and its own order and concurrency against the best of several.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

func main() {
	sandplan := flag.String("sandplan", "bin/sandplan", "the binary to measure")
	socket := flag.String("socket", "/var/run/docker.sock", "the engine's socket")
	many := flag.Int("many", 200, "how many invocations the larger plan has")
	some := flag.Int("some", 50, "how many invocations apply, destroy and the smaller plan have")
	only := flag.String("only", "", "measure this alone: apply (and destroy), plan (and drift), or run")
	flag.Parse()
	ok, err := run(*sandplan, *socket, *only, *some, *many)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(binary, socket, only string, some, many int) (bool, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "sandplan-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	b := &bench{binary: binary, dir: dir, engine: newBareEngine(socket)}
	if err := b.prepare(); err != nil {
		return false, err
	}
	defer b.sandplan("destroy", "-auto-approve") // whatever went wrong before: leave nothing behind
	var goals []goal
	for _, part := range []struct {
		name    string
		measure func(int, int) ([]goal, error)
	}{{"apply", b.applyAndDestroy}, {"plan", b.plans}, {"run", b.runs}} {
		if only != "" && only != part.name {
			continue
		}
		gs, err := part.measure(some, many)
		if err != nil {
			return false, err
		}
		goals = append(goals, gs...)
	}
	if len(goals) == 0 {
		return false, fmt.Errorf("-only=%s: there are apply, plan and run", only)
	}
	return report(os.Stdout, goals), nil
}

// bench measures one binary on one engine.
type bench struct {
	binary string
	dir    string
	engine *bareEngine
}

const project = "bench"

const config = `
sandplan {
  project = "bench"
}

provider "docker" {
  host        = %q
  subnet_pool = "10.238.0.0/16"
}

vendor "local" {
  kind    = "custom"
  image   = "sandplan-bench/agent:1"
  command = ["/agent"]
  host "vendor.sandplan.test" {
    port      = 8443
    addresses = ["10.238.0.1"]
  }
}

invocation "many" {
  count    = %d
  vendor   = vendor.local
  phase    = phase.review
  worktree = "${path.root}/worktree"
  prompt   = "measure"
}
`

// prepare makes the worktree and the agent image, once. The image's one file is never run.
func (b *bench) prepare() error {
	worktree := filepath.Join(b.dir, "worktree")
	if out, err := exec.Command("git", "init", "-q", worktree).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %v: %s", err, out)
	}
	img, err := scratch.Image(scratch.Spec{
		Arch:    runtime.GOARCH,
		Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Content: []byte("never run")}},
	})
	if err != nil {
		return err
	}
	_, err = scratch.Load(context.Background(), b.engine.socket, "sandplan-bench/agent:1", img)
	return err
}

// declare writes a configuration with n invocations and pins its image.
func (b *bench) declare(n int, host string) error {
	text := fmt.Sprintf(config, "unix://"+host, n)
	if err := os.WriteFile(filepath.Join(b.dir, "sandplan.hcl"), []byte(text), 0o644); err != nil {
		return err
	}
	_, err := b.sandplan("init")
	return err
}

// sandplan runs a command and says what it took; a failure carries its output.
func (b *bench) sandplan(args ...string) (*usage, error) {
	cmd := exec.Command(b.binary, append([]string{"-chdir=" + b.dir}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	u := &usage{}
	over := make(chan struct{})
	peak := make(chan float64, 1)
	go func() { peak <- peakMemory(cmd.Process.Pid, over) }()
	err := cmd.Wait()
	u.wall = time.Since(start)
	close(over)
	u.peakMB = <-peak
	if err != nil {
		return nil, fmt.Errorf("sandplan %s: %v\n%s", strings.Join(args, " "), err, out.Bytes())
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return u, nil
}

// peakMemory follows the high-water mark of a process until it is over. What wait4 reports is of no use
// here: a child's mark begins with the size of the process that started it.
func peakMemory(pid int, over <-chan struct{}) (mb float64) {
	for {
		select {
		case <-over:
			return mb
		case <-time.After(time.Millisecond):
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			var kb float64
			if n, _ := fmt.Sscanf(line, "VmHWM: %g kB", &kb); n == 1 {
				mb = max(mb, kb/1024)
			}
		}
	}
}

// usage is what one command took.
type usage struct {
	wall, cpu time.Duration
	peakMB    float64
}
