package dockertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sort"
	"strings"
)

// What somebody else does to a Fake: by the API, past all faults and unseen by After, or by changing what
// no API changes.

// Do makes a call of the API.
func (f *Fake) Do(method, path string, body any) (status int, answer []byte) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	w := httptest.NewRecorder()
	f.routes().ServeHTTP(w, httptest.NewRequest(method, "http://docker"+path, bytes.NewReader(raw)))
	return w.Code, w.Body.Bytes()
}

// SetAfter sets or replaces what FakeOptions.After is.
func (f *Fake) SetAfter(after func(call string, n int)) {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.after = after
}

// AddFault adds a fault; it counts the calls from now on.
func (f *Fake) AddFault(fault Fault) { f.add(fault) }

// ID is the engine ID of the object that calls name so, "" when there is none.
func (f *Fake) ID(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range keys(f.containers) {
		if c := f.containers[id]; nameByLabels(c.labels(), c.name()) == name {
			return id
		}
	}
	for _, id := range keys(f.networks) {
		if n := f.networks[id]; nameByLabels(labelsIn(n.tree), n.name()) == name {
			return id
		}
	}
	for _, id := range keys(f.volumes) {
		if nameByLabels(labelsIn(f.volumes[id].tree), id) == name {
			return id
		}
	}
	return ""
}

// Has reports whether an object is there.
func (f *Fake) Has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.containers[id] != nil || f.networks[id] != nil || f.volumes[id] != nil || f.images[id] != nil
}

// Runs reports whether a container runs, and whether it was ever started.
func (f *Fake) Runs(id string) (now, ever bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.containers[id]
	return c != nil && c.runs(), c != nil && c.process != nil
}

// Edit changes what inspect shows of a container or a network.
func (f *Fake) Edit(id string, change func(inspect map[string]any)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil {
		change(c.tree)
	}
	if n := f.networks[id]; n != nil {
		change(n.tree)
	}
}

// Replace puts another object with the name and the labels of one in its place, changed by change, and
// returns its ID. What ran in a container has ended then.
func (f *Fake) Replace(id string, change func(inspect map[string]any)) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	other := f.newID()
	if n := f.networks[id]; n != nil {
		delete(f.networks, id)
		made := &fakeNetwork{tree: clone(n.tree)}
		made.tree["Id"] = other
		change(made.tree)
		f.networks[other] = made
		f.tell("network", "destroy", id, nil)
		f.tell("network", "create", other, nil)
	}
	if c := f.containers[id]; c != nil {
		if c.runs() {
			process := c.process
			c.kill()
			f.ended(c, process, 137)
		}
		delete(f.containers, id)
		made := &fakeContainer{tree: clone(c.tree)}
		made.tree["Id"], made.tree["State"] = other, newState()
		change(made.tree)
		f.containers[other] = made
		f.tell("container", "destroy", id, nil)
		f.tell("container", "create", other, nil)
	}
	return other
}

// WriteVolume writes a file of a volume, as somebody does who has it mounted.
func (f *Fake) WriteVolume(name, path, content string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.volumes[name]; v != nil {
		v.files[path] = file{mode: 0o555, content: []byte(content)}
	}
}

// Copy makes another container with everything that one has, under another name.
func (f *Fake) Copy(id, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.containers[id]
	if c == nil {
		return ""
	}
	other := &fakeContainer{tree: clone(c.tree)}
	other.tree["Id"], other.tree["Name"], other.tree["State"] = f.newID(), "/"+name, newState()
	for _, e := range other.endpoints() {
		e := object(e)
		e["EndpointID"], e["NetworkID"], e["IPAddress"], e["MacAddress"], e["Gateway"] = "", "", "", "", ""
	}
	f.containers[other.id()] = other
	f.tell("container", "create", other.id(), nil)
	return other.id()
}

// Scribble writes a file into a container's own file system.
func (f *Fake) Scribble(id, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil {
		c.written = append(c.written, path)
	}
}

// Attach attaches one more client to a container, which stays until the container ends.
func (f *Fake) Attach(id string) error {
	conn, err := net.Dial("unix", f.Socket)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "POST /v%s/containers/%s/attach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
		f.profile.api, id)
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}()
	return err
}

// Objects are all that is there but the engine's own networks: "container NAME", sorted.
func (f *Fake) Objects() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.containers {
		out = append(out, "container "+c.name())
	}
	for _, n := range f.networks {
		if n.bridge() != "" || len(labelsIn(n.tree)) > 0 {
			out = append(out, "network "+n.name())
		}
	}
	for name := range f.volumes {
		out = append(out, "volume "+name)
	}
	for id, i := range f.images {
		out = append(out, strings.TrimSpace(fmt.Sprintf("image %.19s %s", id, strings.Join(tags(i), " "))))
	}
	sort.Strings(out)
	return out
}

func tags(i *fakeImage) []string {
	var out []string
	for _, tag := range list(i.tree["RepoTags"]) {
		out = append(out, text(tag))
	}
	return out
}

// Endpoints are the names of the containers that are on a network now.
func (f *Fake) Endpoints(network string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.networks[network]
	if n == nil {
		return nil
	}
	var out []string
	for _, e := range f.attached(n) {
		out = append(out, text(object(e)["Name"]))
	}
	sort.Strings(out)
	return out
}
