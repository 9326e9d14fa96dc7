package docker

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"github.com/sandplan/sandplan/planner"
)

// tampering is one way in which somebody makes a container again: with our name, our labels, and one
// thing different.
type tampering struct {
	reason string
	change func(s *containerSpec)
	// fields are the paths that must be named, and no others; one that ends with * stands for all that
	// begin so.
	fields string
}

func agentTamperings(w *world) []tampering {
	yes := true
	one, hundred := int64(1), int64(100)
	aMount := func(s *containerSpec, target string) *mount.Mount {
		return &s.host.Mounts[slices.IndexFunc(s.host.Mounts, func(m mount.Mount) bool { return m.Target == target })]
	}
	// Where a container's hardware address is asked for, and shown, depends on the engine.
	hardware := tampering{"a hardware address", func(s *containerSpec) {
		s.endpoints[0].settings.MacAddress = "02:00:00:00:00:01"
	}, "NetworkSettings.Networks.network.MacAddress"}
	if lessVersion(w.engine.Info().API, "1.44") {
		hardware.fields = "Config.MacAddress"
		hardware.change = func(s *containerSpec) {
			//lint:ignore SA1019 it is what engines before 25 take
			s.config.MacAddress = "02:00:00:00:00:01"
		}
	}
	return []tampering{
		hardware,
		{"another user", func(s *containerSpec) { s.config.User = "0:0" }, "Config.User"},
		{"a variable", func(s *containerSpec) { s.config.Env = append(s.config.Env, "X=1") }, "Config.Env"},
		{"a variable of the image comes back", func(s *containerSpec) { s.config.Env = s.config.Env[1:] }, "Config.Env"},
		{"another program", func(s *containerSpec) { s.config.Entrypoint = []string{"/agent"} }, "Config.Entrypoint"},
		{"the same argument, spelled differently", func(s *containerSpec) { s.config.Cmd[1] = " " + s.config.Cmd[1] }, "Config.Cmd[1]*"},
		{"another command", func(s *containerSpec) {
			s.config.Cmd[1] = strings.Replace(s.config.Cmd[1], `"/agent","--json"`, `"/agent","--yolo"`, 1)
		}, "Config.Cmd[1].argv"},
		{"a longer time", func(s *containerSpec) {
			s.config.Cmd[1] = strings.Replace(s.config.Cmd[1], `"timeout_ms":1800000`, `"timeout_ms":9900000`, 1)
		}, "Config.Cmd[1].bounds.timeout_ms"},
		{"a field twice in the argument", func(s *containerSpec) {
			s.config.Cmd[1] = strings.Replace(s.config.Cmd[1], `{"invocation"`, `{"uid":0,"invocation"`, 1)
		}, "Config.Cmd[1]*"},
		{"one argument more", func(s *containerSpec) { s.config.Cmd = append(s.config.Cmd, "x") }, "Config.Cmd*"},
		{"a terminal", func(s *containerSpec) { s.config.Tty = true }, "Config.Tty"},
		{"standard input stays open", func(s *containerSpec) { s.config.StdinOnce = false }, "Config.StdinOnce"},
		{"a health check", func(s *containerSpec) {
			s.config.Healthcheck = &container.HealthConfig{Test: []string{"CMD", "/agent"}}
		}, "Config.Healthcheck"},
		{"another host name", func(s *containerSpec) { s.config.Hostname = "x" }, "Config.Hostname"},
		{"a stop signal that nobody heeds", func(s *containerSpec) { s.config.StopSignal = "SIGCHLD" }, "Config.StopSignal"},
		{"a label more", func(s *containerSpec) { s.config.Labels["x"] = "y" }, "Config.Labels"},
		{"the image by its name, which can move", func(s *containerSpec) { s.config.Image = w.agent }, "Config.Image"},
		{"a port of the image's", func(s *containerSpec) { s.config.ExposedPorts["99/tcp"] = struct{}{} }, "Config.ExposedPorts"},
		{"a volume, which is a writable directory of the host", func(s *containerSpec) { s.config.Volumes["/extra"] = struct{}{} }, "Config.Volumes Mounts"},
		{"a working directory", func(s *containerSpec) { s.config.WorkingDir = "/" }, "Config.WorkingDir"},

		{"a capability", func(s *containerSpec) { s.host.CapAdd = []string{"net_raw"} }, "HostConfig.CapAdd"},
		{"the default capabilities", func(s *containerSpec) { s.host.CapDrop = nil }, "HostConfig.CapDrop"},
		// With each of the host's namespaces the engine turns SELinux off as well.
		{"privileged", func(s *containerSpec) { s.host.Privileged = true }, "HostConfig.Privileged HostConfig.SecurityOpt"},
		{"no profile", func(s *containerSpec) { s.host.SecurityOpt = []string{"no-new-privileges", "seccomp=unconfined"} }, "HostConfig.SecurityOpt"},
		{"new privileges", func(s *containerSpec) { s.host.SecurityOpt = s.host.SecurityOpt[1:] }, "HostConfig.SecurityOpt"},
		{"a writable root", func(s *containerSpec) { s.host.ReadonlyRootfs = false }, "HostConfig.ReadonlyRootfs"},
		{"the host's processes", func(s *containerSpec) { s.host.PidMode = "host" }, "HostConfig.PidMode HostConfig.SecurityOpt"},
		{"the host's shared memory", func(s *containerSpec) { s.host.IpcMode = "host" }, "HostConfig.IpcMode HostConfig.SecurityOpt"},
		{"the host's names", func(s *containerSpec) { s.config.Hostname, s.host.UTSMode = "", "host" }, "HostConfig.UTSMode Config.Hostname"},
		{"the host's cgroups", func(s *containerSpec) { s.host.CgroupnsMode = "host" }, "HostConfig.CgroupnsMode"},
		{"paths of the kernel", func(s *containerSpec) { s.host.MaskedPaths = []string{} }, "HostConfig.MaskedPaths"},
		{"writable paths of the kernel", func(s *containerSpec) { s.host.ReadonlyPaths = []string{"/proc/bus"} }, "HostConfig.ReadonlyPaths"},
		{"a device", func(s *containerSpec) {
			s.host.Devices = []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/x", CgroupPermissions: "rwm"}}
		}, "HostConfig.Devices"},
		{"access to devices", func(s *containerSpec) { s.host.DeviceCgroupRules = []string{"c 1:3 rwm"} }, "HostConfig.DeviceCgroupRules"},
		{"a group", func(s *containerSpec) { s.host.GroupAdd = []string{"0"} }, "HostConfig.GroupAdd"},
		{"less memory", func(s *containerSpec) { s.host.Memory = 1 << 30 }, "HostConfig.Memory"},
		{"swap", func(s *containerSpec) { s.host.MemorySwap = 4 << 30 }, "HostConfig.MemorySwap"},
		{"more processors", func(s *containerSpec) { s.host.NanoCPUs = 1e9 }, "HostConfig.NanoCpus"},
		{"no bound on processes", func(s *containerSpec) { s.host.PidsLimit = nil }, "HostConfig.PidsLimit"},
		{"a bound that is not ours", func(s *containerSpec) { s.host.PidsLimit = &hundred }, "HostConfig.PidsLimit"},
		{"shares of processors", func(s *containerSpec) { s.host.CPUShares = 99 }, "HostConfig.CpuShares"},
		{"swappiness", func(s *containerSpec) { s.host.MemorySwappiness = &one }, "HostConfig.MemorySwappiness"},
		{"core dumps", func(s *containerSpec) { s.host.Ulimits = s.host.Ulimits[1:] }, "HostConfig.Ulimits"},
		{"another first process", func(s *containerSpec) { s.host.Init = &yes }, "HostConfig.Init"},
		{"the engine's default first process", func(s *containerSpec) { s.host.Init = nil }, "HostConfig.Init"},
		{"it comes back by itself", func(s *containerSpec) { s.host.RestartPolicy.Name = "always" }, "HostConfig.RestartPolicy.Name"},
		{"it removes itself", func(s *containerSpec) { s.host.AutoRemove = true }, "HostConfig.AutoRemove"},
		{"an unbounded log", func(s *containerSpec) { s.host.LogConfig.Config = map[string]string{} }, "HostConfig.LogConfig.Config"},
		{"no log", func(s *containerSpec) { s.host.LogConfig = container.LogConfig{Type: "none"} }, "HostConfig.LogConfig*"},
		{"a setting of the kernel", func(s *containerSpec) { s.host.Sysctls = map[string]string{"net.ipv4.ip_forward": "1"} }, "HostConfig.Sysctls"},
		{"more shared memory", func(s *containerSpec) { s.host.ShmSize = 1 << 30 }, "HostConfig.ShmSize"},
		{"executable temporary files", func(s *containerSpec) {
			s.host.Tmpfs = maps.Clone(s.host.Tmpfs)
			s.host.Tmpfs["/tmp"] = strings.Replace(s.host.Tmpfs["/tmp"], "noexec", "exec", 1)
		}, "HostConfig.Tmpfs"},
		{"a name server", func(s *containerSpec) { s.host.DNS = []string{"192.0.2.1"} }, "HostConfig.Dns"},
		{"a search list", func(s *containerSpec) { s.host.DNSSearch = []string{"example.com"} }, "HostConfig.DnsSearch"},
		{"a name of a host", func(s *containerSpec) { s.host.ExtraHosts = []string{"a:192.0.2.1"} }, "HostConfig.ExtraHosts"},
		{"a published port", func(s *containerSpec) {
			s.host.PortBindings = nat.PortMap{"8080/tcp": {{HostIP: "127.0.0.1", HostPort: "39999"}}}
		}, "HostConfig.PortBindings"},
		{"all ports", func(s *containerSpec) { s.host.PublishAllPorts = true }, "HostConfig.PublishAllPorts"},

		{"a writable worktree", func(s *containerSpec) { aMount(s, "/work").ReadOnly = false }, `HostConfig.Mounts["/work"].ReadOnly`},
		{"another worktree", func(s *containerSpec) { aMount(s, "/work").Source = w.dir }, `HostConfig.Mounts["/work"].Source`},
		{"what is mounted below it as well", func(s *containerSpec) {
			aMount(s, "/work").BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate}
		}, `HostConfig.Mounts["/work"].BindOptions`},
		{"a writable repository", func(s *containerSpec) { aMount(s, "/work/.git").ReadOnly = false }, `HostConfig.Mounts["/work/.git"].ReadOnly`},
		{"another shim", func(s *containerSpec) {
			aMount(s, "/.sandplan").Source = objectName(w.scope(), planner.AddrShim, "another")
		}, `HostConfig.Mounts["/.sandplan"].Source`},
		{"a mount more", func(s *containerSpec) {
			s.host.Mounts = append(s.host.Mounts, bind{source: "/etc", target: "/host", readOnly: true}.mount())
		}, `HostConfig.Mounts.others["/host"]*`},
		{"a bind in the old way", func(s *containerSpec) { s.host.Binds = []string{"/etc:/host:ro"} }, "HostConfig.Binds Mounts"},

		{"no network", func(s *containerSpec) { s.host.NetworkMode, s.endpoints = roleNone, nil }, "HostConfig.NetworkMode NetworkSettings.Networks*"},
		{"the host's network", func(s *containerSpec) {
			s.config.Hostname, s.host.NetworkMode, s.endpoints, s.host.Sysctls = "", "host", nil, nil
		}, "Config.Hostname HostConfig.NetworkMode HostConfig.Sysctls NetworkSettings.Networks*"},
		{"the network by its name, which can move", func(s *containerSpec) {
			s.host.NetworkMode = container.NetworkMode(objectName(w.scope(), "invocation.one.network"))
		}, "HostConfig.NetworkMode"},
		{"another address", func(s *containerSpec) {
			s.endpoints[0].settings.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: "10.231.20.5"}
		}, "NetworkSettings.Networks.network.IPAMConfig.IPv4Address"},
		{"another name on the network", func(s *containerSpec) { s.endpoints[0].settings.Aliases = []string{"proxy"} }, "NetworkSettings.Networks.network.Aliases"},
		{"nothing at all", func(*containerSpec) {}, ""},
	}
}

