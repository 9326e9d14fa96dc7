package dockertest

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
)

// fakeContainer is a container: what inspect answers, and the process in it.
type fakeContainer struct {
	tree    tree
	process *Process // of the last start, nil before the first
	stdin   *input
	clients []*client
	written []string // files that a test wrote into its own file system
}

func (c *fakeContainer) id() string                { return text(c.tree["Id"]) }
func (c *fakeContainer) name() string              { return strings.TrimPrefix(text(c.tree["Name"]), "/") }
func (c *fakeContainer) config() tree              { return object(c.tree["Config"]) }
func (c *fakeContainer) host() tree                { return object(c.tree["HostConfig"]) }
func (c *fakeContainer) state() tree               { return object(c.tree["State"]) }
func (c *fakeContainer) labels() map[string]string { return labelsIn(c.config()) }
func (c *fakeContainer) runs() bool                { return c.state()["Running"] == true }
func (c *fakeContainer) settings() tree            { return object(c.tree["NetworkSettings"]) }
func (c *fakeContainer) endpoints() tree           { return object(c.settings()["Networks"]) }

func text(v any) string {
	s, _ := v.(string)
	return s
}

func object(v any) tree {
	m, _ := v.(tree)
	return m
}

func envName(kv any) string {
	name, _, _ := strings.Cut(text(kv), "=")
	return name
}

// container finds a container by its ID, the beginning of one, or its name.
func (f *Fake) container(ref string) (*fakeContainer, error) {
	if c := f.containers[ref]; c != nil {
		return c, nil
	}
	for _, id := range keys(f.containers) {
		if c := f.containers[id]; c.name() == ref || len(ref) >= 12 && strings.HasPrefix(id, ref) {
			return c, nil
		}
	}
	return nil, failure(http.StatusNotFound, "No such container: %s", ref)
}

func (f *Fake) createContainer(r *http.Request) (any, error) {
	asked, name := body(r), r.URL.Query().Get("name")
	image, err := f.image(text(asked["Image"]))
	if err != nil {
		return nil, failure(http.StatusNotFound, "No such image: %s", text(asked["Image"]))
	}
	if other, err := f.container(name); err == nil && name != "" {
		return nil, failure(http.StatusConflict, "Conflict. The container name \"/%s\" is already in use by container \"%s\". "+
			"You have to remove (or rename) that container to be able to reuse that name.", name, other.id())
	}
	host := f.profile.hostConfig(object(asked["HostConfig"]))
	if err := f.checkMounts(host); err != nil {
		return nil, err
	}
	id := f.newID()
	if name == "" {
		name = "nameless_" + short(id)
	}
	c := &fakeContainer{tree: tree{"Id": id, "Name": "/" + name, "Image": image.id, "Created": stamp(time.Now()), "Platform": "linux", "Driver": "overlay2",
		"AppArmorProfile": "", "MountLabel": "", "ProcessLabel": "", "ExecIDs": nil, "RestartCount": 0,
		"HostnamePath": "", "HostsPath": "", "LogPath": "", "ResolvConfPath": "",
		"Config": config(asked, object(image.tree["Config"]), id), "HostConfig": host, "State": newState()}}
	run := append(list(c.config()["Entrypoint"]), list(c.config()["Cmd"])...)
	c.tree["Path"], c.tree["Args"] = "", []any{}
	if len(run) > 0 {
		c.tree["Path"], c.tree["Args"] = run[0], append([]any{}, run[1:]...)
	}
	c.tree["Mounts"] = f.mountPoints(c, image)
	f.attachNetworks(c, asked)
	f.containers[id] = c
	f.tell("container", "create", id, tree{"name": name, "image": text(asked["Image"])})
	return tree{"Id": id, "Warnings": []any{}}, nil
}

func newState() tree {
	return tree{"Dead": false, "Error": "", "ExitCode": 0, "FinishedAt": never, "OOMKilled": false, "Paused": false, "Pid": 0,
		"Restarting": false, "Running": false, "StartedAt": never, "Status": "created"}
}

func list(v any) []any {
	items, _ := v.([]any)
	return slices.Clone(items)
}

// checkMounts refuses binds whose source is not there, as engines do for the Mounts API.
func (f *Fake) checkMounts(host tree) error {
	for _, item := range list(host["Mounts"]) {
		m := object(item)
		if !f.binds || m["Type"] != "bind" {
			continue
		}
		if _, err := os.Stat(text(m["Source"])); err != nil {
			return failure(http.StatusBadRequest, "invalid mount config for type \"bind\": bind source path does not exist: %s", text(m["Source"]))
		}
	}
	return nil
}

// mountPoints are what the engine makes of the mounts that were asked for, and of the image's volumes.
func (f *Fake) mountPoints(c *fakeContainer, image *fakeImage) []any {
	out, covered := []any{}, map[string]bool{}
	for target := range object(c.host()["Tmpfs"]) {
		covered[target] = true
	}
	for _, item := range list(c.host()["Mounts"]) {
		m := object(item)
		target := text(m["Target"])
		covered[target] = true
		point := tree{"Type": m["Type"], "Source": m["Source"], "Destination": target, "Mode": "", "RW": m["ReadOnly"] != true,
			"Propagation": text(object(m["BindOptions"])["Propagation"])}
		if m["Type"] == "volume" {
			v := f.volumeNamed(text(m["Source"]), nil)
			if object(m["VolumeOptions"])["NoCopy"] != true {
				v.seed(image, target)
			}
			point["Name"], point["Driver"], point["Mode"], point["Source"] = v.name(), "local", "z", v.tree["Mountpoint"]
		}
		out = append(out, point)
	}
	for _, target := range keys(object(c.config()["Volumes"])) {
		if covered[target] {
			continue
		}
		v := f.volumeNamed(f.newID(), nil)
		v.seed(image, target)
		out = append(out, tree{"Type": "volume", "Name": v.name(), "Source": v.tree["Mountpoint"], "Destination": target, "Driver": "local",
			"Mode": "", "RW": true, "Propagation": ""})
	}
	return out
}

