package races

import "strings"

// phase is how far a run has come.
type phase int

const (
	gate     phase = iota // the scope is looked at
	armed1                // the engine's events are listened to, the proxy is started
	proving               // the agent's first process runs, without a prompt
	handing               // the last look, and the prompt
	working               // the agent has its prompt
	settling              // it has ended
)

func (p phase) String() string {
	return [...]string{"gate", "armed", "proving", "handing", "working", "settling"}[p]
}

// mutation is one thing that somebody changes behind sandplan's back.
type mutation struct {
	name string
	// from and to are the phases in which it can be seen at all; reason says why, where that is not always.
	from, to phase
	reason   string
	// do changes the world and returns the ID of what was changed: as long as that exists, a plan must tell.
	// It is "" for what leaves no trace.
	do func(w *world) string
}

func mutations() []mutation {
	all := append(agentMutations(), proxyMutations()...)
	all = append(all, networkMutations()...)
	all = append(all, otherMutations()...)
	for i := range all {
		if all[i].reason == "" {
			all[i].to = settling
		}
	}
	return all
}

// edit changes what inspect shows below a part of an object: "HostConfig", "Dns".
func edit(name, part, field string, value any) func(*world) string {
	return func(w *world) string {
		id := w.fake.ID(name)
		w.fake.Edit(id, func(v map[string]any) {
			if part != "" {
				v = v[part].(map[string]any)
			}
			v[field] = value
		})
		return id
	}
}

// argument changes the one argument that says what a container's program does.
func argument(name string, change func(w *world, argument string) string) func(*world) string {
	return func(w *world) string {
		id := w.fake.ID(name)
		w.fake.Edit(id, func(v map[string]any) {
			config := v["Config"].(map[string]any)
			old := config["Cmd"].([]any)
			changed := change(w, old[1].(string))
			config["Cmd"] = []any{old[0], changed}
			v["Args"] = []any{old[0], changed}
		})
		return id
	}
}

// call is something that the API does.
func call(method, path string, body any) func(*world) string {
	return func(w *world) string {
		at := path
		for _, name := range []string{agent, proxy, net, uplink} {
			at = strings.ReplaceAll(at, "{"+name+"}", w.fake.ID(name))
		}
		w.fake.Do(method, at, body)
		return ""
	}
}

func replace(name string, change func(map[string]any)) func(*world) string {
	return func(w *world) string { return w.fake.Replace(w.fake.ID(name), change) }
}

func nothing(map[string]any) {}

var (
	device = []any{map[string]any{"PathOnHost": "/dev/kmsg", "PathInContainer": "/dev/kmsg", "CgroupPermissions": "rwm"}}
	ports  = map[string]any{"8080/tcp": []any{map[string]any{"HostIp": "", "HostPort": "8080"}}}
)

// equalOne: somebody who makes another container that is equal in every field, and whose labels say so, has
// changed nothing, unless the first one was looked at already.
const equalOne = "before it was looked at, and after it has ended, an equal one that is armed is what is wanted"

