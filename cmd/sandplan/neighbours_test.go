package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// TestNeighbours applies and destroys two projects on one engine at the same time, over and over. They
// have sandplan.image in common, and no destroy takes it from the neighbour that has just applied.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	const projects, rounds = 2, 2
	socket, bin := dockertest.Socket(t), build(t)
	var all sync.WaitGroup
	for i := range projects {
		n := newNeighbour(t, socket, bin, fmt.Sprint("neighbour-", i), fmt.Sprintf("10.233.%d.0/21", 48+8*i), oneBlock)
		all.Go(func() {
			if n.run("init") != nil {
				return
			}
			for range rounds {
				for _, command := range []string{"apply -auto-approve", "drift", "plan -detailed-exitcode", "destroy -auto-approve"} {
					if n.run(command) != nil {
						return
					}
				}
			}
		})
	}
	all.Wait()
}

const oneBlock = `
vendor "local" {
  kind    = "custom"
  image   = IMAGE
  command = ["/agent"]

  host "vendor.example" {
    port      = 8443
    addresses = [GATEWAY]
  }
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.planning
  worktree = "work"
}
`

// neighbour is a project in a directory of its own.
type neighbour struct {
	t            *testing.T
	bin, dir     string
	socket, name string
	gateway      string // of its uplink, where a program of this machine can be its vendor
}

// newNeighbour makes a project whose image is the test agent, IMAGE in its blocks, and whose vendor stands at GATEWAY,
// where a test starts one that runs agents.
func newNeighbour(t *testing.T, socket, bin, name, pool, blocks string) *neighbour {
	t.Helper()
	n := &neighbour{t: t, bin: bin, dir: t.TempDir(), socket: socket, name: "spcli-" + name,
		gateway: netip.MustParsePrefix(pool).Addr().Next().String()}
	tag := "sandplan-cli-neighbour/" + n.name + ":1"
	loadAgent(t, socket, filepath.Join(bin, "agent"), tag)
	config := fmt.Sprintf(`
sandplan {
  project = %q
}

provider "docker" {
  subnet_pool = %q
  dns         = ["192.0.2.53"]
}
`, n.name, pool) + strings.NewReplacer("IMAGE", strconv.Quote(tag), "GATEWAY", strconv.Quote(n.gateway)).Replace(blocks)
	if err := os.MkdirAll(filepath.Join(n.dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "sandplan.hcl"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	clean := *n // wherever a test looks meanwhile
	t.Cleanup(func() { _ = clean.command(context.Background(), "destroy -auto-approve").Run() })
	return n
}

// vendor starts the vendor of the project's agents, and waits until it is there.
func (n *neighbour) vendor() {
	n.t.Helper()
	cmd := exec.Command(filepath.Join(n.bin, "vendor"), "-listen="+n.gateway+":8443", "-name=vendor.example", "-ca-out="+filepath.Join(n.t.TempDir(), "ca.pem"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || !strings.HasPrefix(line, "vendor: ready") {
		n.t.Fatalf("the vendor says %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
}

// loadAgent loads the test agent as an image that no other test has: whoever removes a test's image, which is
// there as long as it has a tag, must not do so while another test tags the same one.
func loadAgent(t interface {
	Cleanup(func())
	Fatal(...any)
}, socket, agent, tag string) {
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{
		{Path: "/agent", Source: agent, Mode: 0o755}, {Path: "/tag", Content: []byte(tag), Mode: 0o444}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := scratch.Load(ctx, socket, tag, img); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", tag).Run() })
}

func (n *neighbour) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(n.bin, "sandplan"), strings.Fields(line)...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "DOCKER_HOST=unix://"+n.socket)
	return cmd
}

// run is one command, which has to succeed.
func (n *neighbour) run(line string) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), 3*time.Minute)
	defer cancel()
	out, err := n.command(ctx, line).CombinedOutput()
	if err != nil {
		n.t.Errorf("%s: sandplan %s: %v\n%s", n.name, line, err, out)
	}
	return err
}