func TestTamperedAgentIsSeen(t *testing.T) {
	w := newWorld(t)
	c, ids := w.makeOne("10.231.16.0/20")
	const addr planner.Address = "invocation.one.agent"
	wanted := c.resource(addr)
	labels := labelsFor(w.scope(), w.engine.options.Origin, wanted)
	t.Cleanup(func() { // the engine makes it for the container that asks for it
		_ = w.engine.cli.VolumeRemove(context.Background(), objectName(w.scope(), planner.AddrShim, "another"), false)
	})
	for _, tt := range agentTamperings(w) {
		if err := w.engine.Delete(t.Context(), planner.Object{Kind: planner.KindAgent, ID: ids[addr]}); err != nil {
			t.Fatal(err)
		}
		spec := c.desired[addr].(containerSpec)
		spec.config.Labels = maps.Clone(spec.config.Labels)
		spec.config.ExposedPorts = maps.Clone(spec.config.ExposedPorts)
		spec.config.Volumes = maps.Clone(spec.config.Volumes)
		spec.config.Cmd = slices.Clone(spec.config.Cmd)
		spec.host.Mounts = slices.Clone(spec.host.Mounts)
		spec.endpoints = slices.Clone(spec.endpoints)
		tt.change(&spec)
		id, err := spec.create(t.Context(), w.engine, labels, ids)
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		ids[addr] = id
		requireNamed(t, w, wanted, tt)
	}
}