func (f *Fake) inspectContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.tree, nil
}

func (f *Fake) listContainers(r *http.Request) (any, error) {
	all := r.URL.Query().Get("all") != ""
	out := []any{}
	for _, id := range keys(f.containers) {
		c := f.containers[id]
		is := func(filter, value string) bool { return c.is(filter, value) }
		if (all || c.runs() || strings.Contains(r.URL.Query().Get("filters"), `"status"`)) && matches(r, c.labels(), is) {
			out = append(out, c.listed())
		}
	}
	return out, nil
}

// is reports whether a filter of lists lets the container through.
func (c *fakeContainer) is(filter, value string) bool {
	switch filter {
	case "status":
		return c.state()["Status"] == value
	case "name":
		return strings.Contains(c.name(), value)
	case "id":
		return strings.HasPrefix(c.id(), value)
	case "volume":
		return slices.ContainsFunc(list(c.tree["Mounts"]), func(m any) bool {
			return object(m)["Name"] == value || object(m)["Destination"] == value
		})
	}
	return false
}

// listed is the short form, which shows less of endpoints than inspect does.
func (c *fakeContainer) listed() tree {
	networks := tree{}
	for name, e := range c.endpoints() {
		one := clone(object(e))
		for _, left := range []string{"Aliases", "Links", "DriverOpts", "DNSNames"} {
			if _, has := one[left]; has {
				one[left] = nil
			}
		}
		networks[name] = one
	}
	var run []string
	for _, word := range append([]any{c.tree["Path"]}, list(c.tree["Args"])...) {
		run = append(run, text(word))
	}
	status := "Created"
	switch c.state()["Status"] {
	case "running":
		status = "Up 1 second"
	case "exited":
		status = fmt.Sprintf("Exited (%v) 1 second ago", c.state()["ExitCode"])
	}
	return tree{"Id": c.id(), "Names": []any{c.tree["Name"]}, "Image": c.config()["Image"], "ImageID": c.tree["Image"], "Command": strings.Join(run, " "),
		"Created": 1, "Ports": []any{}, "Labels": c.config()["Labels"], "State": c.state()["Status"], "Status": status,
		"HostConfig": tree{"NetworkMode": c.host()["NetworkMode"]}, "NetworkSettings": tree{"Networks": networks}, "Mounts": c.tree["Mounts"]}
}

// changesOf are the mount points that the engine had to make: a sandbox can write nowhere else.
func (f *Fake) changesOf(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c.process == nil && len(c.written) == 0 {
		return []any(nil), nil
	}
	image, err := f.image(text(c.tree["Image"]))
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, m := range list(c.tree["Mounts"]) {
		made[text(object(m)["Destination"])] = true
	}
	for target := range object(c.host()["Tmpfs"]) {
		made[target] = true
	}
	for _, target := range keys(made) {
		for dir := target; dir != "" && dir != "/"; dir = dir[:strings.LastIndexByte(dir, '/')] {
			made[dir] = true
		}
	}
	for _, path := range c.written {
		made[path] = true
	}
	var out []any
	for _, path := range keys(made) {
		if !image.has(path) {
			out = append(out, tree{"Path": path, "Kind": 1})
		}
	}
	return out, nil
}

func (f *Fake) renameContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.tree["Name"] = "/" + r.URL.Query().Get("name")
	f.tell("container", "rename", c.id(), nil)
	return nil, nil
}

func (f *Fake) pauseContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.state()["Paused"], c.state()["Status"] = true, "paused"
	f.tell("container", "pause", c.id(), nil)
	return nil, nil
}

func (f *Fake) updateContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	for name, value := range body(r) {
		if !empty(value) {
			c.host()[name] = value
		}
	}
	f.tell("container", "update", c.id(), nil)
	return tree{"Warnings": nil}, nil
}

func (f *Fake) execInContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if !c.runs() {
		return nil, failure(http.StatusConflict, "Container %s is not running", c.id())
	}
	f.tell("container", "exec_create: sh", c.id(), nil)
	return tree{"Id": f.newID()}, nil
}

func (f *Fake) deleteContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c.runs() {
		if r.URL.Query().Get("force") != "1" {
			return nil, failure(http.StatusConflict, "You cannot remove a running container %s. Stop the container before attempting removal or force remove", c.id())
		}
		f.tell("container", "kill", c.id(), nil)
		process := c.process
		c.kill()
		f.ended(c, process, 137)
	}
	delete(f.containers, c.id())
	if r.URL.Query().Get("v") == "1" {
		for _, m := range list(c.tree["Mounts"]) {
			if name := text(object(m)["Name"]); len(name) == 64 {
				delete(f.volumes, name)
			}
		}
	}
	f.tell("container", "destroy", c.id(), nil)
	return nil, nil
}

// byName are the containers, sorted.
func (f *Fake) byName() []*fakeContainer {
	var out []*fakeContainer
	for _, c := range f.containers {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name() < out[j].name() })
	return out
}
