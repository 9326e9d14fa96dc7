package dockertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// exchange is one call of a real engine's API, with what changes from one engine to the next run taken
// out of it.
type exchange struct {
	Call   string `json:"call"`
	Body   any    `json:"body,omitempty"`
	Status int    `json:"status"`
	Answer any    `json:"answer,omitempty"`
}

// recording is what one engine answered to all that the product makes.
type recording struct {
	Engine    string          `json:"engine"`
	API       string          `json:"api"`
	Images    []recordedImage `json:"images"`
	Exchanges []exchange      `json:"exchanges"`
	Events    []any           `json:"events"`
}

type recordedImage struct {
	Inspect any      `json:"inspect"`
	Files   []string `json:"files,omitempty"`
}

// recorder stands between the product and an engine. It writes down every call that changes something,
// and those that it makes itself.
type recorder struct {
	t      *testing.T
	socket string
	engine *http.Client
	scrub  *scrubber
	out    recording

	mu       sync.Mutex
	mistaken bool // what is called now is to be refused
}

func newRecorder(t *testing.T, engine string) *recorder {
	t.Helper()
	r := &recorder{t: t, scrub: newScrubber(), engine: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", engine)
		}}}}
	dir, err := os.MkdirTemp("", "spdr")
	if err != nil {
		t.Fatal(err)
	}
	r.socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Transport: r.engine.Transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "docker" }}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet || q.Method == http.MethodHead || strings.HasSuffix(q.URL.Path, "/images/load") {
			forward.ServeHTTP(w, q)
			return
		}
		body, _ := io.ReadAll(q.Body)
		status, answer := r.call(q.Method, q.URL.RequestURI(), body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); _ = os.RemoveAll(dir) })
	return r
}

// call makes a call of the engine and writes it down.
func (r *recorder) call(method, uri string, body []byte) (int, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	status, answer, err := send(r.engine, method, uri, body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, uri, err)
	}
	// Whether an image is removed is up to what else uses it on that engine.
	if method == http.MethodDelete && strings.Contains(uri, "/images/") && !r.mistaken {
		return status, answer
	}
	path, query, _ := strings.Cut(uri, "?")
	if parsed, err := url.QueryUnescape(query); err == nil && query != "" {
		path += "?" + parsed
	}
	// A missing image of sandplan's own is loaded, which is not recorded: it is there when this is replayed.
	if status == http.StatusNotFound && method == http.MethodPost && !r.mistaken {
		return status, answer
	}
	e := exchange{Call: method + " " + r.scrub.text(withoutVersion(path)), Body: r.scrub.json(body), Status: status, Answer: r.scrub.json(answer)}
	r.out.Exchanges = append(r.out.Exchanges, e)
	return status, answer
}

func (r *recorder) look(format string, args ...any) []byte {
	_, answer := r.call(http.MethodGet, fmt.Sprintf(format, args...), nil)
	return answer
}

