package shim_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/providers/docker"
	"github.com/sandplan/sandplan/providers/docker/shim"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// box is one agent's container before it is created: everything as it should be.
type box struct {
	shim     shim.Config
	config   container.Config
	host     container.HostConfig
	net      *network.NetworkingConfig
	worktree string
	seccomp  string
	// before runs after the container is created and before it is started, started before it gets its
	// challenge, during once the command has said something.
	before, started, during func(l *lab, id string) error
	challenge               wire.Challenge
	bundle                  wire.Bundle
	early                   bool // the bundle comes right after the challenge
	alone                   bool // nothing comes
	// after runs beside the command, once it has the bundle.
	after func(p peer)
}

// peer is sandplan's end of a running container.
type peer struct {
	*wire.Writer
	silence func()       // no more beats
	hangUp  func() error // the end of standard input
	raw     net.Conn
}

// agentBox is an agent as sandplan declares it, with a writable worktree.
func agentBox(t *testing.T, l *lab, argv ...string) *box {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	for _, d := range []string{dir, filepath.Join(dir, ".git"), filepath.Join(dir, "sub")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, testUID, testUID); err != nil {
			t.Fatal(err)
		}
	}
	b := &box{worktree: dir, seccomp: docker.AgentSeccomp(), net: endpoint(l.net, agentAddr),
		challenge: wire.Challenge{Nonce: "0123456789abcdef", Token: "s3cret", HostAddresses: hostAddresses(t)}}
	b.shim = shim.Config{
		Invocation: "invocation.test", Argv: append([]string{"/agent"}, argv...), Dir: "/work", UID: testUID, GID: testUID,
		Env: []string{"HOME=/home/agent", "PATH=/usr/bin:/bin"}, Nameservers: []string{"127.0.0.11"}, UnixSockets: true,
		Mounts: []shim.Mount{
			{Path: "/work", Type: shim.MountBind, Tree: true},
			{Path: "/work/.git", Type: shim.MountBind, ReadOnly: true},
			{Path: "/run/sandplan", Type: shim.MountTmpfs, Flags: []string{"nosuid", "nodev", "noexec"}, Size: 8 << 20, Mode: 0o700, Own: true},
			{Path: "/tmp", Type: shim.MountTmpfs, Flags: []string{"nosuid", "nodev", "noexec"}, Size: 8 << 20},
		},
		Network: &shim.Network{Address: agentAddr + "/29", Proxy: proxyAddr + ":3128", Hosts: []string{vendorHost},
			Refused: "refused.test:443", Direct: []string{"1.1.1.1:443", "[2606:4700:4700::1111]:443"}},
		Limits: shim.Limits{Memory: 128 << 20, NanoCPUs: 1.5e9, PIDs: 64},
		// Far more than anything here takes, on an engine that is busy too: what is to end a command sooner says so.
		Bounds: shim.Bounds{TimeoutMS: 240_000, GraceMS: 1000, SilenceMS: 20_000, Output: 1 << 20},
	}
	b.config = container.Config{Image: testImage, Entrypoint: []string{"/.sandplan/sandplan"}, User: fmt.Sprintf("%d:%[1]d", testUID),
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true}
	pids := int64(64)
	b.host = container.HostConfig{
		NetworkMode: container.NetworkMode(l.net), ReadonlyRootfs: true, CapDrop: []string{"ALL"}, DNS: []string{"127.0.0.1"},
		SecurityOpt: []string{"no-new-privileges"}, MaskedPaths: shim.MaskedPaths(), ReadonlyPaths: shim.ReadonlyPaths(),
		Sysctls:   map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
		Resources: container.Resources{Memory: 128 << 20, MemorySwap: 128 << 20, NanoCPUs: 1.5e9, PidsLimit: &pids},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: dir, Target: "/work", BindOptions: &mount.BindOptions{NonRecursive: true}},
			{Type: mount.TypeBind, Source: filepath.Join(dir, ".git"), Target: "/work/.git", ReadOnly: true, BindOptions: &mount.BindOptions{NonRecursive: true}},
		},
		Tmpfs: map[string]string{
			"/run/sandplan": fmt.Sprintf("rw,nosuid,nodev,noexec,size=8388608,uid=%d,gid=%[1]d,mode=0700", testUID),
			"/tmp":          "rw,nosuid,nodev,noexec,size=8388608",
		},
	}
	return b
}

// runnerBox is a runner: no network, no unix sockets.
func runnerBox(t *testing.T, l *lab, argv ...string) *box {
	b := agentBox(t, l, argv...)
	b.shim.Network, b.shim.UnixSockets, b.shim.Nameservers = nil, false, []string{"127.0.0.1"}
	b.seccomp, b.net, b.host.NetworkMode = docker.RunnerSeccomp(), nil, "none"
	return b
}

func hostAddresses(t *testing.T) []string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range addrs {
		out = append(out, a.(*net.IPNet).IP.String())
	}
	return out
}