// requireNamed looks at an object and expects exactly the fields of a tampering to differ.
func requireNamed(t *testing.T, w *world, wanted planner.Resource, tt tampering) {
	t.Helper()
	snap, err := w.engine.Recheck(t.Context(), w.scope(), []planner.Address{wanted.Addr})
	if err != nil {
		t.Errorf("%s: %v", tt.reason, err)
		return
	}
	o, ok := snap.Object(wanted.Addr)
	if !ok {
		t.Errorf("%s: the object is not seen at all", tt.reason)
		return
	}
	expected := strings.Fields(strings.ReplaceAll(tt.fields, `["other `, `["other_`))
	met := map[string]bool{}
	named := func(path, detail string) {
		path = strings.ReplaceAll(path, `["other `, `["other_`) // the fields of a tampering are set apart by spaces
		i := slices.IndexFunc(expected, func(e string) bool {
			prefix, all := strings.CutSuffix(e, "*")
			return e == path || all && strings.HasPrefix(path, prefix)
		})
		if i < 0 {
			t.Errorf("%s: %s differs too: %s", tt.reason, path, detail)
			return
		}
		met[expected[i]] = true
	}
	for _, m := range planner.Compare(wanted.Fields, o.Observed) {
		named(m.Field.Path, "want "+show(m.Want)+", got "+show(m.Got))
	}
	for _, x := range o.Extra {
		named(x.Path, "extra "+x.Detail)
	}
	for _, e := range expected {
		if !met[e] {
			t.Errorf("%s: %s does not differ", tt.reason, e)
		}
	}
}

