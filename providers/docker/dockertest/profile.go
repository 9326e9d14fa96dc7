package dockertest

import (
	"encoding/json"
	"slices"
)

// profile is in what the releases of the engine differ, as recorded.
type profile struct {
	version, api string
	masked       []string // paths that are hidden where nothing is asked for
	kernelMemory bool     // shows two limits that later releases do not have
	ownAliases   bool     // writes its own names into Aliases, instead of DNSNames
	gateway      bool     // shows the gateway of an internal network
	gwPriority   bool
	enableIPv4   bool
	// byName looks an armed container's networks up by the names that it shows, whatever was asked for.
	byName bool
	// keepsSandbox shows the network sandbox of a container that has ended.
	keepsSandbox bool
}

func profiles() map[string]profile {
	masked := []string{"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"}
	later := append(slices.Clone(masked), "/sys/devices/virtual/powercap")
	return map[string]profile{
		"20.10": {version: "20.10.24+dfsg1", api: "1.41", masked: masked, kernelMemory: true, ownAliases: true, gateway: true, byName: true, keepsSandbox: true},
		"26.1":  {version: "26.1.5+dfsg1", api: "1.45", masked: later, keepsSandbox: true},
		"28.5":  {version: "28.5.2+dfsg4", api: "1.51", masked: slices.Insert(slices.Clone(later), 2, "/proc/interrupts"), gwPriority: true, enableIPv4: true},
	}
}

// hostConfig is the part of a container that says what it may do on its host: what was asked for, over
// what the engine fills in.
func (p profile) hostConfig(asked tree) tree {
	out := clone(tree{
		"AutoRemove": false, "Binds": nil, "BlkioDeviceReadBps": nil, "BlkioDeviceReadIOps": nil, "BlkioDeviceWriteBps": nil,
		"BlkioDeviceWriteIOps": nil, "BlkioWeight": 0, "BlkioWeightDevice": nil, "CapAdd": nil, "CapDrop": nil, "Cgroup": "", "CgroupParent": "",
		"CgroupnsMode": "host", "ConsoleSize": []any{0, 0}, "ContainerIDFile": "", "CpuCount": 0, "CpuPercent": 0, "CpuPeriod": 0, "CpuQuota": 0,
		"CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 0, "CpuShares": 0, "CpusetCpus": "", "CpusetMems": "", "DeviceCgroupRules": nil,
		"DeviceRequests": nil, "Devices": nil, "Dns": nil, "DnsOptions": nil, "DnsSearch": nil, "ExtraHosts": nil, "GroupAdd": nil,
		"IOMaximumBandwidth": 0, "IOMaximumIOps": 0, "IpcMode": "private", "Isolation": "", "Links": nil,
		"LogConfig": tree{"Type": "json-file", "Config": tree{}}, "MaskedPaths": p.masked, "Memory": 0, "MemoryReservation": 0, "MemorySwap": 0,
		"MemorySwappiness": nil, "NanoCpus": 0, "NetworkMode": "default", "OomKillDisable": false, "OomScoreAdj": 0, "PidMode": "", "PidsLimit": nil,
		"PortBindings": nil, "Privileged": false, "PublishAllPorts": false,
		"ReadonlyPaths":  []any{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		"ReadonlyRootfs": false, "RestartPolicy": tree{"MaximumRetryCount": 0, "Name": ""}, "Runtime": "runc", "SecurityOpt": nil,
		"ShmSize": 64 << 20, "UTSMode": "", "Ulimits": nil, "UsernsMode": "", "VolumeDriver": "", "VolumesFrom": nil,
	})
	if p.kernelMemory {
		out["KernelMemory"], out["KernelMemoryTCP"] = json.Number("0"), json.Number("0")
	}
	for name, value := range asked {
		_, known := out[name]
		if optional := slices.Contains([]string{"Mounts", "Sysctls", "Tmpfs", "Init", "StorageOpt"}, name); !known && !optional {
			continue // engines drop what they do not know
		}
		if name == "LogConfig" {
			if log, _ := value.(tree); log["Type"] == "" {
				continue
			}
		}
		if filled := out[name] != nil; filled && unset(value) {
			continue
		}
		out[name] = value
	}
	return out
}

// unset reports whether a value stands for "you choose".
func unset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	}
	return false
}

// config is the part of a container that says what runs in it: what was asked for, and what it inherits.
func config(asked, image tree, id string) tree {
	out := clone(tree{"AttachStderr": false, "AttachStdin": false, "AttachStdout": false, "Cmd": nil, "Domainname": "", "Entrypoint": nil, "Env": nil,
		"Hostname": "", "Image": "", "Labels": tree{}, "OnBuild": nil, "OpenStdin": false, "StdinOnce": false, "Tty": false, "User": "", "Volumes": nil, "WorkingDir": ""})
	for name, value := range asked {
		_, known := out[name]
		optional := slices.Contains([]string{"ExposedPorts", "Healthcheck", "ArgsEscaped", "NetworkDisabled", "MacAddress", "StopSignal", "StopTimeout", "Shell"}, name)
		if known && value != nil || optional && !empty(value) {
			out[name] = value
		}
	}
	if out["Hostname"] == "" {
		out["Hostname"] = short(id)
	}
	for _, name := range []string{"User", "WorkingDir", "StopSignal"} {
		if text, _ := out[name].(string); text == "" && image[name] != nil && image[name] != "" {
			out[name] = image[name]
		}
	}
	for _, name := range []string{"ExposedPorts", "Labels", "Volumes"} {
		out[name] = union(out[name], image[name])
		if name == "ExposedPorts" && empty(out[name]) {
			delete(out, name)
		}
	}
	out["Env"] = mergeEnv(out["Env"], image["Env"])
	for _, name := range []string{"Env", "Volumes"} {
		if empty(out[name]) {
			out[name] = nil
		}
	}
	if empty(out["Entrypoint"]) {
		if empty(out["Cmd"]) {
			out["Cmd"] = image["Cmd"]
		}
		if out["Entrypoint"] == nil {
			out["Entrypoint"] = image["Entrypoint"]
		}
	}
	mergeHealthcheck(out, image)
	return out
}

func empty(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case tree:
		return len(v) == 0
	case bool:
		return !v
	}
	return unset(v)
}

// union is an object with what only the image has added.
func union(asked, image any) any {
	own, _ := asked.(tree)
	inherited, _ := image.(tree)
	if len(inherited) == 0 {
		return asked
	}
	out := clone(inherited)
	for k, v := range own {
		out[k] = v
	}
	return out
}

// mergeEnv adds the image's variables whose names are not there, with a value or without.
func mergeEnv(asked, image any) any {
	own, _ := asked.([]any)
	inherited, _ := image.([]any)
	out := asked
	names := map[string]bool{}
	for _, kv := range own {
		names[envName(kv)] = true
	}
	for _, kv := range inherited {
		if !names[envName(kv)] {
			own = append(own, kv)
			out = own
		}
	}
	return out
}

func mergeHealthcheck(out, image tree) {
	inherited, _ := image["Healthcheck"].(tree)
	if len(inherited) == 0 {
		return
	}
	own, _ := out["Healthcheck"].(tree)
	merged := clone(inherited)
	for k, v := range own {
		if !empty(v) {
			merged[k] = v
		}
	}
	out["Healthcheck"] = merged
}
