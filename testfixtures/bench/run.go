package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// What a run adds to starting its two containers: from the start of `sandplan run` until the first thing
// that its command says has come out of it. In between lie two locks, the gate, the proxy, and the proof
// from the inside.
const (
	runProject = "bench-run"
	runImage   = "sandplan-bench/agent:run"
	runVendor  = "10.238.128.1:8443"
	runRounds  = 5
	// A run may take this many times what the bare starts take, and this much more.
	runFactor  = 1.5
	runMoreFor = 150 * time.Millisecond
)

const runConfig = `
sandplan {
  project = %q
}

provider "docker" {
  host        = %q
  subnet_pool = "10.238.128.0/20"
}

vendor "local" {
  kind    = "custom"
  image   = %q
  command = ["/agent", "say=up"]
  host "vendor.sandplan.test" {
    port      = 8443
    addresses = ["10.238.128.1"]
  }
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "${path.root}/worktree"
  prompt   = "measure"
}
`

// runs measures one run beside the bare start of the same two containers.
func (b *bench) runs(_, _ int) ([]goal, error) {
	dir, err := os.MkdirTemp("", "sandplan-bench-run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &bench{binary: b.binary, dir: dir, engine: b.engine}
	vendor, err := r.prepareRun()
	if err != nil {
		return nil, err
	}
	defer vendor.Close()
	defer r.sandplan("destroy", "-auto-approve") // whatever went wrong before: leave nothing behind
	if _, err := r.sandplan("apply", "-auto-approve"); err != nil {
		return nil, err
	}
	run, bare, err := sideBySide(runRounds, r.firstWord, r.bareStart)
	if err != nil {
		return nil, err
	}
	const ms = float64(time.Millisecond)
	return []goal{{fmt.Sprintf("run to the first instruction − %g × bare start", runFactor),
		(float64(run) - runFactor*float64(bare)) / ms, float64(runMoreFor) / ms, "ms",
		fmt.Sprintf("%.0f ms, bare start of both containers %.0f ms", float64(run)/ms, float64(bare)/ms)}}, nil
}

// prepareRun makes the configuration, an image with an agent that works, and somebody who answers as the
// vendor: the proof from the inside needs one.
func (b *bench) prepareRun() (io.Closer, error) {
	agent := filepath.Join(b.dir, "agent")
	build := exec.Command("go", "build", "-o", agent, "github.com/sandplan/sandplan/testfixtures/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{build, exec.Command("git", "init", "-q", filepath.Join(b.dir, "worktree"))} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
		}
	}
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Source: agent}}})
	if err != nil {
		return nil, err
	}
	if _, err := scratch.Load(context.Background(), b.engine.socket, runImage, img); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(runConfig, runProject, "unix://"+b.engine.socket, runImage)
	if err := os.WriteFile(filepath.Join(b.dir, "sandplan.hcl"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	if _, err := b.sandplan("init"); err != nil {
		return nil, err
	}
	return answer(runVendor)
}

// answer accepts connections at an address that comes into being only later.
func answer(address string) (io.Closer, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if control := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_IP, syscall.IP_FREEBIND, 1) }); control != nil {
			return control
		}
		return err
	}}
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l, nil
}

// firstWord is how long a run takes until its command has said something. It is over, and armed again,
// when this returns.
func (b *bench) firstWord() (time.Duration, error) {
	cmd := exec.Command(b.binary, "-chdir="+b.dir, "run", "invocation.one")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	if err := cmd.Wait(); err != nil || readErr != nil || strings.TrimSpace(line) != "up" {
		return 0, fmt.Errorf("sandplan run: %v, said %q\n%s", err, line, said.Bytes())
	}
	return took, nil
}

// bareStart starts the two containers of the invocation as they are, and arms it again.
func (b *bench) bareStart() (time.Duration, error) {
	var ids []string
	for _, part := range []string{"proxy", "agent"} {
		filter := url.QueryEscape(fmt.Sprintf(`{"label":["dev.sandplan.project=%s","dev.sandplan.address=invocation.one.%s"]}`, runProject, part))
		raw, err := b.engine.call("GET", "/containers/json?all=1&filters="+filter, "", nil)
		if err != nil {
			return 0, err
		}
		var found []struct {
			ID string `json:"Id"`
		}
		if err := json.Unmarshal(raw, &found); err != nil || len(found) != 1 {
			return 0, fmt.Errorf("%d containers at invocation.one.%s (%v)", len(found), part, err)
		}
		ids = append(ids, found[0].ID)
	}
	began := time.Now()
	for _, id := range ids {
		if _, err := b.engine.call("POST", "/containers/"+id+"/start", "", nil); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	for _, id := range ids {
		if _, err := b.engine.call("DELETE", "/containers/"+id+"?force=1", "", nil); err != nil {
			return 0, err
		}
	}
	_, err := b.sandplan("apply", "-auto-approve")
	return took, err
}
