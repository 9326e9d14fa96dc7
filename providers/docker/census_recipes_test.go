package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/planner"
)

// containerRecipes are for rows of containers that the general way does not do for.
func containerRecipes(t *testing.T, w *world, addr planner.Address) map[string]recipe {
	t.Helper()
	all := identityRecipes(t, w)
	for _, some := range []map[string]recipe{configRecipes(), hostRecipes(w, addr), resourceRecipes(), mountRecipes(w), endpointRecipes(w), argumentRecipes()} {
		maps.Copy(all, some)
	}
	return all
}

const derived = "the engine writes it from Config when it makes the container, and takes it from nobody"

func identityRecipes(t *testing.T, w *world) map[string]recipe {
	t.Helper()
	// An image of this test's own: one that others use too might be removed with their last container.
	empty, err := newOwnImage(w.engine.info.Arch, "census", v1.Config{User: "1:1", Entrypoint: []string{unique("/never-started")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := empty.load(t.Context(), w.engine.cli); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeOwnImage(context.Background(), w.engine.cli, empty.ID) })
	const noModule = "the engine writes it after the machine's security module, which here is none"
	return map[string]recipe{
		"Image":           {to: as(`"x"`), also: map[string]string{"Config.Image": `"` + empty.ID + `"`}},
		"Platform":        {to: as(`"windows/amd64"`), refused: "platform", shown: `"windows"`},
		"Path":            {unheeded: derived, shown: `"/other"`},
		"Args":            {unheeded: derived, shown: `["x"]`},
		"Mounts":          {also: map[string]string{"HostConfig.Binds": `["/etc:/host:ro"]`}, fields: "HostConfig.Binds"},
		"AppArmorProfile": {unheeded: noModule, shown: `"unconfined"`},
		"MountLabel":      {unheeded: noModule, shown: `"system_u:object_r:unlabeled_t:s0"`},
		"ProcessLabel":    {unheeded: noModule, shown: `"system_u:system_r:unconfined_t:s0"`},
		"Changes": {also: map[string]string{"HostConfig.ReadonlyRootfs": "false"}, fields: "HostConfig.ReadonlyRootfs",
			after: func(t *testing.T, m *mutant) { m.copyInto(t, "/") }},
		"ExecIDs":      {after: func(t *testing.T, m *mutant) { m.start(t); m.exec(t) }},
		"RestartCount": {also: map[string]string{"HostConfig.RestartPolicy": `{"Name":"on-failure","MaximumRetryCount":1}`}, after: restartOnce},
	}
}

func (m *mutant) copyInto(t *testing.T, dir string) {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	if err := tw.WriteHeader(&tar.Header{Name: "written", Mode: 0o755, Size: 1}); err != nil {
		t.Fatal(err)
	}
	_, _ = tw.Write([]byte("x"))
	_ = tw.Close()
	if err := m.engine.cli.CopyToContainer(t.Context(), m.id, dir, &b, container.CopyToContainerOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (m *mutant) start(t *testing.T) {
	t.Helper()
	if err := m.engine.cli.ContainerStart(t.Context(), m.id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (m *mutant) exec(t *testing.T) {
	t.Helper()
	if _, err := m.engine.cli.ContainerExecCreate(t.Context(), m.id, container.ExecOptions{Cmd: []string{"/agent"}}); err != nil {
		t.Fatal(err)
	}
}

// restartOnce lets the engine restart the container once, and takes the policy back.
func restartOnce(t *testing.T, m *mutant) {
	m.start(t)
	for deadline := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
		got, err := m.engine.cli.ContainerInspect(t.Context(), m.id)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("restarted %d times: %v", got.RestartCount, err)
		}
		if got.RestartCount > 0 { // whether it runs by now, or has ended again, is all the same
			break
		}
		if got.RestartCount == 0 && got.State.Pid > 0 {
			_ = syscall.Kill(got.State.Pid, syscall.SIGKILL) // behind the engine's back: it takes that for a crash
		}
	}
	_, err := m.engine.cli.ContainerUpdate(t.Context(), m.id, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "no"}})
	if err != nil {
		t.Fatal(err)
	}
}

func configRecipes() map[string]recipe {
	return map[string]recipe{
		"Config.User":         {to: as(`"0:0"`)},
		"Config.ExposedPorts": {to: with(`{"99/tcp":{}}`)},
		"Config.Env":          {to: more(`"X=1"`)},
		"Config.Cmd[0]":       {fields: "Config.Cmd*"},
		"Config.Healthcheck":  {to: as(`{"Test":["CMD","/agent"]}`)},
		"Config.Image":        {to: func(old any) any { return strings.TrimPrefix(old.(string), "sha256:")[:20] }},
		"Config.Volumes":      {to: with(`{"/extra":{}}`), fields: "Mounts"},
		// With a volume of the container's own, engine 20.10 makes the directory at once.
		"Config.WorkingDir":      {to: as(`"/other"`), fields: "Changes"},
		"Config.NetworkDisabled": {fields: "NetworkSettings.Networks*"},
		"Config.MacAddress":      {to: as(`"02:00:00:00:00:01"`), elsewhere: ".MacAddress", refused: "mac-address", unheeded: "it is on no network"},
		"Config.StopSignal":      {to: as(`"SIGCHLD"`)},
	}
}

func hostRecipes(w *world, addr planner.Address) map[string]recipe {
	mode := objectName(w.scope(), addr.Invocation().With(planner.PartNetwork))
	if addr.Part() == planner.PartProxy {
		mode = objectName(w.scope(), planner.AddrUplink)
	}
	networkMode := recipe{to: as(`"` + mode + `"`)}
	if addr.Part() != planner.PartProxy && addr.Part() != planner.PartAgent {
		networkMode = recipe{to: as(`"bridge"`), fields: "NetworkSettings.Networks*"}
	}
	return map[string]recipe{
		"HostConfig.NetworkMode":                     networkMode,
		"HostConfig.Binds":                           {to: as(`["/etc:/host:ro"]`), fields: "Mounts"},
		"HostConfig.LogConfig.Type":                  {to: as(`"local"`), also: map[string]string{"HostConfig.LogConfig.Config": "{}"}, fields: "HostConfig.LogConfig.Config"},
		"HostConfig.LogConfig.Config":                {to: as(`{"max-size":"99m"}`)},
		"HostConfig.PortBindings":                    {to: as(`{"8080/tcp":[{"HostIp":"127.0.0.1","HostPort":"39999"}]}`)},
		"HostConfig.RestartPolicy.Name":              {to: as(`"always"`)},
		"HostConfig.RestartPolicy.MaximumRetryCount": {to: as("3"), also: map[string]string{"HostConfig.RestartPolicy.Name": `"on-failure"`}, fields: "HostConfig.RestartPolicy.Name"},
		"HostConfig.VolumeDriver":                    {to: as(`"local"`)},
		"HostConfig.VolumesFrom":                     {to: as(`["` + w.seedName() + `"]`), fields: "Mounts"},
		"HostConfig.Links":                           {to: as(`["` + w.seedName() + `:x"]`), unheeded: "links are for the default bridge, elsewhere the engine forgets them"},
		"HostConfig.ConsoleSize":                     {to: as("[30,90]")},
		"HostConfig.CapAdd":                          {to: as(`["NET_RAW"]`)},
		"HostConfig.CapDrop":                         {to: as(`["NET_RAW"]`)},
		"HostConfig.CgroupnsMode":                    {to: as(`"host"`)},
		"HostConfig.Cgroup":                          {to: as(`"container:x"`)},
		"HostConfig.Dns":                             {to: as(`["192.0.2.1"]`)},
		"HostConfig.ExtraHosts":                      {to: as(`["a:192.0.2.1"]`)},
		"HostConfig.GroupAdd":                        {to: as(`["0"]`)},
		"HostConfig.IpcMode":                         {to: as(`"shareable"`)},
		// With the host's processes the engine turns SELinux off as well.
		"HostConfig.PidMode":     {to: as(`"host"`), fields: "HostConfig.SecurityOpt"},
		"HostConfig.Privileged":  {fields: "HostConfig.SecurityOpt"},
		"HostConfig.SecurityOpt": {to: as(`["no-new-privileges","seccomp=unconfined"]`)},
		"HostConfig.StorageOpt":  {to: as(`{"size":"1G"}`), refused: "storage-opt"},
		"HostConfig.Tmpfs":       {to: with(`{"/tmp":"rw,exec"}`)},
		"HostConfig.UTSMode":     {to: as(`"host"`), also: map[string]string{"Config.Hostname": `""`}, fields: "Config.Hostname"},
		"HostConfig.UsernsMode":  {to: as(`"host"`)},
		"HostConfig.ShmSize":     {},
		"HostConfig.Sysctls":     {to: with(`{"net.ipv4.tcp_syncookies":"0"}`)},
		"HostConfig.Runtime":     {to: as(`"io.containerd.runc.v2"`)},
		"HostConfig.Isolation":   {to: as(`"process"`), refused: "isolation"},
		"HostConfig.Init":        {to: as("true")},
	}
}

// seedName is a container that is there and was never started.
func (w *world) seedName() string {
	own, err := w.engine.own()
	if err != nil {
		w.t.Fatal(err)
	}
	return objectName(w.scope(), planner.AddrShim, own.ID, "seed")
}

func resourceRecipes() map[string]recipe {
	const noWindows = "it means something on Windows only"
	device := `[{"Path":"/dev/null","Rate":1024}]`
	const v1 = "cgroups of version 1 only"
	return map[string]recipe{
		"HostConfig.Memory":               {to: as("67108864")},
		"HostConfig.MemorySwap":           {to: as("4294967296")},
		"HostConfig.NanoCpus":             {to: as("500000000")},
		"HostConfig.CpusetCpus":           {to: as(`"0"`)},
		"HostConfig.CpusetMems":           {to: as(`"0"`)},
		"HostConfig.MemorySwappiness":     {to: as("1"), unheeded: v1, shown: "1"},
		"HostConfig.OomKillDisable":       {to: as("true"), unheeded: v1, shown: "true"},
		"HostConfig.Ulimits":              {to: as(`[{"Name":"core","Soft":1,"Hard":1}]`)},
		"HostConfig.BlkioWeightDevice":    {to: as(`[{"Path":"/dev/null","Weight":500}]`), unheeded: "the kernel has no block I/O weights"},
		"HostConfig.BlkioDeviceReadBps":   {to: as(device), unheeded: "the kernel has no such limit"},
		"HostConfig.BlkioDeviceWriteBps":  {to: as(device), unheeded: "the kernel has no such limit"},
		"HostConfig.BlkioDeviceReadIOps":  {to: as(device), unheeded: "the kernel has no such limit"},
		"HostConfig.BlkioDeviceWriteIOps": {to: as(device), unheeded: "the kernel has no such limit"},
		"HostConfig.Devices":              {to: as(`[{"PathOnHost":"/dev/null","PathInContainer":"/dev/x","CgroupPermissions":"rwm"}]`)},
		"HostConfig.DeviceCgroupRules":    {to: as(`["c 1:3 rwm"]`)},
		"HostConfig.DeviceRequests":       {to: as(`[{"Driver":"nvidia","Count":-1,"Capabilities":[["gpu"]]}]`)},
		"HostConfig.CpuShares":            {to: as("99")},
		"HostConfig.BlkioWeight":          {to: as("500"), unheeded: "the kernel has no block I/O weights", shown: "500"},
		// The engine wants one or the other way to bound processors.
		"HostConfig.CpuPeriod":          {to: as("50000"), also: map[string]string{"HostConfig.NanoCpus": "0"}, fields: "HostConfig.NanoCpus"},
		"HostConfig.CpuQuota":           {to: as("50000"), also: map[string]string{"HostConfig.NanoCpus": "0"}, fields: "HostConfig.NanoCpus"},
		"HostConfig.CpuRealtimePeriod":  {to: as("1000"), unheeded: v1, shown: "1000"},
		"HostConfig.CpuRealtimeRuntime": {to: as("1000"), unheeded: v1, shown: "1000"},
		"HostConfig.KernelMemory":       {to: as("67108864"), unheeded: v1, shown: "67108864"},
		"HostConfig.KernelMemoryTCP":    {to: as("67108864"), unheeded: v1, shown: "67108864"},
		"HostConfig.MemoryReservation":  {to: as("67108864")},
		"HostConfig.CpuCount":           {to: as("1"), unheeded: noWindows},
		"HostConfig.CpuPercent":         {to: as("1"), unheeded: noWindows},
		"HostConfig.IOMaximumIOps":      {to: as("1"), refused: "linux", unheeded: noWindows},
		"HostConfig.IOMaximumBandwidth": {to: as("1"), refused: "linux", unheeded: noWindows},
		"HostConfig.Annotations":        {to: as(`{"a":"b"}`), unheeded: "engines before 24 have none"},
	}
}

func mountRecipes(w *world) map[string]recipe {
	other := objectName(w.scope(), planner.AddrShim, "another")
	w.t.Cleanup(func() { _ = w.engine.cli.VolumeRemove(context.Background(), other, false) }) // the engine makes it
	const older = "engines before 28 do not have it"
	r := map[string]recipe{
		// A directory of the host becomes a volume, and the other way round.
		"*.Type": {to: as(`"volume"`), fields: "HostConfig.Mounts* Mounts",
			also: map[string]string{"./Source": fmt.Sprintf("%q", other), "./BindOptions": "null"}},
		"*.Source":      {to: as(`"/etc"`)},
		"*.Consistency": {to: as(`"cached"`)},
		"*.BindOptions": {to: as(`{"Propagation":"rprivate"}`), refused: "BindOptions"},
		// The options of other types of mounts.
		"*.VolumeOptions":  {to: as(`{"Labels":{"a":"b"}}`), refused: "VolumeOptions"},
		"*.TmpfsOptions":   {to: as(`{"SizeBytes":1}`), refused: "TmpfsOptions"},
		"*.ImageOptions":   {to: as(`{"Subpath":"x"}`), refused: "ImageOptions", unheeded: older},
		"*.ClusterOptions": {to: as(`{"x":"y"}`), unheeded: "it has no members, so that nothing can be said with it"},
	}
	r[mountPath(toolDir)+".Source"] = recipe{to: as(fmt.Sprintf("%q", other))}
	r[mountPath(toolDir)+".Type"] = recipe{to: as(`"bind"`), fields: "HostConfig.Mounts* Mounts",
		also: map[string]string{"./Source": `"/etc"`, "./VolumeOptions": "null"}}
	return r
}

func endpointRecipes(w *world) map[string]recipe {
	return map[string]recipe{
		"*.IPAMConfig.IPv4Address":  {to: nextAddress, refused: "user specified IP address"},
		"*.IPAMConfig.IPv6Address":  {to: as(`"fd00::3"`), refused: "user specified IP address"},
		"*.Aliases":                 {refused: "alias is supported only", fields: "NetworkSettings.Networks.uplink.DNSNames NetworkSettings.Networks.network.DNSNames NetworkSettings.Networks.none.DNSNames"},
		"*.DNSNames":                {to: as(`["x"]`), unheeded: "the engine writes it after Aliases and Hostname"},
		"*.GwPriority":              {to: as("7"), unheeded: "engines before 28 have none"},
		"*.IPAMConfig.LinkLocalIPs": {to: as(`["169.254.9.9"]`)},
		"*.Links":                   {to: as(`["` + w.seedName() + `:x"]`)},
		"*.DriverOpts":              {to: as(`{"a":"b"}`)},
		"*.MacAddress":              {to: as(`"02:00:00:00:00:01"`)},
	}
}

// nextAddress is one of the same network: others are refused by newer engines.
func nextAddress(old any) any {
	a, err := netip.ParseAddr(fmt.Sprint(old))
	if err != nil {
		return "10.231.200.3"
	}
	return a.Next().Next().String()
}

func argumentRecipes() map[string]recipe {
	at := "Config.Cmd[1]."
	return map[string]recipe{
		at + "env":            {to: more(`"Z=1"`)},
		at + "files":          {to: more(`{"path":"/tmp/f","mode":292,"content":"eA=="}`)},
		at + "credentials":    {to: more(`{"name":"K","env":"K"}`)},
		at + "mounts":         {to: more(`{"path":"/x","type":"tmpfs"}`)},
		at + "network.direct": {to: more(`"192.0.2.1:1"`)},
		at + "network.address": {to: func(old any) any {
			return strings.Replace(old.(string), "/29", "/28", 1)
		}},
		at + "network.proxy": {to: func(old any) any { return strings.Replace(old.(string), ":3128", ":3129", 1) }},
		at + "hosts":         {to: more(`{"name":"evil.example","port":443,"tls":true,"decl":""}`), fields: "Config.Cmd[1].hosts_decl"},
		at + "hosts_decl":    {to: as(`["x","y"]`)},
		at + "dns":           {to: more(`"192.0.2.1"`)},
		at + "listen":        {to: func(old any) any { return strings.Replace(old.(string), ":3128", ":3129", 1) }},
		at + "agent":         {to: as(`"192.0.2.1"`)},
		at + "addresses":     {to: more(`"192.0.2.1/24"`)},
		at + "gateway":       {to: as(`"192.0.2.1"`)},
		at + "nameservers":   {to: more(`"192.0.2.1"`)},
	}
}