func agentMutations() []mutation {
	return []mutation{
		{name: "agent: copied command", do: argument(agent, func(_ *world, a string) string { return a + " " })},
		{name: "agent: command of another invocation", do: argument(agent, func(_ *world, a string) string {
			return strings.ReplaceAll(a, string(job), "invocation.sibling")
		})},
		{name: "agent: command of another vendor", do: argument(agent, func(w *world, a string) (other string) {
			return strings.ReplaceAll(a, `"/agent"`, `"/agent","--other"`)
		})},
		{name: "agent: entrypoint", do: edit(agent, "Config", "Entrypoint", []any{"/bin/sh"})},
		{name: "agent: environment", do: edit(agent, "Config", "Env", []any{"LD_PRELOAD=/work/x.so"})},
		{name: "agent: DNS", do: edit(agent, "HostConfig", "Dns", []any{"8.8.8.8"})},
		{name: "agent: extra hosts", do: edit(agent, "HostConfig", "ExtraHosts", []any{"llm.test:6.6.6.6"})},
		{name: "agent: published ports", do: edit(agent, "HostConfig", "PortBindings", ports)},
		{name: "agent: devices", do: edit(agent, "HostConfig", "Devices", device)},
		{name: "agent: pid namespace", do: edit(agent, "HostConfig", "PidMode", "host")},
		{name: "agent: user namespace", do: edit(agent, "HostConfig", "UsernsMode", "host")},
		{name: "agent: capabilities", do: edit(agent, "HostConfig", "CapAdd", []any{"SYS_ADMIN"})},
		{name: "agent: memory updated", do: func(w *world) string {
			call("POST", "/containers/{"+agent+"}/update", map[string]any{"Memory": 1 << 40})(w)
			return w.fake.ID(agent)
		}},
		{name: "agent: renamed", do: func(w *world) string {
			call("POST", "/containers/{"+agent+"}/rename?name=hidden", nil)(w)
			return w.fake.ID(agent)
		}},
		{name: "agent: replaced under its name", do: replace(agent, nothing), from: armed1, to: working, reason: equalOne},
		{name: "agent: executed in", do: call("POST", "/containers/{"+agent+"}/exec", map[string]any{"Cmd": []any{"id"}}), from: proving, to: working,
			reason: "nothing can be executed in what does not run"},
		{name: "agent: second attacher", do: attachTo(agent), from: proving, to: working, reason: "before events are heard an attach shows nowhere, and the protocol alone stands against it"},
		{name: "agent: file system written", do: func(w *world) string {
			w.fake.Scribble(w.fake.ID(agent), "/etc/ld.so.preload")
			return w.fake.ID(agent)
		}},
	}
}

func proxyMutations() []mutation {
	return []mutation{
		{name: "proxy: command", do: argument(proxy, func(_ *world, a string) string { return strings.ReplaceAll(a, "llm.test", "evil.test") })},
		{name: "proxy: entrypoint", do: edit(proxy, "Config", "Entrypoint", []any{"/bin/sh"})},
		{name: "proxy: environment", do: edit(proxy, "Config", "Env", []any{"HTTPS_PROXY=http://evil.test"})},
		{name: "proxy: DNS", do: edit(proxy, "HostConfig", "Dns", []any{"8.8.8.8"})},
		{name: "proxy: extra hosts", do: edit(proxy, "HostConfig", "ExtraHosts", []any{"llm.test:6.6.6.6"})},
		{name: "proxy: published ports", do: edit(proxy, "HostConfig", "PortBindings", ports)},
		{name: "proxy: devices", do: edit(proxy, "HostConfig", "Devices", device)},
		{name: "proxy: ipc namespace", do: edit(proxy, "HostConfig", "IpcMode", "host")},
		{name: "proxy: uts namespace", do: edit(proxy, "HostConfig", "UTSMode", "host")},
		{name: "proxy: replaced under its name", do: replace(proxy, nothing), from: armed1, to: working, reason: equalOne},
		{name: "proxy: final attachment missing", do: func(w *world) string {
			call("POST", "/networks/{"+net+"}/disconnect", map[string]any{"Container": w.fake.ID(proxy), "Force": true})(w)
			return w.fake.ID(proxy)
		}},
		{name: "proxy: killed", do: call("POST", "/containers/{"+proxy+"}/kill", nil), from: proving, to: working, reason: "what does not run cannot be killed, and what has ended is armed again"},
		{name: "proxy: executed in", do: call("POST", "/containers/{"+proxy+"}/exec", map[string]any{"Cmd": []any{"id"}}), from: proving, to: working,
			reason: "nothing can be executed in what does not run"},
		{name: "proxy: restarted", do: func(w *world) string {
			w.fake.Edit(w.fake.ID(proxy), func(v map[string]any) {
				v["RestartCount"] = 1
				v["State"].(map[string]any)["StartedAt"] = "2020-01-01T00:00:00Z"
			})
			return ""
		}, from: proving, to: working, reason: "it must run first, and is made anew at the end"},
		{name: "proxy: a second one with its labels", do: func(w *world) string { return w.fake.Copy(w.fake.ID(proxy), "twin") }},
	}
}

