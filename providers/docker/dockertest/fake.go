package dockertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fake is an engine in memory behind a unix socket: containers, networks, volumes, images and events,
// with the defaults and merges of the release that it imitates, as far as recordings of real engines
// (testdata) show them. It is for what a real engine cannot be made to do at a chosen moment: to answer
// late, by halves, twice or with yesterday's state, and to let somebody else change the world between
// two calls. Whether the product works is asked of real engines.
//
// Paths in Calls and faults name objects by what their labels say, as in
// "GET /containers/invocation.job.agent/json"; those without labels by their name.
type Fake struct {
	// Socket is where clients connect.
	Socket string
	*faults
	// Host is the machine below.
	Host *Host

	profile profile
	binds   bool
	program func(*Process) int

	mu         sync.Mutex
	counter    int
	containers map[string]*fakeContainer // by ID, as are the others
	networks   map[string]*fakeNetwork
	volumes    map[string]*fakeVolume // by name
	images     map[string]*fakeImage
	events     journal
}

// FakeOptions choose what is imitated.
type FakeOptions struct {
	// Release is 20.10, 26.1 or 28.5.
	Release string
	// Binds says that the sources of bind mounts are directories of this machine, and must exist.
	Binds bool
	// Program is what runs in containers; without one they wait until they are killed.
	Program func(*Process) int
	// After is called when a call has been carried out, before its answer is sent; n counts equal calls from 1.
	After  func(call string, n int)
	Faults []Fault
}

// NewFake starts an engine without objects; it ends with the test.
func NewFake(t testing.TB, o FakeOptions) *Fake {
	t.Helper()
	f := &Fake{faults: newFaults(o.Faults), program: o.Program, binds: o.Binds, Host: newHost(), containers: map[string]*fakeContainer{}, networks: map[string]*fakeNetwork{},
		volumes: map[string]*fakeVolume{}, images: map[string]*fakeImage{}}
	f.after = o.After
	var ok bool
	if f.profile, ok = profiles()[o.Release]; !ok {
		t.Fatalf("no engine %q is imitated", o.Release)
	}
	for _, name := range []string{"bridge", "host", "none"} {
		f.addNetwork(tree{"Name": name, "Driver": map[string]string{"none": "null"}[name] + strings.TrimPrefix(name, "none")})
	}
	mux := f.routes()
	f.Socket = listen(t, f.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = plainPath(r)
		mux.ServeHTTP(w, r)
	}), f.call))
	t.Cleanup(f.close)
	return f
}

// tree is JSON as an engine shows it.
type tree = map[string]any

// problem is an answer other than success.
type problem struct {
	status  int
	message string
}

func (p *problem) Error() string { return p.message }

func failure(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

func (f *Fake) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, status int, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			answer, err := do(r)
			raw, status := f.encode(answer, status, err)
			f.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(raw)
		})
	}
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", f.profile.api)
		_, _ = io.WriteString(w, "OK")
	})
	handle("GET /info", 200, func(*http.Request) (any, error) { return f.info(), nil })
	handle("GET /containers/json", 200, f.listContainers)
	handle("POST /containers/create", 201, f.createContainer)
	handle("GET /containers/{id}/json", 200, f.inspectContainer)
	handle("GET /containers/{id}/changes", 200, f.changesOf)
	handle("POST /containers/{id}/start", 204, f.startContainer)
	handle("POST /containers/{id}/kill", 204, f.killContainer)
	handle("POST /containers/{id}/rename", 204, f.renameContainer)
	handle("POST /containers/{id}/pause", 204, f.pauseContainer)
	handle("POST /containers/{id}/update", 200, f.updateContainer)
	handle("POST /containers/{id}/exec", 201, f.execInContainer)
	handle("DELETE /containers/{id}", 204, f.deleteContainer)
	handle("GET /networks", 200, f.listNetworks)
	handle("POST /networks/create", 201, f.createNetwork)
	handle("GET /networks/{id}", 200, f.inspectNetwork)
	handle("DELETE /networks/{id}", 204, f.deleteNetwork)
	handle("POST /networks/{id}/connect", 200, f.connect)
	handle("POST /networks/{id}/disconnect", 200, f.disconnect)
	handle("GET /volumes", 200, f.listVolumes)
	handle("POST /volumes/create", 201, f.createVolume)
	handle("GET /volumes/{id}", 200, f.inspectVolume)
	handle("DELETE /volumes/{id}", 204, f.deleteVolume)
	handle("GET /images/{ref...}", 200, f.inspectImage)
	handle("DELETE /images/{ref...}", 200, f.deleteImage)
	mux.HandleFunc("POST /images/load", f.loadImage)
	mux.HandleFunc("POST /containers/{id}/attach", f.attach)
	mux.HandleFunc("POST /containers/{id}/wait", f.wait)
	mux.HandleFunc("GET /containers/{id}/archive", f.archive)
	mux.HandleFunc("GET /events", f.streamEvents)
	return mux
}

