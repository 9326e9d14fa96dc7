package probe

// Where says where an attempt that succeeds is seen.
type Where string

// The places. All but Inside are places that the probe has no say in.
const (
	// AtHost: packets and connections, as the canary on the host's network sees them, on every interface
	// but the sandbox's own.
	AtHost Where = "host network"
	// AtFiles: files of the host, as sandplan itself sees them.
	AtFiles Where = "host files"
	// AtSecond: the second invocation, by its own listeners and the log of its proxy.
	AtSecond Where = "second invocation"
	// AtEngine: how the container ended, as its first process and the engine tell it.
	AtEngine Where = "engine"
	// Inside: what the kernel answered to the probe. There is no other witness.
	Inside Where = "inside"
)

// Control says where the same attempt has to succeed for its failure to mean something.
type Control string

// The controls.
const (
	// ControlOpen is a container of sandplan's own image without the boundary, on the uplink.
	ControlOpen Control = "container without the boundary"
	// ControlHost is the host's own network.
	ControlHost Control = "host's own network"
	// ControlSecond is the second invocation itself.
	ControlSecond Control = "inside the second invocation"
	// ControlAllowed is the one way that is declared, tried by the same probe in the same run.
	ControlAllowed Control = "the declared way"
)

// Needs names what an attempt is about. Where the declaration has no such thing, it does not apply.
type Needs string

// The things.
const (
	NeedsNothing  Needs = ""
	NeedsReadOnly Needs = "a read-only worktree"
	NeedsGit      Needs = "a .git in the worktree"
	NeedsProxy    Needs = "a proxy"
)

// Attempt is one way to get out.
type Attempt struct {
	// ID is stable: reports and tests name it.
	ID string
	// What it tries, in one clause.
	What    string
	Where   Where
	Control Control
	// Source is the rule or the public failure that it comes from.
	Source string
	Needs  Needs
}

