package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// world is what the lanes share.
type world struct {
	t      *testing.T
	engine engine
	made   map[int]*lane
}

// lane is one project with a binary of its own, which can be killed: lanes with the same binary would
// share sandplan.image, and each would change what the other one's plan has just said.
type lane struct {
	w       *world
	project string
	dir     string
	binary  string
	// undisturbed is how many calls the runs made that no kill reached.
	undisturbed deaths
	// took is how long the last command took that nothing ended.
	took time.Duration
}

const agentTag = "sandplan-crash/agent:1"

func newWorld(t *testing.T, socket string) *world {
	w := &world{t: t, engine: newEngine(t, socket), made: map[int]*lane{}}
	img, err := scratch.Image(scratch.Spec{Arch: runtime.GOARCH, Entries: []scratch.Entry{
		{Path: "/agent", Mode: 0o755, Content: []byte("never run")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scratch.Load(t.Context(), socket, agentTag, img); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.engine.remove("/images/" + agentTag) })
	for i := range lanes {
		w.made[i] = w.newLane(i)
	}
	return w
}

func (w *world) lane(i int) *lane { return w.made[i] }

const config = `
sandplan {
  project = %q
}

provider "docker" {
  subnet_pool = "10.239.%d.0/18"
}

vendor "local" {
  kind    = "custom"
  image   = %q
  command = ["/agent"]
  host "vendor.sandplan.test" {
    addresses = ["10.239.%d.1"]
  }
}

phase "review" {
  runner "test" {
    argv  = ["/agent"]
    image = %q
  }
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "./worktree"
  prompt   = "nothing"
}
`

func (w *world) newLane(i int) *lane {
	l := &lane{w: w, project: fmt.Sprintf("crash%d", i), dir: w.t.TempDir()}
	l.build()
	text := fmt.Sprintf(config, l.project, 64*i, agentTag, 64*i, agentTag)
	if err := os.WriteFile(filepath.Join(l.dir, "sandplan.hcl"), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", filepath.Join(l.dir, "worktree")).CombinedOutput(); err != nil {
		w.t.Fatalf("git init: %v: %s", err, out)
	}
	if out, code := l.sandplan(nil, "init"); code != 0 {
		w.t.Fatalf("init ends with %d:\n%s", code, out)
	}
	w.t.Cleanup(func() { l.sandplan(nil, "destroy", "-auto-approve") })
	l.must("destroy", "-auto-approve") // what an earlier run left when it was stopped half-way
	return l
}

func (l *lane) build() {
	l.binary = filepath.Join(l.dir, "sandplan")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "sandplantest", "-ldflags", "-X main.version=0.1.0-"+l.project, "-o", l.binary, "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		l.w.t.Fatalf("go build: %v\n%s", err, out)
	}
}

// settle waits until the engine has finished the calls that the dead client had made: it does not stop
// half-way because nobody waits for the answer. What it is making shows only when it is made, and no call
// takes half as long as a whole command.
func (l *lane) settle() {
	const step = 250 * time.Millisecond
	rest := max(4, int(l.took/2/step))
	before, same := "", 0
	for range 60 + 4*rest {
		var ids []string // networks are listed in no order
		for _, path := range []string{"/containers/json?all=1&filters=", "/networks?filters="} {
			for _, o := range l.w.engine.list(path + l.filter()) {
				ids = append(ids, o.ID)
			}
		}
		slices.Sort(ids)
		now := strings.Join(ids, " ")
		if now != before {
			before, same = now, 0
		} else if same++; same == rest {
			return
		}
		time.Sleep(step)
	}
	l.w.t.Errorf("%s: the engine does not come to rest", l.project)
}

// nothingLeft fails for anything on the engine that carries the project's label, locks included.
func (l *lane) nothingLeft() {
	for what, path := range map[string]string{"container": "/containers/json?all=1&filters=", "network": "/networks?filters="} {
		if got := l.w.engine.list(path + l.filter()); len(got) != 0 {
			l.w.t.Errorf("%s: %d %ss are left", l.project, len(got), what)
		}
	}
	var volumes struct{ Volumes []any }
	l.w.engine.get("/volumes?filters="+l.filter(), &volumes)
	if len(volumes.Volumes) != 0 {
		l.w.t.Errorf("%s: %d volumes are left", l.project, len(volumes.Volumes))
	}
}

func (l *lane) filter() string {
	return url.QueryEscape(fmt.Sprintf(`{"label":["dev.sandplan.project=%s"]}`, l.project))
}

// toolImage is the ID of the image that the lane's proxy is made of.
func (l *lane) toolImage() string {
	for _, c := range l.w.engine.list("/containers/json?all=1&filters=" + l.filter()) {
		if c.Labels["dev.sandplan.kind"] == "proxy" {
			return c.ImageID
		}
	}
	l.w.t.Fatalf("%s has no proxy after apply", l.project)
	return ""
}

// engine reads the engine without sandplan.
type engine struct {
	t      *testing.T
	socket string
	client *http.Client
}

type listed struct {
	ID      string `json:"Id"`
	ImageID string
	Labels  map[string]string
}

func newEngine(t *testing.T, socket string) engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return engine{t, socket, &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

func (e engine) get(path string, into any) {
	resp, err := e.client.Get("http://engine" + path)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		e.t.Fatalf("GET %s: %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		e.t.Fatalf("GET %s: %v", path, err)
	}
}

func (e engine) list(path string) (out []listed) {
	e.get(path, &out)
	return out
}

func (e engine) has(path string) bool {
	resp, err := e.client.Get("http://engine" + path)
	if err != nil {
		e.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (e engine) remove(path string) {
	req, err := http.NewRequest(http.MethodDelete, "http://engine"+path, nil)
	if err != nil {
		e.t.Error(err)
		return
	}
	if resp, err := e.client.Do(req); err == nil {
		resp.Body.Close()
	}
}