func networkMutations() []mutation {
	return []mutation{
		{name: "network: subnet", do: edit(net, "", "IPAM", map[string]any{"Driver": "default", "Options": map[string]any{},
			"Config": []any{map[string]any{"Subnet": "10.254.0.0/29", "Gateway": "10.254.0.1"}}})},
		{name: "network: not internal", do: edit(net, "", "Internal", false)},
		{name: "network: replaced under its name", do: replace(net, func(v map[string]any) { v["Internal"] = false })},
		{name: "network: replaced by an equal one", do: replace(net, nothing), from: gate, to: working, reason: "once all that was on the old one is made anew, an equal one is what is wanted"},
		{name: "network: endpoint added", do: intrude, from: gate, to: working, reason: "see the next one"},
		{name: "network: endpoint added while settling", do: intrude, from: settling, to: settling, reason: "the same, where only a plan can tell"},
		{name: "network: a bridge lets the host answer", do: func(w *world) string {
			bridge := ""
			id := w.fake.ID(net)
			w.fake.Edit(id, func(v map[string]any) {
				bridge = v["Options"].(map[string]any)["com.docker.network.bridge.name"].(string)
			})
			w.fake.Host.Set("/proc/sys/net/ipv4/conf/"+bridge+"/arp_ignore", "0")
			return id
		}},
		{name: "uplink: traffic between containers", do: func(w *world) string {
			id := w.fake.ID(uplink)
			w.fake.Edit(id, func(v map[string]any) {
				v["Options"].(map[string]any)["com.docker.network.bridge.enable_icc"] = "true"
			})
			return id
		}},
		{name: "uplink: replaced by an equal one", do: replace(uplink, nothing), from: gate, to: working, reason: "once all that was on the old one is made anew, an equal one is what is wanted"},
		{name: "agent: second network", do: func(w *world) string {
			call("POST", "/networks/bridge/connect", map[string]any{"Container": w.fake.ID(agent)})(w)
			return w.fake.ID(agent)
		}},
		{name: "agent: network taken away", do: func(w *world) string {
			call("POST", "/networks/{"+net+"}/disconnect", map[string]any{"Container": w.fake.ID(agent), "Force": true})(w)
			return w.fake.ID(agent)
		}},
	}
}

func otherMutations() []mutation {
	return []mutation{
		{name: "shim: written", do: func(w *world) string {
			id := w.fake.ID("sandplan.shim")
			w.fake.WriteVolume(id, "sandplan", "another program")
			return id
		}, from: gate, to: proving, reason: "what runs by then is another file, and the next gate tells"},
		{name: "lease: removed", do: func(w *world) string {
			w.fake.Do("DELETE", "/containers/"+w.fake.ID(lease), nil)
			return ""
		}, from: gate, to: working, reason: "at the end it is given back"},
	}
}

// intrude starts somebody else's container on the agent's network.
func intrude(w *world) string {
	status, answer := w.fake.Do("POST", "/containers/create?name=intruder", map[string]any{"Image": "races/agent:1", "Labels": map[string]any{},
		"HostConfig": map[string]any{"NetworkMode": w.fake.ID(net)}})
	if status == 201 {
		status, answer = w.fake.Do("POST", "/containers/intruder/start", nil)
	}
	if status != 204 {
		w.t.Errorf("intruder: %d %s", status, answer)
	}
	return w.fake.ID("intruder")
}

// attachTo attaches a second client, who stays.
func attachTo(name string) func(*world) string {
	return func(w *world) string {
		if err := w.fake.Attach(w.fake.ID(name)); err != nil {
			w.t.Error(err)
		}
		return ""
	}
}
