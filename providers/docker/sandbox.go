package docker

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"sort"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// Names of the programs within the binary, as the first element of a container's command line.
const (
	commandShim   = "shim"
	commandEgress = "egress"
)

// sandbox is what agents and runners have in common: a sealed command on a worktree, under the shim,
// with everything that a container can be given spelled out.
type sandbox struct {
	scope      planner.Scope
	invocation hclspec.Invocation
	addr       planner.Address // of the container
	command    policy.Command
	image      pinnedImage
	user       policy.User
	binds      []bind
	hideGit    bool
	shimVolume string
	timeoutMS  int64
	hostname   string
	hardened   container.HostConfig
	// promptSHA256 is the digest of the declared prompt, "" when there is none.
	promptSHA256 string
	// home is the directory that files of the declaration are named relative to.
	home string
}

// tmpfs is one memory file system of a container. Docker gives it the mode of the image's directory,
// whatever mode it is asked for, when the image has one there (seen on 20.10): so only a mode that no
// image can spoil is declared to the shim.
type tmpfs struct {
	target string
	size   int64
	mode   uint32
	own    bool // belongs to the command's user
	strict bool // the mode matters
}

const mib = 1 << 20

// tmpfses are all of a sandbox, sorted by target: its own, one for each VOLUME of the image (the engine
// would put a writable directory of the host there), and one for each directory that a file of the
// command needs.
func (s sandbox) tmpfses() ([]tmpfs, error) {
	list := []tmpfs{
		{target: "/tmp", size: 256 * mib, mode: 0o1777, own: true},
		{target: policy.Home, size: 256 * mib, mode: 0o700, own: true},
		{target: policy.RunDir, size: 16 * mib, mode: 0o700, own: true, strict: true},
	}
	if s.hideGit {
		list = append(list, tmpfs{target: policy.Worktree + "/.git", size: 4096, mode: 0o500})
	}
	for _, v := range s.image.config.Volumes {
		target := path.Clean(v)
		if covered := slices.ContainsFunc(list, func(t tmpfs) bool { return t.target == target }); covered {
			continue
		}
		if taken := reservedFor(target); taken != "" || target == "/" {
			return nil, &refusal{summaryImage, fmt.Sprintf("The image %s declares a VOLUME at %s, where %s is in every container. "+
				"Build it without that VOLUME.", s.image.ref, v, orElse("the root file system")(nonEmpty(taken)))}
		}
		list = append(list, tmpfs{target: target, size: 64 * mib, mode: 0o700, own: true})
	}
	for _, f := range s.command.Files() {
		dir := path.Dir(f.Path)
		if !slices.ContainsFunc(list, func(t tmpfs) bool { return within(t.target, dir) }) {
			list = append(list, tmpfs{target: dir, size: mib, mode: 0o700, own: true})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].target < list[j].target })
	return list, nil
}

func nonEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// options is the file system as HostConfig.Tmpfs holds it: the only way to say whom it belongs to.
func (t tmpfs) options(u policy.User) string {
	o := fmt.Sprintf("rw,nosuid,nodev,noexec,size=%d,mode=%04o", t.size, t.mode)
	if t.own {
		o += fmt.Sprintf(",uid=%d,gid=%d", u.UID, u.GID)
	}
	return o
}

// shimMount is the file system as the shim is to find it.
func (t tmpfs) shimMount() shim.Mount {
	m := shim.Mount{Path: t.target, Type: shim.MountTmpfs, Flags: []string{"nodev", "noexec", "nosuid"}, Size: t.size, Own: t.own}
	if t.strict {
		m.Mode = t.mode
	}
	return m
}

// spec is the container, but for its network.
func (s sandbox) spec(network *shim.Network) (containerSpec, error) {
	memory, err := s.tmpfses()
	if err != nil {
		return containerSpec{}, err
	}
	arg, err := s.shimConfig(memory, network)
	if err != nil {
		return containerSpec{}, err
	}
	config := hardenedConfig(s.image.id, []string{commandShim, arg})
	config.Hostname = s.hostname
	config.User = s.user.String()
	config.WorkingDir = policy.Worktree
	// A bare name takes a variable of the image away. What the command gets is in the shim's argument;
	// nothing that image or declaration say reaches the shim itself.
	config.Env = sortedKeys(s.image.config.Env)
	config.Labels = maps.Clone(s.image.config.Labels)
	for _, p := range s.image.config.ExposedPorts {
		config.ExposedPorts[nat.Port(p)] = struct{}{}
	}
	for _, v := range s.image.config.Volumes {
		config.Volumes[v] = struct{}{}
	}
	l := s.invocation.Limits
	host := limits{memory: l.Memory.V, nanoCPUs: nanoCPUs(l.CPUs.V), pids: l.PIDs.V}.on(s.hardened)
	host.OomScoreAdj = 500 // before anything of the host
	host.Tmpfs = map[string]string{}
	for _, t := range memory {
		host.Tmpfs[t.target] = t.options(s.user)
	}
	for _, b := range s.binds {
		host.Mounts = append(host.Mounts, b.mount())
	}
	host.Mounts = append(host.Mounts, mount.Mount{
		Type:          mount.TypeVolume,
		Source:        s.shimVolume,
		Target:        toolDir,
		ReadOnly:      true,
		Consistency:   mount.ConsistencyDefault,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true, DriverConfig: &mount.Driver{Name: "local"}},
	})
	// The shim answers on port 53 for everybody in the container, and has no capability to bind it.
	host.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	return containerSpec{name: objectName(s.scope, s.addr), config: config, host: host}, nil
}