// Attempts are all of them, in the order of reports. The place of one in this list is its number in what
// goes over the network (Token.Attempt): 0 is the declared way.
func Attempts() []Attempt {
	return []Attempt{
		// To the world, past the proxy.
		{ID: "egress-tcp4", What: "TCP to an address of the internet", Where: AtHost, Control: ControlOpen, Source: "moby/libnetwork#1151"},
		{ID: "egress-udp4", What: "UDP to an address of the internet, bound to each interface as well", Where: AtHost, Control: ControlOpen, Source: "B4"},
		{ID: "egress-icmp4", What: "ICMP echo to an address of the internet", Where: AtHost, Control: ControlOpen, Source: "B4"},
		{ID: "egress-ip6", What: "TCP and UDP to IPv6 addresses, all nodes of each link included", Where: AtHost, Control: ControlHost, Source: "B4"},

		// To the host.
		{ID: "host-tcp4", What: "TCP to every address of the host", Where: AtHost, Control: ControlOpen, Source: "moby/libnetwork#2261"},
		{ID: "host-udp4", What: "UDP to every address of the host", Where: AtHost, Control: ControlOpen, Source: "moby/libnetwork#2261"},
		{ID: "host-device", What: "TCP and UDP to the host with SO_BINDTODEVICE and SO_DONTROUTE", Where: AtHost, Control: ControlOpen, Source: "B4"},
		{ID: "host-icmp4", What: "ICMP echo to every address of the host", Where: AtHost, Control: ControlOpen, Source: "B4"},
		{ID: "host-tcp6", What: "TCP and UDP to every IPv6 address of the host, on each interface", Where: AtHost, Control: ControlHost, Source: "B4"},
		{ID: "gateway", What: "TCP and UDP to every other address of the own network, the gateway's first", Where: AtHost, Control: ControlOpen, Source: "B4"},
		{ID: "host-abstract", What: "a unix socket of the host by its abstract name", Where: AtHost, Control: ControlHost, Source: "B5"},
		{ID: "host-socket", What: "the engine's socket, and another one of the host, by their paths", Where: AtFiles, Control: ControlOpen, Source: "B3"},

		// Names.
		{ID: "dns-direct", What: "DNS over UDP and TCP to the host and to the internet", Where: AtHost, Control: ControlOpen, Source: "CVE-2024-29018"},
		{ID: "dns-engine", What: "DNS by way of the engine's resolver and of those in resolv.conf", Where: AtHost, Control: ControlOpen, Source: "CVE-2024-29018"},

		// Past what the proxy allows.
		{ID: "proxy-name", What: "CONNECT to a name that is not declared; also whether it is looked up", Where: AtHost, Control: ControlAllowed, Source: "NVIDIA/OpenShell#1169", Needs: NeedsProxy},
		{ID: "proxy-port", What: "CONNECT to the declared host on another port", Where: AtHost, Control: ControlAllowed, Source: "gh-aw-firewall#207", Needs: NeedsProxy},
		{ID: "proxy-private", What: "CONNECT to the host, to loopback and to private addresses, in many spellings", Where: AtHost, Control: ControlAllowed, Source: "bashkit#1176", Needs: NeedsProxy},
		{ID: "proxy-metadata", What: "CONNECT to the metadata services of clouds", Where: AtHost, Control: ControlAllowed, Source: "bashkit#1176", Needs: NeedsProxy},
		{ID: "proxy-get", What: "plain GET and POST through the proxy, in absolute and origin form", Where: AtHost, Control: ControlAllowed, Source: "claude-code#40213", Needs: NeedsProxy},
		{ID: "proxy-sni", What: "another name in the TLS hello than the one that was asked for", Where: AtHost, Control: ControlAllowed, Source: "gh-aw-firewall#8878", Needs: NeedsProxy},
		{ID: "proxy-no-sni", What: "a TLS hello without a name", Where: AtHost, Control: ControlAllowed, Source: "B15", Needs: NeedsProxy},
		{ID: "proxy-no-tls", What: "something else than TLS through a tunnel", Where: AtHost, Control: ControlAllowed, Source: "pipelock#175", Needs: NeedsProxy},
		{ID: "proxy-uplink", What: "the own proxy at its address on the uplink", Where: Inside, Control: ControlAllowed, Source: "B14", Needs: NeedsProxy},

		// To another invocation.
		{ID: "second-agent", What: "TCP and UDP to another invocation's agent", Where: AtSecond, Control: ControlSecond, Source: "review"},
		{ID: "second-proxy", What: "another invocation's proxy, at both its addresses and through the own proxy", Where: AtSecond, Control: ControlSecond, Source: "B14"},
		{ID: "second-abstract", What: "a unix socket of another invocation by its abstract name", Where: AtSecond, Control: ControlSecond, Source: "B5"},
		{ID: "second-secret", What: "another invocation's credential, in every file and process that can be read", Where: Inside, Control: ControlOpen, Source: "B6"},

		// The kernel.
		{ID: "vsock", What: "an AF_VSOCK socket, which no network namespace confines", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "packet", What: "an AF_PACKET socket", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "raw", What: "raw IPv4 and IPv6 sockets", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "netlink", What: "an address for an interface by way of netlink", Where: Inside, Control: ControlOpen, Source: "B4"},
		{ID: "mount", What: "mounting a file system", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "remount", What: "remounting what is mounted read-only", Where: Inside, Control: ControlOpen, Source: "B9"},
		{ID: "unmount", What: "unmounting what covers something", Where: Inside, Control: ControlOpen, Source: "B8"},
		{ID: "user-namespace", What: "a user namespace", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "unshare", What: "a mount namespace of its own", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "setns", What: "joining another process's namespaces", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "keyctl", What: "a kernel keyring", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "bpf", What: "a BPF map", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "userfaultfd", What: "userfaultfd", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "io-uring", What: "an io_uring", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "perf", What: "a performance counter", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "handle", What: "a file by its handle, past the mounts", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "mknod", What: "a device node", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "devices", What: "devices beyond those that every container has", Where: Inside, Control: ControlOpen, Source: "review"},
		{ID: "capabilities", What: "raising capabilities", Where: Inside, Control: ControlOpen, Source: "B13"},
		{ID: "setuid", What: "becoming another user", Where: Inside, Control: ControlOpen, Source: "B13"},
		{ID: "set-id-file", What: "a file that changes the user of who runs it", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "hostname", What: "another host name", Where: Inside, Control: ControlOpen, Source: "B5"},
		{ID: "sysctl", What: "settings of the kernel below /proc/sys", Where: Inside, Control: ControlOpen, Source: "B16"},
		{ID: "core-pattern", What: "the program that the host runs on a crash (core_pattern)", Where: Inside, Control: ControlOpen, Source: "B16"},
		{ID: "sysrq", What: "the host's SysRq trigger", Where: Inside, Control: ControlOpen, Source: "B16"},

		// Other processes.
		{ID: "trace", What: "tracing the process that guards it", Where: Inside, Control: ControlOpen, Source: "B7"},
		{ID: "memory-of-guard", What: "the guard's memory", Where: Inside, Control: ControlOpen, Source: "B7"},
		{ID: "secrets-of-guard", What: "the guard's environment, descriptors and root", Where: Inside, Control: ControlOpen, Source: "B7"},
		{ID: "host-processes", What: "processes of the host", Where: Inside, Control: ControlHost, Source: "review"},

		// Files.
		{ID: "worktree-write", What: "writing to a read-only worktree", Where: AtFiles, Control: ControlOpen, Source: "docker/desktop-feedback#129", Needs: NeedsReadOnly},
		{ID: "git-write", What: "writing to the worktree's .git and what else is covered, renaming it", Where: AtFiles, Control: ControlOpen, Source: "B8", Needs: NeedsGit},
		{ID: "rootfs-write", What: "writing to the root file system and to sandplan's own program", Where: Inside, Control: ControlOpen, Source: "B9"},
		{ID: "host-file", What: "a file of the host, by its path, by links and by other processes' roots", Where: AtFiles, Control: ControlOpen, Source: "B1"},

		// What bounds it. Last, since it is hard on everything that runs beside it.
		{ID: "tmpfs-size", What: "more in memory file systems than they may hold", Where: Inside, Control: ControlOpen, Source: "Abilityai/trinity#1871"},
		{ID: "pids", What: "more processes than limits.pids", Where: Inside, Control: ControlOpen, Source: "B13"},
		{ID: "memory", What: "more memory than limits.memory", Where: Inside, Control: ControlOpen, Source: "docker/docker-agent#336"},
		{ID: "kill-guard", What: "killing or stopping the process that guards it", Where: AtEngine, Control: ControlOpen, Source: "B7"},
	}
}

// Number is the place of an attempt in Attempts, from 1 on; 0 is the declared way, and no attempt.
func Number(id string) int {
	for i, a := range Attempts() {
		if a.ID == id {
			return i + 1
		}
	}
	return 0
}