func TestChangedInPlaceIsSeen(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.32.0/20", w.one("review")+strings.Replace(w.one("review"), `"one"`, `"two"`, 1)))
	c := w.compile(s)
	ids := w.apply(c)
	agent, proxy := ids["invocation.one.agent"], ids["invocation.one.proxy"]
	cli, ctx := w.engine.cli, t.Context()
	for _, tt := range []struct {
		addr planner.Address
		do   func() error
		tampering
	}{
		{"invocation.one.agent", func() error {
			_, err := cli.ContainerUpdate(ctx, agent, container.UpdateConfig{Resources: container.Resources{Memory: 1 << 30, MemorySwap: 2 << 30}})
			return err
		}, tampering{reason: "docker update --memory", fields: "HostConfig.Memory"}},
		{"invocation.one.agent", func() error {
			_, err := cli.ContainerUpdate(ctx, agent, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "unless-stopped"}})
			return err
		}, tampering{reason: "docker update --restart, on top", fields: "HostConfig.Memory HostConfig.RestartPolicy.Name"}},
		{"invocation.two.agent", func() error {
			return cli.NetworkConnect(ctx, ids[planner.AddrUplink], ids["invocation.two.agent"], nil)
		}, tampering{reason: "docker network connect to the way out", fields: "NetworkSettings.Networks.sandplan-*"}},
		{"invocation.two.proxy", func() error { return cli.NetworkConnect(ctx, "bridge", ids["invocation.two.proxy"], nil) },
			tampering{reason: "docker network connect to a foreign network", fields: "NetworkSettings.Networks.bridge"}},
		{"invocation.one.proxy", func() error { return cli.NetworkDisconnect(ctx, ids["invocation.one.network"], proxy, true) },
			tampering{reason: "docker network disconnect", fields: "NetworkSettings.Networks.network*"}},
		{"invocation.one.proxy", func() error {
			return cli.NetworkConnect(ctx, ids["invocation.two.network"], proxy, &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.231.36.12"}})
		}, tampering{reason: "connected to the network of another invocation instead", fields: "NetworkSettings.Networks*"}},
		{"invocation.one.proxy", func() error { return cli.ContainerRename(ctx, proxy, w.project()+"-renamed") },
			tampering{reason: "docker rename, on top", fields: "Name NetworkSettings.Networks*"}},
	} {
		if err := tt.do(); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		requireNamed(t, w, c.resource(tt.addr), tt.tampering)
	}
}

