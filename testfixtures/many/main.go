// Command many takes one project with very many invocations through its whole life on a real engine, and
// prints what each command took in time and memory. It exits with 1 when a command says something else
// than it should, or when iptables rules, bridges, images, or anything else that the engine has, are not
// back where they were at the start.
//
// It measures sandplan with its engine; bench is the one that holds sandplan against the bare calls.
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
	"syscall"
	"time"

	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

func main() {
	sandplan := flag.String("sandplan", "bin/sandplan", "the binary")
	socket := flag.String("socket", "/var/run/docker.sock", "the engine's socket")
	n := flag.Int("n", 500, "how many invocations")
	memory := flag.Int64("memory", 512, "MiB that no command may need more of")
	flag.Parse()
	binary, err := filepath.Abs(*sandplan)
	if err == nil {
		err = run(binary, *socket, *n, *memory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "many:", err)
		os.Exit(1)
	}
}

const config = `
sandplan {
  project = "many"
}

provider "docker" {
  host        = %q
  subnet_pool = "10.239.0.0/16"
}

vendor "local" {
  kind    = "custom"
  image   = %q
  command = ["/agent"]
  host "vendor.sandplan.test" {
    port      = 8443
    addresses = ["10.239.0.1"]
  }
}

invocation "many" {
  count    = %d
  vendor   = vendor.local
  phase    = phase.review
  worktree = "${path.root}/worktree"
  prompt   = "be many"
}
`

const agentImage = "sandplan-many/agent:1"

// step is a command, with the exit code and a part of the output that it must have.
type step struct {
	args []string
	code int
	says string
}

func run(binary, socket string, n int, memory int64) (err error) {
	dir, err := os.MkdirTemp("", "sandplan-many-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	objects := fmt.Sprint(4 + 3*n) // image, shim, uplink, vendor image, and for each network, proxy and agent
	p := &project{binary: binary, dir: dir, memory: memory}
	defer func() {
		if err != nil { // leave nothing behind, whatever went wrong
			_, _ = p.command("destroy", "-auto-approve").CombinedOutput()
		}
		_ = exec.Command("docker", "image", "rm", agentImage).Run()
	}()
	if err := prepare(dir, socket); err != nil {
		return err
	}
	before, err := p.warmUp(socket)
	if err != nil {
		return err
	}
	if err := p.declare(socket, n); err != nil {
		return err
	}
	fmt.Printf("%-28s %10s %10s %8s\n", fmt.Sprintf("%d invocations", n), "time", "CPU", "memory")
	for _, s := range []step{
		{[]string{"init"}, 0, ""},
		{[]string{"plan", "-detailed-exitcode"}, 2, ""},
		{[]string{"apply", "-auto-approve"}, 0, "Apply complete!"},
		{[]string{"plan", "-detailed-exitcode"}, 0, ""},
		{[]string{"drift"}, 0, "No drift. The " + objects},
		{[]string{"destroy", "-auto-approve"}, 0, "Destroy complete!"},
	} {
		if err := p.do(s); err != nil {
			return err
		}
	}
	return back(before)
}

// warmUp goes through it once with one invocation, after which the engine has all that it makes once and
// keeps, and counts.
func (p *project) warmUp(socket string) (lines, error) {
	if err := p.declare(socket, 1); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}, {"destroy", "-auto-approve"}} {
		if out, err := p.command(args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w\n%s", args, err, out)
		}
	}
	return count()
}

// prepare makes the worktree, and the agent's image, which is never run.
func prepare(dir, socket string) error {
	if out, err := exec.Command("git", "init", "-q", filepath.Join(dir, "worktree")).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH,
		Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Content: []byte("never run")}}})
	if err != nil {
		return err
	}
	_, err = scratch.Load(context.Background(), socket, agentImage, img)
	return err
}

type project struct {
	binary, dir string
	memory      int64 // MiB
}

// declare writes the configuration with n invocations.
func (p *project) declare(socket string, n int) error {
	return os.WriteFile(filepath.Join(p.dir, "sandplan.hcl"), fmt.Appendf(nil, config, "unix://"+socket, agentImage, n), 0o644)
}

func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.binary, append([]string{"-chdir=" + p.dir}, args...)...)
	cmd.Env = append(os.Environ(), "SANDPLAN_DATA_DIR="+filepath.Join(p.dir, "data"))
	return cmd
}

// do runs a command, prints what it took, and holds it to what it must say.
func (p *project) do(s step) error {
	cmd := p.command(s.args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return err
	}
	took := time.Since(began)
	mib := int64(0)
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		mib = int64(u.Maxrss) >> 10
	}
	name := strings.Join(s.args, " ")
	fmt.Printf("%-28s %9.2fs %9.2fs %4d MiB\n", name, took.Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), mib)
	tail := out.Bytes()[max(0, out.Len()-2000):]
	switch code := cmd.ProcessState.ExitCode(); {
	case code != s.code:
		return fmt.Errorf("%s: exit code %d, want %d\n%s", name, code, s.code, tail)
	case !strings.Contains(out.String(), s.says):
		return fmt.Errorf("%s does not say %q\n%s", name, s.says, tail)
	case mib > p.memory:
		return fmt.Errorf("%s needed %d MiB, and may need %d", name, mib, p.memory)
	}
	return nil
}