// encode is called with mu held: what it writes down may change afterwards.
func (f *Fake) encode(answer any, status int, err error) ([]byte, int) {
	if p, ok := err.(*problem); ok {
		answer, status = map[string]string{"message": p.message}, p.status
	} else if err != nil {
		answer, status = map[string]string{"message": err.Error()}, http.StatusInternalServerError
	}
	if answer == nil {
		return nil, status
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return []byte(err.Error()), http.StatusInternalServerError
	}
	return append(raw, '\n'), status
}

func (f *Fake) info() tree {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return tree{"ID": "FAKE:" + f.profile.version, "ServerVersion": f.profile.version, "OSType": "linux", "Architecture": arch,
		"DockerRootDir": dataDir, "DriverStatus": [][2]string{{"Backing Filesystem", "extfs"}}, "SecurityOptions": []string{"name=seccomp,profile=default"}}
}

// dataDir is where the fake says that it keeps its data.
const dataDir = "/var/lib/docker"

// newID is an engine ID.
func (f *Fake) newID() string {
	f.counter++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", f.profile.version, f.counter))
	return hex.EncodeToString(sum[:])
}

// call is how a call is named: with what the labels of an object say in the place of its ID.
func (f *Fake) call(r *http.Request) string {
	path := plainPath(r)
	parts := strings.Split(path, "/")
	if len(parts) > 2 {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch parts[1] {
		case "containers":
			if c, err := f.container(parts[2]); err == nil {
				parts[2] = nameByLabels(c.labels(), c.name())
			}
		case "networks":
			if n, err := f.network(parts[2]); err == nil {
				parts[2] = nameByLabels(labelsIn(n.tree), n.tree["Name"])
			}
		case "volumes":
			if v := f.volumes[parts[2]]; v != nil {
				parts[2] = nameByLabels(labelsIn(v.tree), parts[2])
			}
		}
	}
	path = strings.Join(parts, "/")
	if name := r.URL.Query().Get("name"); name != "" {
		path += " " + name
	}
	return r.Method + " " + path
}

// nameByLabels is the address of an object of sandplan's; its kind where that is no part of the address.
func nameByLabels(labels map[string]string, name any) string {
	address, kind := labels["dev.sandplan.address"], labels["dev.sandplan.kind"]
	switch {
	case kind == "":
		return fmt.Sprint(name)
	case strings.HasSuffix(address, kind) || strings.Contains(address, kind+"["):
		return address
	}
	return strings.TrimSpace(kind + " " + address)
}

func labelsIn(v tree) map[string]string {
	out := map[string]string{}
	labels, _ := v["Labels"].(tree)
	for k, value := range labels {
		out[k], _ = value.(string)
	}
	return out
}

// body reads a request's JSON.
func body(r *http.Request) tree {
	dec := json.NewDecoder(r.Body)
	dec.UseNumber()
	v := tree{}
	_ = dec.Decode(&v) // what is no object asks for nothing
	return v
}

// clone is a deep copy.
func clone[T any](v T) T {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("no JSON: %v", err))
	}
	var out T
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		panic(fmt.Sprintf("no JSON: %v", err))
	}
	return out
}

// matches reports whether an object passes the filters of a list: labels, status, volume and name.
func matches(r *http.Request, labels map[string]string, is func(filter, value string) bool) bool {
	var filters map[string]any
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	for filter, values := range filters {
		passed := false
		for _, value := range filterValues(values) {
			if filter != "label" {
				passed = passed || is(filter, value) // any of them
				continue
			}
			name, want, exact := strings.Cut(value, "=")
			if got, has := labels[name]; !has || exact && got != want {
				return false // all of them
			}
			passed = true
		}
		if !passed {
			return false
		}
	}
	return true
}

// filterValues: clients write a list, or an object whose keys are the values.
func filterValues(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			out = append(out, fmt.Sprint(item))
		}
	case map[string]any:
		for item := range v {
			out = append(out, item)
		}
	}
	sort.Strings(out)
	return out
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

const never = "0001-01-01T00:00:00Z"

func short(id string) string { return id[:min(12, len(id))] }

// close ends what runs.
func (f *Fake) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		c.kill()
	}
	f.events.close()
}