// A foreign network may be called anything, even what a role is called here, and be seen as running or
// as created: whatever is on it has one network too many, or the wrong one.
func TestNetworkNamedAsARoleIsForeign(t *testing.T) {
	w := newWorld(t)
	c, ids := w.makeOne("10.231.96.0/20")
	cli, ctx := w.engine.cli, t.Context()
	const addr planner.Address = "invocation.one.agent"
	wanted := c.resource(addr)
	agent, own := ids[addr], ids["invocation.one.network"]
	address := c.Allocation().Networks["invocation.one"].Agent.String()
	fixed := func(address string) *network.EndpointSettings {
		return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: address}}
	}
	// On older engines even with our address: they look at it only when the container starts.
	there := "10.231.255.3"
	if lessVersion(w.engine.Info().API, "1.44") {
		there = address
	}
	if _, err := cli.NetworkCreate(ctx, roleNone, network.CreateOptions{}); err == nil {
		t.Errorf("the engine lets somebody make a network called %q", roleNone)
	}
	for _, name := range []string{roleNetwork, roleUplink, "bridge"} {
		foreign := name
		if name != "bridge" {
			made, err := cli.NetworkCreate(ctx, name, network.CreateOptions{Internal: true,
				IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.231.255.0/24"}}}})
			if err != nil {
				t.Fatal(err)
			}
			foreign = made.ID
			t.Cleanup(func() { _ = cli.NetworkRemove(context.Background(), foreign) })
		}
		other := fmt.Sprintf(`NetworkSettings.Networks["other %s"]`, name)
		if name == "bridge" {
			other = "NetworkSettings.Networks.bridge"
		}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		settings := fixed(there)
		if name == "bridge" {
			settings = nil
		}
		do(cli.NetworkConnect(ctx, foreign, agent, settings))
		requireNamed(t, w, wanted, tampering{reason: name + " as well", fields: other})
		do(cli.NetworkDisconnect(ctx, own, agent, true))
		requireNamed(t, w, wanted, tampering{reason: name + " instead", fields: other + " NetworkSettings.Networks.network.*"})
		do(cli.NetworkDisconnect(ctx, foreign, agent, true))
		do(cli.NetworkConnect(ctx, own, agent, fixed(address)))
		requireNamed(t, w, wanted, tampering{reason: "ours again after " + name})
		if name != "bridge" {
			do(cli.NetworkRemove(ctx, foreign))
		}
	}
	// The same while it runs: then the engine shows the network's ID, and the name counts for nothing.
	if err := cli.ContainerStart(ctx, agent, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := cli.NetworkCreate(ctx, roleNetwork, network.CreateOptions{IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.231.255.0/24"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.NetworkRemove(context.Background(), made.ID) })
	if err := cli.NetworkConnect(ctx, made.ID, agent, nil); err != nil {
		t.Fatal(err)
	}
	requireNamed(t, w, wanted, tampering{reason: "while it runs", fields: `NetworkSettings.Networks["other network"]`})
	if err := w.engine.Delete(ctx, planner.Object{Kind: planner.KindAgent, ID: agent}); err != nil {
		t.Fatal(err)
	}
}

func TestTamperedShimIsSeen(t *testing.T) {
	w := newWorld(t)
	c, _ := w.makeOne("10.231.48.0/20")
	shimResource := c.resource(planner.AddrShim)
	v, err := w.engine.cli.VolumeInspect(t.Context(), c.desired[planner.AddrShim].(desiredShim).name())
	if err != nil {
		t.Fatal(err)
	}
	requireNamed(t, w, shimResource, tampering{reason: "as it was made"})

	write(t, filepath.Join(v.Mountpoint, "more"), "x")
	requireNamed(t, w, shimResource, tampering{reason: "a file more", fields: "Content"})

	seeds, err := (&look{engine: w.engine, scope: w.scope()}).seedsOf(t.Context(), v.Name)
	if err != nil || len(seeds) != 1 {
		t.Fatalf("seeds %v, %v", seeds, err)
	}
	if err := w.engine.cli.ContainerRemove(t.Context(), treeID(seeds[0]), container.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	requireNamed(t, w, shimResource, tampering{reason: "no seed: nothing tells what the volume holds", fields: "Content Seed.*"})
}