// engineResolver is what resolv.conf names on a network of the user's: the engine's own resolver, which forwards to
// HostConfig.Dns. That is the shim in an agent's container, and nobody in a proxy's, which asks the declared servers.
const engineResolver = "127.0.0.11"

func (s sandbox) shimConfig(memory []tmpfs, network *shim.Network) (string, error) {
	l := s.invocation.Limits
	c := shim.Config{
		Invocation:    s.invocation.Address,
		Argv:          s.command.Argv(),
		Env:           s.environment(network),
		Dir:           policy.Worktree,
		UID:           int(s.user.UID),
		GID:           int(s.user.GID),
		PromptToStdin: s.command.Stdin(),
		PromptSHA256:  s.promptSHA256,
		Network:       network,
		Nameservers:   []string{"127.0.0.1"},
		UnixSockets:   network != nil,
		Limits:        shim.Limits{Memory: l.Memory.V, NanoCPUs: nanoCPUs(l.CPUs.V), PIDs: l.PIDs.V},
		Bounds:        shim.Bounds{TimeoutMS: s.timeoutMS, GraceMS: 5_000, SilenceMS: 5_000, Output: l.Output.V},
	}
	if network != nil {
		c.Nameservers = []string{engineResolver}
	}
	for _, f := range s.command.Files() {
		c.Files = append(c.Files, shim.File{Path: f.Path, Mode: f.Mode, Content: f.Content})
	}
	for _, cr := range s.command.Credentials() {
		c.Credentials = append(c.Credentials, shim.Credential{Name: cr.Name, Env: cr.Env, Path: cr.Path, Source: sourceOf(cr, s.home)})
	}
	for _, b := range s.binds {
		c.Mounts = append(c.Mounts, shim.Mount{Path: b.target, Type: shim.MountBind, ReadOnly: b.readOnly, Tree: b.target == policy.Worktree})
	}
	c.Mounts = append(c.Mounts, shim.Mount{Path: toolDir, Type: shim.MountVolume, ReadOnly: true})
	for _, t := range memory {
		c.Mounts = append(c.Mounts, t.shimMount())
	}
	sort.Slice(c.Mounts, func(i, j int) bool { return c.Mounts[i].Path < c.Mounts[j].Path })
	return c.Arg()
}

// environment is all that the command finds, sorted.
func (s sandbox) environment(network *shim.Network) []string {
	all := map[string]string{}
	for _, e := range s.command.Env() {
		all[e.Name] = e.Value
	}
	if network != nil {
		for _, e := range policy.ProxyEnv(netip.MustParseAddrPort(network.Proxy)) {
			all[e.Name] = e.Value
		}
	}
	out := make([]string, 0, len(all))
	for _, name := range sortedKeys(all) {
		out = append(out, name+"="+all[name])
	}
	return out
}

// sandboxRows are what agents and runners have in common.
func sandboxRows() []row {
	rows := append(containerRows(), sandboxMountRows()...)
	return append(rows, shimRows()...)
}

// shimRows are the rows of the shim's argument.
func shimRows() []row {
	at := "Config.Cmd[1]."
	return []row{
		{path: at + "invocation", norm: text},
		{path: at + "prompt_sha256", norm: text, attr: "prompt"},
		{path: at + "argv", norm: list, label: "command", show: planner.Headline},
		{path: at + "env", norm: list, attr: "env"},
		{path: at + "dir", norm: text},
		{path: at + "uid", norm: integer, attr: "user"},
		{path: at + "gid", norm: integer, attr: "user"},
		{path: at + "prompt_to_stdin", norm: boolean},
		{path: at + "files", norm: list},
		{path: at + "credentials", norm: list, attr: "credential"},
		{path: at + "mounts", norm: list},
		{path: at + "nameservers", norm: list},
		{path: at + "unix_sockets", norm: boolean},
		{path: at + "limits.memory", norm: integer, attr: "limits.memory", unit: planner.UnitBytes},
		{path: at + "limits.nano_cpus", norm: integer, attr: "limits.cpus", unit: planner.UnitNanoCPUs},
		{path: at + "limits.pids", norm: integer, attr: "limits.pids"},
		{path: at + "bounds.timeout_ms", norm: integer, attr: "timeout", unit: planner.UnitMillis, show: planner.Headline},
		{path: at + "bounds.grace_ms", norm: integer, unit: planner.UnitMillis},
		{path: at + "bounds.silence_ms", norm: integer, unit: planner.UnitMillis},
		{path: at + "bounds.output", norm: integer, attr: "limits.output", unit: planner.UnitBytes},
	}
}