func send(c *http.Client, method, uri string, body []byte) (int, []byte, error) {
	q, err := http.NewRequest(method, "http://docker"+uri, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if len(body) > 0 {
		q.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

var apiPrefix = regexp.MustCompile(`^/v[0-9.]+/`)

func withoutVersion(path string) string { return apiPrefix.ReplaceAllString(path, "/") }

// scoped is the query for what a recording makes, and nothing else on the engine.
const recordedProject = "fidelity"

func scopedQuery(more string) string {
	return url.Values{"filters": {`{"label":["dev.sandplan.project=` + recordedProject + `"]}`}}.Encode() + more
}

// record lets the product make everything on a real engine, runs it, ends it, removes it, and looks in
// between.
func record(t *testing.T) recording {
	socket := dockertest.Socket(t)
	r := newRecorder(t, socket)
	w := newSample(t, socket, r.socket)
	r.scrub.word(w.tree, "/worktree")
	r.scrub.word(w.dir, "/configuration")
	r.out.Engine, r.out.API = w.engine.Info().Version, w.engine.Info().API
	api := "/v" + r.out.API
	began := time.Now()
	w.apply()
	for _, id := range w.images() {
		r.image(api, id, w.files(id)...)
	}
	lookAll := func() {
		r.look("%s/networks?%s", api, scopedQuery(""))
		r.look("%s/containers/json?%s", api, scopedQuery("&all=1"))
		for _, a := range w.containers() {
			r.look("%s/containers/%s/json", api, w.ids[a])
		}
		for _, a := range w.networks() {
			r.look("%s/networks/%s", api, w.ids[a])
		}
	}
	r.look("%s/volumes?%s", api, scopedQuery(""))
	r.look("%s/volumes/%s", api, w.ids[planner.AddrShim])
	lookAll()
	r.look("%s/containers/%s/json", api, r.seed(api))
	w.lockAndUnlock(func(id string) {
		var lease struct{ Image string }
		if err := json.Unmarshal(r.look("%s/containers/%s/json", api, id), &lease); err != nil {
			t.Fatal(err)
		}
		r.image(api, lease.Image)
	})
	r.mistakes(api, w)
	r.call(http.MethodPost, api+"/containers/"+w.ids[w.proxy()]+"/start", nil)
	r.call(http.MethodPost, api+"/containers/"+w.ids[w.agent()]+"/start", nil)
	r.call(http.MethodPost, api+"/containers/"+w.ids[w.runner()]+"/start", nil)
	lookAll()
	r.look("%s/containers/%s/changes", api, w.ids[w.agent()])
	r.call(http.MethodDelete, api+"/networks/"+w.ids[w.network()], nil) // has active endpoints
	for _, a := range []planner.Address{w.agent(), w.runner(), w.proxy()} {
		r.call(http.MethodPost, api+"/containers/"+w.ids[a]+"/kill?signal=KILL", nil)
		w.waitEnded(a)
	}
	lookAll()
	w.destroy()
	r.events(api, began)
	return r.out
}

// seed is the container that filled the shim's volume.
func (r *recorder) seed(api string) string {
	var found []struct{ Id string }
	_, raw, err := send(r.engine, http.MethodGet, api+"/containers/json?all=1&"+url.Values{"filters": {
		`{"label":["dev.sandplan.project=` + recordedProject + `","dev.sandplan.kind=shim-seed"]}`}}.Encode(), nil)
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err != nil || len(found) != 1 {
		r.t.Fatalf("%d seeds: %v", len(found), err)
	}
	return found[0].Id
}

// image writes down an image, and the files in it that matter.
func (r *recorder) image(api, id string, files ...string) {
	_, answer, err := send(r.engine, http.MethodGet, api+"/images/"+id+"/json", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.out.Images = append(r.out.Images, recordedImage{r.scrub.json(answer), files})
}

// mistakes are calls that an engine refuses.
func (r *recorder) mistakes(api string, w *sample) {
	r.mistaken = true
	defer func() { r.mistaken = false }()
	for _, c := range [][2]string{
		{"GET", "/containers/" + none0 + "/json"}, {"GET", "/networks/" + none0}, {"GET", "/volumes/none"}, {"GET", "/images/sha256:" + none0 + "/json"},
		{"POST", "/containers/" + none0 + "/start"}, {"DELETE", "/containers/" + none0}, {"DELETE", "/networks/" + none0},
		{"DELETE", "/volumes/" + w.ids[planner.AddrShim]}, {"DELETE", "/images/" + w.ids[planner.AddrImage]},
		{"POST", "/containers/" + w.ids[w.agent()] + "/kill?signal=KILL"},
	} {
		r.call(c[0], api+c[1], nil)
	}
	for _, a := range []planner.Address{w.agent(), w.network()} { // names that are taken
		var known struct{ Name, Image string }
		kind, path := "containers", "/containers/"+w.ids[a]+"/json"
		if a == w.network() {
			kind, path = "networks", "/networks/"+w.ids[a]
		}
		_, raw, err := send(r.engine, http.MethodGet, api+path, nil)
		if err == nil {
			err = json.Unmarshal(raw, &known)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if kind == "containers" {
			r.call(http.MethodPost, api+"/containers/create?name="+strings.TrimPrefix(known.Name, "/"), []byte(`{"Image":"`+known.Image+`"}`))
			r.call(http.MethodPost, api+"/containers/create?name=fidelity-none", []byte(`{"Image":"sha256:`+none0+`"}`))
			continue
		}
		r.call(http.MethodPost, api+"/networks/create", []byte(`{"Name":"`+known.Name+`","CheckDuplicate":true,"Driver":"bridge"}`))
	}
}

var none0 = strings.Repeat("0", 64)

// events are all that the engine told about what was made.
func (r *recorder) events(api string, began time.Time) {
	stamp := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	_, raw, err := send(r.engine, http.MethodGet, api+"/events?since="+stamp(began)+"&until="+stamp(time.Now()), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Type, Action string
			Actor        struct {
				ID         string
				Attributes map[string]string
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatal(err)
		}
		name := e.Actor.Attributes["name"]
		if _, known := r.scrub.ids[e.Actor.ID]; !known && !strings.Contains(name, recordedProject) && !strings.Contains(e.Actor.ID, recordedProject) {
			continue // somebody else's
		}
		if c := e.Actor.Attributes["container"]; c != "" && r.scrub.ids[c] == "" {
			continue // somebody else's on a network that all share
		}
		r.out.Events = append(r.out.Events, r.scrub.value(map[string]any{"Type": e.Type, "Action": e.Action, "ID": e.Actor.ID,
			"container": e.Actor.Attributes["container"]}))
	}
}
