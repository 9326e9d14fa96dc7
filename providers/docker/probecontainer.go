package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// ProbePlace says where a probe runs that is in no sandbox. There are two: a canary on the host's network,
// which sees what comes out of sandboxes, and a container without the boundary, in which every attempt has
// to succeed. Both run nothing but sandplan's own program, for as long as one verification takes.
type ProbePlace struct {
	// Name tells the probes of a scope apart.
	Name string
	// Canary is the first of the two.
	Canary bool
	// Network is the engine ID of the network that the second one is on, and DNS the name server that the
	// engine passes its questions on to.
	Network, DNS string
	// Tree and ReadOnly are directories of the host that it has in the place of a worktree and beside that;
	// Shown is one that it has where the host has it.
	Tree, ReadOnly, Shown string
}

// Probe is a probe that runs.
type Probe struct {
	engine *Engine
	id     string
	stdin  io.WriteCloser
	done   <-chan error
}

// StartProbe starts a probe that writes to stdout.
func (e *Engine) StartProbe(ctx context.Context, scope planner.Scope, place ProbePlace, stdout, stderr io.Writer) (*Probe, error) {
	own, err := e.own()
	if err != nil {
		return nil, err
	}
	config, host := openConfig(own.ID, place)
	if place.Canary {
		config, host = canaryConfig(own.ID)
	}
	config.Labels = map[string]string{
		labelSchema: planner.Schema, labelProject: scope.Project, labelWorkspace: scope.Workspace,
		labelAddress: string(planner.AddrUplink), labelKind: string(kindHelper), labelOrigin: e.options.Origin,
	}
	name := objectName(scope, planner.AddrUplink, "probe", place.Name)
	id, err := createFrom(ctx, e.cli, own, func() (string, error) {
		made, err := e.cli.ContainerCreate(ctx, config, host, &network.NetworkingConfig{}, nil, name)
		return made.ID, err
	})
	if err != nil {
		return nil, fmt.Errorf("create the probe %s: %w", name, err)
	}
	p := &Probe{engine: e, id: id}
	if p.stdin, p.done, err = e.Attach(ctx, id, stdout, stderr); err == nil {
		err = e.Start(ctx, id)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the probe %s: %w", name, err), p.Remove(ctx))
	}
	return p, nil
}

// Tell writes to its standard input.
func (p *Probe) Tell(b []byte) error {
	_, err := p.stdin.Write(b)
	return err
}

// Done gets one value when its output ends.
func (p *Probe) Done() <-chan error { return p.done }

// removeLimit bounds the removal, which must happen even when everything else was cancelled.
const removeLimit = 2 * time.Minute

// Remove ends and removes it.
func (p *Probe) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	return removeContainer(ctx, p.engine, planner.Object{ID: p.id, Name: fmt.Sprintf("%.12s, a probe", p.id)})
}

// canaryConfig is a container that sees the host's network and processes, and can do nothing there but look
// and listen.
func canaryConfig(image string) (*container.Config, *container.HostConfig) {
	config, host := probeConfig(image)
	host.NetworkMode, host.PidMode = "host", "host"
	host.CapDrop, host.CapAdd = []string{"ALL"}, []string{"NET_RAW"}
	host.SecurityOpt = []string{"no-new-privileges"}
	host.ReadonlyRootfs = true
	return config, host
}

// openConfig is a container without the boundary. Privileged would do, and does not start where the engine
// itself lacks a capability; so it names those that the attempts need.
func openConfig(image string, place ProbePlace) (*container.Config, *container.HostConfig) {
	config, host := probeConfig(image)
	host.NetworkMode = container.NetworkMode(place.Network)
	host.DNS = []string{place.DNS}
	host.CapAdd = []string{"SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "DAC_READ_SEARCH"}
	host.SecurityOpt = []string{"seccomp=unconfined", "apparmor=unconfined"}
	host.MaskedPaths, host.ReadonlyPaths = []string{}, []string{}
	host.Mounts = []mount.Mount{
		{Type: mount.TypeBind, Source: place.Tree, Target: policy.Worktree},
		{Type: mount.TypeBind, Source: place.ReadOnly, Target: "/ro", ReadOnly: true},
		{Type: mount.TypeBind, Source: place.Shown, Target: place.Shown, ReadOnly: true},
	}
	// Another name for a harmless device, for the attempt to open what not every container has.
	host.Devices = []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/sandplan-verify", CgroupPermissions: "rw"}}
	host.Tmpfs = map[string]string{"/tmp": "rw,mode=1777,size=256m"}
	return config, host
}

func probeConfig(image string) (*container.Config, *container.HostConfig) {
	pids := int64(1024)
	return &container.Config{
			Image: image, Entrypoint: []string{toolBinary}, Cmd: []string{policy.ProbeCommand}, User: "0:0",
			AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		}, &container.HostConfig{
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "1"}},
			Resources:     container.Resources{Memory: 1 << 30, MemorySwap: 1 << 30, PidsLimit: &pids},
		}
}
