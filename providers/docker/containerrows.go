package docker

import (
	"fmt"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// The one table of what is compared of a container, whichever kind it is. Everything under Config,
// HostConfig, NetworkSettings.Networks and Mounts has a row; nothing there is ignored but what only
// tells of a process that runs.

// containerRows are the rows of all kinds; a kind adds those of its networks, its mounts and its
// command line.
func containerRows() []row {
	rows := append(identityRows(), configRows()...)
	rows = append(rows, hostRows()...)
	return append(rows, resourceRows()...)
}

// identityRows are what inspect shows beside Config, HostConfig and NetworkSettings.
func identityRows() []row {
	const byEngine = "written by the engine; "
	rows := []row{
		{path: "Name", norm: text, label: "name", show: planner.Headline},
		{path: "Image", norm: text, attr: "image", show: planner.Headline},
		{path: "Platform", norm: text},
		{path: "Path", norm: exact},
		{path: "Args", norm: exact},
		{path: "Mounts", norm: exact},
		{path: "Changes", norm: list},
		{path: "RestartCount", norm: integer},
		{path: "ExecIDs", norm: list},
		{path: "AppArmorProfile", class: planner.ClassAssigned, shape: shape{"the engine's default", oneOf(nil, "", "docker-default")}},
		{path: "MountLabel", class: planner.ClassAssigned, shape: shape{"none, or the engine's SELinux label", selinuxLabel}},
		{path: "ProcessLabel", class: planner.ClassAssigned, shape: shape{"none, or the engine's SELinux label", selinuxLabel}},
	}
	for _, r := range []struct{ path, reason string }{
		{"Id", byEngine + "it is how the container is found, not what it is"},
		{"Created", byEngine + "says when, not what"},
		{"State", byEngine + "what the process does is told apart as created, running or exited, see planner.Status"},
		{"ResolvConfPath", byEngine + "where on the host it keeps a file that it makes from HostConfig.Dns"},
		{"HostnamePath", byEngine + "where on the host it keeps a file that it makes from Config.Hostname"},
		{"HostsPath", byEngine + "where on the host it keeps a file that it makes from HostConfig.ExtraHosts"},
		{"LogPath", byEngine + "where on the host it keeps the log that HostConfig.LogConfig bounds"},
		{"Driver", byEngine + "its storage driver is a setting of the whole engine"},
		{"GraphDriver", byEngine + "where on the host the layers lie; their content is Image and Changes"},
		{"Storage", byEngine + "where on the host the layers lie; their content is Image and Changes"},
		{"ImageManifestDescriptor", byEngine + "another name of what Image names"},
		{"SizeRw", byEngine + "asked for by nobody"},
		{"SizeRootFs", byEngine + "asked for by nobody"},
	} {
		rows = append(rows, row{path: r.path, class: planner.ClassIgnored, reason: r.reason})
	}
	for _, name := range []string{"Bridge", "SandboxID", "SandboxKey", "Ports", "HairpinMode", "LinkLocalIPv6Address",
		"LinkLocalIPv6PrefixLen", "SecondaryIPAddresses", "SecondaryIPv6Addresses", "EndpointID", "Gateway", "GlobalIPv6Address",
		"GlobalIPv6PrefixLen", "IPAddress", "IPPrefixLen", "IPv6Gateway", "MacAddress"} {
		rows = append(rows, row{path: "NetworkSettings." + name, class: planner.ClassIgnored,
			reason: byEngine + "tells of the default bridge, which no container of ours is on, or of what runs; ports are compared as asked for"})
	}
	return rows
}

// configRows are the 25 fields of Config, without the command line's argument.
func configRows() []row {
	return []row{
		{path: "Config.Hostname", norm: text},
		{path: "Config.Domainname", norm: text},
		{path: "Config.User", norm: text, attr: "user", show: planner.Headline},
		{path: "Config.AttachStdin", norm: boolean},
		{path: "Config.AttachStdout", norm: boolean},
		{path: "Config.AttachStderr", norm: boolean},
		{path: "Config.ExposedPorts", norm: dict},
		{path: "Config.Tty", norm: boolean},
		{path: "Config.OpenStdin", norm: boolean},
		{path: "Config.StdinOnce", norm: boolean},
		{path: "Config.Env", norm: dict},
		{path: "Config.Cmd[0]", norm: text},
		{path: "Config.Healthcheck", norm: healthcheck},
		{path: "Config.ArgsEscaped", norm: boolean},
		{path: "Config.Image", norm: exact},
		{path: "Config.Volumes", norm: dict},
		{path: "Config.WorkingDir", norm: text},
		{path: "Config.Entrypoint", norm: list},
		{path: "Config.NetworkDisabled", norm: boolean},
		{path: "Config.MacAddress", norm: text},
		{path: "Config.OnBuild", norm: list},
		{path: "Config.Labels", norm: foreignLabels},
		{path: "Config.StopSignal", norm: text},
		{path: "Config.StopTimeout", norm: exact},
		{path: "Config.Shell", norm: list},
	}
}

// hostRows are the fields of HostConfig without its resources and mounts.
func hostRows() []row {
	return []row{
		{path: "HostConfig.Binds", norm: list},
		{path: "HostConfig.ContainerIDFile", norm: text},
		{path: "HostConfig.LogConfig.Type", norm: text},
		{path: "HostConfig.LogConfig.Config", norm: dict},
		{path: "HostConfig.NetworkMode", norm: text, ref: true},
		{path: "HostConfig.PortBindings", norm: dict},
		{path: "HostConfig.RestartPolicy.Name", norm: restartPolicy},
		{path: "HostConfig.RestartPolicy.MaximumRetryCount", norm: integer},
		{path: "HostConfig.AutoRemove", norm: boolean},
		{path: "HostConfig.VolumeDriver", norm: text},
		{path: "HostConfig.VolumesFrom", norm: list},
		{path: "HostConfig.ConsoleSize", norm: consoleSize},
		{path: "HostConfig.Annotations", norm: dict},
		{path: "HostConfig.CapAdd", norm: capabilities},
		{path: "HostConfig.CapDrop", norm: capabilities},
		{path: "HostConfig.CgroupnsMode", norm: text},
		{path: "HostConfig.Dns", norm: list},
		{path: "HostConfig.DnsOptions", norm: list},
		{path: "HostConfig.DnsSearch", norm: list},
		{path: "HostConfig.ExtraHosts", norm: set},
		{path: "HostConfig.GroupAdd", norm: set},
		{path: "HostConfig.IpcMode", norm: text},
		{path: "HostConfig.Cgroup", norm: text},
		{path: "HostConfig.Links", norm: set},
		{path: "HostConfig.OomScoreAdj", norm: integer},
		{path: "HostConfig.PidMode", norm: text},
		{path: "HostConfig.Privileged", norm: boolean},
		{path: "HostConfig.PublishAllPorts", norm: boolean},
		{path: "HostConfig.ReadonlyRootfs", norm: boolean},
		{path: "HostConfig.SecurityOpt", norm: securityOpts},
		{path: "HostConfig.StorageOpt", norm: dict},
		{path: "HostConfig.Tmpfs", norm: dict},
		{path: "HostConfig.UTSMode", norm: text},
		{path: "HostConfig.UsernsMode", norm: text},
		{path: "HostConfig.ShmSize", norm: integer, unit: planner.UnitBytes},
		{path: "HostConfig.Sysctls", norm: dict},
		{path: "HostConfig.Runtime", norm: text},
		{path: "HostConfig.Isolation", norm: text},
		{path: "HostConfig.MaskedPaths", norm: set},
		{path: "HostConfig.ReadonlyPaths", norm: set},
		// Nothing there means what the engine is set to, so it is not the same as false.
		{path: "HostConfig.Init", norm: exact},
		{path: "HostConfig.Mounts." + otherMounts, members: newTable(nil, mountRows(""))},
	}
}

// resourceRows are the fields of HostConfig.Resources.
func resourceRows() []row {
	rows := []row{
		{path: "HostConfig.Memory", norm: integer, attr: "limits.memory", unit: planner.UnitBytes, show: planner.Headline},
		{path: "HostConfig.MemorySwap", norm: integer, attr: "limits.memory", unit: planner.UnitBytes},
		{path: "HostConfig.NanoCpus", norm: integer, attr: "limits.cpus", unit: planner.UnitNanoCPUs, show: planner.Headline},
		{path: "HostConfig.PidsLimit", norm: integer, attr: "limits.pids", show: planner.Headline},
		{path: "HostConfig.CgroupParent", norm: text},
		{path: "HostConfig.CpusetCpus", norm: text},
		{path: "HostConfig.CpusetMems", norm: text},
		{path: "HostConfig.MemorySwappiness", norm: exact},
		// Engines on cgroup v2 drop it: what cannot be disabled is not disabled.
		{path: "HostConfig.OomKillDisable", norm: boolean},
		{path: "HostConfig.Ulimits", norm: ulimits},
	}
	for _, name := range []string{"BlkioWeightDevice", "BlkioDeviceReadBps", "BlkioDeviceWriteBps", "BlkioDeviceReadIOps",
		"BlkioDeviceWriteIOps", "Devices", "DeviceCgroupRules", "DeviceRequests"} {
		rows = append(rows, row{path: "HostConfig." + name, norm: list})
	}
	for _, name := range []string{"CpuShares", "BlkioWeight", "CpuPeriod", "CpuQuota", "CpuRealtimePeriod", "CpuRealtimeRuntime",
		"KernelMemory", "KernelMemoryTCP", "MemoryReservation", "CpuCount", "CpuPercent", "IOMaximumIOps", "IOMaximumBandwidth"} {
		rows = append(rows, row{path: "HostConfig." + name, norm: integer})
	}
	return rows
}

// pathWorktreeMode follows from the phase, see builder.add.
const pathWorktreeMode = `HostConfig.Mounts["` + policy.Worktree + `"].ReadOnly`

func mountPath(target string) string { return fmt.Sprintf("HostConfig.Mounts[%q]", target) }

// sandboxMountRows are the mounts that every agent and runner has, with what the user declares of them.
func sandboxMountRows() []row {
	rows := mountRows(mountPath(toolDir))
	rows = append(rows, mountRows(mountPath(policy.Worktree))...)
	rows = append(rows, mountRows(mountPath(policy.Worktree+"/.git"))...)
	for i := range rows {
		switch rows[i].path {
		case mountPath(policy.Worktree) + ".Source":
			rows[i].attr, rows[i].show = "worktree", planner.Headline
		case pathWorktreeMode:
			rows[i].label, rows[i].show, rows[i].norm = "worktree mode", planner.Headline, mountMode
		case mountPath(policy.Worktree+"/.git") + ".Source":
			rows[i].attr = "git"
		}
	}
	return rows
}

// mountRows are the rows of one mount, below a path.
func mountRows(at string) []row {
	rows := []row{
		{path: "Type", norm: text},
		{path: "Source", norm: text},
		{path: "ReadOnly", norm: boolean},
		{path: "Consistency", norm: text},
	}
	for _, name := range []string{"BindOptions", "VolumeOptions", "ImageOptions", "TmpfsOptions", "ClusterOptions"} {
		rows = append(rows, row{path: name, norm: options})
	}
	for i := range rows {
		rows[i].path = joinPath(at, rows[i].path)
	}
	return rows
}

// endpointRows are the rows of one endpoint of a container.
func endpointRows(role string) []row {
	const runs = "written by the engine while the container runs, after the network's own configuration, which is compared there"
	rows := []row{
		{path: "IPAMConfig.IPv4Address", norm: text},
		{path: "IPAMConfig.IPv6Address", norm: text},
		{path: "IPAMConfig.LinkLocalIPs", norm: list},
		{path: "Links", norm: list},
		{path: "Aliases", norm: list},
		{path: "DNSNames", norm: list},
		{path: "DriverOpts", norm: dict},
		{path: "GwPriority", norm: integer},
		{path: "IPAddress", norm: text},
		{path: "IPv6Gateway", norm: text},
		{path: "GlobalIPv6Address", norm: text},
		{path: "GlobalIPv6PrefixLen", norm: integer},
		{path: "MacAddress", norm: text},
		{path: "Gateway", norm: text},
		{path: "EndpointID", class: planner.ClassIgnored, reason: runs},
		{path: "IPPrefixLen", class: planner.ClassIgnored, reason: runs},
		{path: "NetworkID", class: planner.ClassIgnored,
			reason: "written by the engine while the container runs; it decides under which role the endpoint stands here, and one on another network has no role"},
	}
	for i := range rows {
		rows[i].path = "NetworkSettings.Networks." + role + "." + rows[i].path
	}
	return rows
}
