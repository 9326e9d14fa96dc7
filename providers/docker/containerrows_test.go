package docker

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

func TestEveryFieldOfAContainerHasARow(t *testing.T) {
	const elsewhere = "its parts stand under other names, see below"
	skip := map[string]string{"Config.Cmd": elsewhere, "HostConfig.Mounts": elsewhere, "HostConfig.Mounts[0]": elsewhere}
	for name := range uncoveredMounts() {
		skip["HostConfig.Mounts[0]."+name] = elsewhere
	}
	for _, k := range []kind{proxyKind(), agentKind(), runnerKind()} {
		requireCovered(t, k.table, "", container.InspectResponse{}, skip)
	}
	for role, k := range map[string]kind{roleUplink: proxyKind(), roleNetwork: agentKind(), roleNone: runnerKind()} {
		requireCovered(t, k.table, "NetworkSettings.Networks."+role, network.EndpointSettings{}, nil)
	}
	target := map[string]string{"Target": "it is the key under which the mount stands"}
	requireCovered(t, newTable(nil, mountRows("")), "", mount.Mount{}, target)

	requireCovered(t, agentKind().table, "Config.Cmd[1]", shim.Config{}, nil)
	requireCovered(t, runnerKind().table, "Config.Cmd[1]", shim.Config{}, map[string]string{"Config.Cmd[1].network": "it has none"})
	requireCovered(t, proxyKind().table, "Config.Cmd[1]", egress.Config{}, nil)
	requireCovered(t, shimKind().table, "", volume.Volume{}, nil)
	requireCovered(t, toolKind().table, "", image.InspectResponse{}, nil)
	requireCovered(t, pinnedKind().table, "", image.InspectResponse{}, nil)
}

// uncoveredMounts are the fields of a mount in the engine's list, which rows see by target.
func uncoveredMounts() map[string]bool {
	return map[string]bool{"Type": true, "Source": true, "Target": true, "ReadOnly": true, "Consistency": true, "BindOptions": true,
		"VolumeOptions": true, "ImageOptions": true, "TmpfsOptions": true, "ClusterOptions": true}
}

func TestContainerNormalisers(t *testing.T) {
	for _, tt := range []struct {
		reason string
		norm   norm
		a, b   string // JSON
		same   bool
	}{
		{"case, prefix and order of capabilities", capabilities, `["net_raw","CAP_SYS_ADMIN"]`, `["CAP_SYS_ADMIN","CAP_NET_RAW"]`, true},
		{"all is no capability of that name", capabilities, `["ALL"]`, `["CAP_ALL"]`, false},
		{"null and empty", capabilities, `null`, `[]`, true},
		{"three spellings of one switch", securityOpts, `["no-new-privileges:true"]`, `["no-new-privileges"]`, true},
		{"the switch turned off", securityOpts, `["no-new-privileges:false"]`, `["no-new-privileges"]`, false},
		{"profiles by their bytes", securityOpts, `["seccomp={\"a\":1}"]`, `["seccomp={\"a\": 1}"]`, false},
		{"no profile at all", securityOpts, `["seccomp=unconfined"]`, `["seccomp={}"]`, false},
		{"an image's intervals merged into a check that is off", healthcheck, `{"Test":["NONE"],"Interval":1}`, `{"Test":["NONE"]}`, true},
		{"nothing asked for is the image's check", healthcheck, `null`, `{"Test":["NONE"]}`, false},
		{"20.10 echoes no policy as empty", restartPolicy, `""`, `"no"`, true},
		{"limits in any order", ulimits, `[{"Name":"a"},{"Name":"b"}]`, `[{"Name":"b"},{"Name":"a"}]`, true},
		{"options that are not set", options, `{"NonRecursive":true,"CreateMountpoint":false}`, `{"NonRecursive":true}`, true},
		{"options that are", options, `{"NonRecursive":true}`, `{}`, false},
		{"no terminal size", consoleSize, `null`, `[0,0]`, true},
	} {
		a, b := tt.norm(parseJSON(t, tt.a)), tt.norm(parseJSON(t, tt.b))
		if same := show(planner.JSON(a)) == show(planner.JSON(b)); same != tt.same {
			t.Errorf("%s: %s and %s become %s and %s", tt.reason, tt.a, tt.b, show(planner.JSON(a)), show(planner.JSON(b)))
		}
		if again := tt.norm(a); show(planner.JSON(again)) != show(planner.JSON(a)) {
			t.Errorf("%s: %s changes when it is normalised twice: %s", tt.reason, show(planner.JSON(a)), show(planner.JSON(again)))
		}
	}
}

func parseJSON(t *testing.T, text string) any {
	t.Helper()
	v, err := decodeTree([]byte(`{"v":` + text + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return v["v"]
}

// Whatever an engine may show, a normaliser must neither fail nor make it equal to what is wanted.
func TestContainerNormalisersKeepWhatTheyDoNotUnderstand(t *testing.T) {
	for name, n := range map[string]norm{"capabilities": capabilities, "securityOpts": securityOpts, "healthcheck": healthcheck,
		"restartPolicy": restartPolicy, "ulimits": ulimits, "options": options, "mountMode": mountMode, "consoleSize": consoleSize, "hostText": hostText} {
		for _, odd := range []string{`7`, `"text"`, `true`, `[1,null]`, `{"x":[1]}`, `[{"a":{}}]`} {
			v := parseJSON(t, odd)
			if got := n(v); name != "mountMode" && name != "options" && show(planner.JSON(got)) != show(planner.JSON(v)) {
				t.Errorf("%s(%s) = %s", name, odd, show(planner.JSON(got)))
			}
		}
	}
}