// limits bound a container.
type limits struct {
	memory   int64 // bytes, swap included
	nanoCPUs int64
	pids     int64
}

func nanoCPUs(cpus float64) int64 { return int64(cpus*1e9 + 0.5) }

// hardenedConfig is what no container of ours differs in.
func hardenedConfig(image string, cmd []string) container.Config {
	stop := 10
	return container.Config{
		Image:        image,
		Entrypoint:   []string{toolBinary},
		Cmd:          cmd,
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
		OpenStdin:    true,
		StdinOnce:    true, // standard input is the lease
		Env:          []string{},
		ExposedPorts: nat.PortSet{},
		Volumes:      map[string]struct{}{},
		Healthcheck:  &container.HealthConfig{Test: []string{"NONE"}},
		OnBuild:      []string{},
		Shell:        []string{},
		StopSignal:   "SIGTERM",
		StopTimeout:  &stop,
		WorkingDir:   "/",
	}
}

// on is a hardened host with these limits. It shares with the other all that is not limited.
func (l limits) on(host container.HostConfig) container.HostConfig {
	host.Memory, host.NanoCPUs, host.PidsLimit = l.memory, l.nanoCPUs, &l.pids
	host.MemorySwap = l.memory // memory and swap together: no swap
	return host
}

// hardenedHost is the hardening that no configuration relaxes, with nothing left to the daemon.
func hardenedHost(l limits, seccomp string) container.HostConfig { return l.on(hardened(seccomp)) }

// hardened is the hardening without limits. All containers of a kind share one, and nobody writes into what it
// refers to.
func hardened(seccomp string) container.HostConfig {
	no := false
	return container.HostConfig{
		LogConfig:      container.LogConfig{Type: "json-file", Config: logOptions("16m")},
		NetworkMode:    roleNone,
		PortBindings:   nat.PortMap{},
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapDrop:        []string{"ALL"},
		CgroupnsMode:   container.CgroupnsModePrivate,
		DNS:            []string{"127.0.0.1"},
		DNSOptions:     []string{},
		DNSSearch:      []string{"."},
		ExtraHosts:     []string{},
		GroupAdd:       []string{},
		IpcMode:        container.IPCModePrivate,
		ReadonlyRootfs: true,
		SecurityOpt:    []string{"no-new-privileges", seccompOption + seccomp},
		ShmSize:        64 * mib,
		Runtime:        "runc",
		MaskedPaths:    maskedPaths(),
		ReadonlyPaths:  []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		Init:           &no,
		Resources: container.Resources{
			OomKillDisable: &no,
			Devices:        []container.DeviceMapping{},
			Ulimits:        resourceLimits(),
		},
	}
}

// logOptions are all that an engine can be told about logs, but for max-buffer-size, which it takes with
// another mode only: for a name that is missing an engine takes what its daemon.json says of the same
// driver, and of the cache for any, and would be found not to obey.
func logOptions(size string) map[string]string {
	return map[string]string{"max-file": "1", "max-size": size, "compress": "false", "mode": "blocking",
		"labels": "", "labels-regex": "", "env": "", "env-regex": "", "tag": "",
		"cache-disabled": "true", "cache-compress": "false", "cache-max-file": "1", "cache-max-size": "16m"}
}

// resourceLimits are all that an engine can be told: for a name that is missing it takes what its
// daemon.json says, and shows it when it has been restarted. An engine cannot give more than it has itself,
// and says so only at the start; so none is above what one has that was started from a plain shell.
func resourceLimits() []*container.Ulimit {
	const unlimited = -1
	var out []*container.Ulimit
	for _, l := range []struct {
		name  string
		value int64
	}{
		{"core", 0}, // a core dump would hold the credential
		{"cpu", unlimited},
		{"data", unlimited},
		{"fsize", unlimited},
		{"locks", unlimited},
		{"memlock", 64 << 10},
		{"msgqueue", 0},
		{"nice", 0},
		{"nofile", 4096}, // above the 6 that each of a proxy's tunnels may hold
		// Counted over all that the user runs on the host; what bounds the container is PidsLimit.
		{"nproc", 32768},
		{"rss", unlimited},
		{"rtprio", 0},
		{"rttime", unlimited},
		{"sigpending", 4096},
		{"stack", 8 * mib},
	} {
		out = append(out, &container.Ulimit{Name: l.name, Soft: l.value, Hard: l.value})
	}
	return out
}

// maskedPaths are those that any engine from 20.10 to 28.5 hides by default.
func maskedPaths() []string {
	return []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"}
}

// hostPort is a host and port as the proxy is asked for it.
func hostPort(name string, port int) string { return net.JoinHostPort(name, strconv.Itoa(port)) }
