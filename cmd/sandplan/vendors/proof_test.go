//go:build vendors

package vendors_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

const answer = "ANSWER-90d2"

// planted is the text that a scripted call wants to write.
const planted = "written by the agent"

// outcome is what must become of a call.
type outcome int

const (
	refused outcome = iota // the CLI says that it cannot be, and nothing comes of it
	works                  // the result holds `says`
)

// call is one scripted call and what must become of it.
type call struct {
	tool   string
	input  any
	want   outcome
	says   string // in the result
	leaves string // the file of the worktree that a call that works leaves or changes
	target string // the file of the container that a call that is refused wanted to write
}

type object = map[string]any

var phases = []struct {
	name     string
	writable bool
}{{"planning", false}, {"questions", false}, {"review", false}, {"execute", true}, {"fix", true}}

// vendor is one of the two CLIs as the proof sees it.
type vendor struct {
	name       string
	credential string                             // as it must come over the wire
	host       string                             // the only one that is asked for
	settings   string                             // where it asks for managed settings
	paths      []string                           // all that it may ask for there
	tools      func(writable bool) []string       // exactly those that are offered
	calls      func(writable bool) []call         // what the model tries
	failed     func(r vendormock.Result) bool     // says of a result that the call was refused
	answered   func(stdout, answer string) string // what is wrong with the CLI's last words
}

// TestVendors is everything, with one project on the engine for all of it.
func TestVendors(t *testing.T) {
	config := vendorBlocks()
	var names []string
	add := func(name, vendor, phase string) {
		names = append(names, name)
		config += invocation(name, vendor, phase)
	}
	for _, v := range vendors {
		for _, p := range phases {
			add(v.name+"_"+p.name, v.name, p.name)
		}
	}
	for _, c := range controls {
		config += c.vendorBlock()
		add(c.name, c.name, "fix")
	}
	for _, c := range credentials {
		config += c.vendorBlock()
		add(c.name, c.name, "questions")
	}
	config += narrowBlock()
	add("narrow", "narrow", "questions")
	config += refusedBlock(t)
	add("refused", "refused", "questions")
	w := newWorld(t, "vendors-proof", config, names...)
	t.Run("tools", func(t *testing.T) {
		for _, v := range vendors {
			for _, p := range phases {
				t.Run(v.name+"/"+p.name, func(t *testing.T) { w.in(t).prove(v, v.name+"_"+p.name, p.writable) })
			}
		}
	})
	t.Run("prompt", func(t *testing.T) { testPrompts(t, w) })
	t.Run("control", func(t *testing.T) {
		for _, c := range controls {
			t.Run(c.name, func(t *testing.T) { w.in(t).proveControl(c) })
		}
	})
	t.Run("credential", func(t *testing.T) {
		for _, c := range credentials {
			t.Run(c.name, func(t *testing.T) { w.in(t).proveCredential(c) })
		}
		w.proveBadCredentials(t)
	})
	t.Run("end", func(t *testing.T) { testEnds(t, w) })
	t.Run("released", func(t *testing.T) { w.in(t).proveReleased() })
}

// in is the world for a part of the test.
func (w *world) in(t *testing.T) *world {
	at := *w
	at.t = t
	return &at
}

func vendorBlocks() string {
	return fmt.Sprintf(`
vendor "claude" {
  image   = %q
  version = %q
  model   = "sonnet"
  credential "CLAUDE_CODE_OAUTH_TOKEN" {
    source_env = "TEST_CLAUDE_TOKEN"
  }
}

vendor "codex" {
  image   = %q
  version = %q
  credential "OPENAI_API_KEY" {
    source_env = "TEST_OPENAI_KEY"
  }
}
`, os.Getenv(claudeImageVariable), versionOf(claudeImageVariable), os.Getenv(codexImageVariable), versionOf(codexImageVariable))
}

func invocation(name, vendor, phase string) string {
	return fmt.Sprintf(`
invocation %q {
  vendor   = vendor.%s
  phase    = phase.%s
  worktree = %[1]q
  user     = "%[4]d:%[4]d"
  timeout  = "2m"
}
`, name, vendor, phase, agentUser)
}

// prove runs one invocation and holds everything that can be seen from outside against what its phase
// allows.
func (w *world) prove(v vendor, name string, writable bool) {
	calls := v.calls(writable)
	script := vendormock.Script{Answer: answer, Settings: managedSettings}
	for _, c := range calls {
		raw, err := json.Marshal(c.input)
		if err != nil {
			w.t.Fatal(err)
		}
		script.Calls = append(script.Calls, vendormock.Call{Name: c.tool, Input: raw})
	}
	before := w.snapshot(name)
	looked := w.lookInside(name, calls, &script)
	e := w.run(name, script)
	if !looked() {
		w.t.Error("nobody looked into the container while it ran")
	}
	if e.code != 0 || v.answered(e.stdout, answer) != "" {
		w.t.Errorf("it ends with %d, %s\n%s\n%s", e.code, v.answered(e.stdout, answer), e.stdout, e.stderr)
	}
	w.checkRequests(v, writable)
	w.checkResults(v, calls)
	w.checkWorktree(name, calls, before)
	w.checkEgress(v)
	w.t.Logf("%d requests, %d calls, %s", len(w.mock.Requests()), len(calls), e.took)
}

// lookInside has the container looked into, from the host, while its CLI waits for the last answer: no call
// that was refused has left anything there. What it returns says whether that has happened.
func (w *world) lookInside(name string, calls []call, script *vendormock.Script) func() bool {
	var once sync.Once
	var looked atomic.Bool
	script.Last = func() {
		once.Do(func() {
			root := w.rootOf(name)
			for _, c := range calls {
				if c.target == "" {
					continue
				}
				text, err := os.ReadFile(filepath.Join(root, c.target))
				if err == nil && strings.Contains(string(text), planted) {
					w.t.Errorf("%s %v has written %s", c.tool, c.input, c.target)
				}
			}
			// It is the right container, and it can be looked into.
			if _, err := os.Stat(filepath.Join(root, "run", "sandplan")); err != nil {
				w.t.Error(err)
				return
			}
			looked.Store(true)
		})
	}
	return looked.Load
}

// rootOf is the root directory of an agent that runs, as the host sees it.
func (w *world) rootOf(name string) string {
	docker := func(args ...string) string {
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			w.t.Errorf("docker %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	id := docker("ps", "-q", "--filter", "label=dev.sandplan.project=vendors-proof", "--filter", "label=dev.sandplan.address=invocation."+name+".agent")
	return filepath.Join("/proc", docker("inspect", "-f", "{{.State.Pid}}", id), "root")
}

// checkRequests: every single request offers exactly the tools, carries the credential, and holds nothing
// that stands in a hostile file.
func (w *world) checkRequests(v vendor, writable bool) {
	turns := w.turns()
	if len(turns) == 0 {
		w.t.Fatal("no model was asked")
	}
	for i, r := range turns {
		if got, want := r.Tools(), v.tools(writable); !slices.Equal(got, want) {
			w.t.Errorf("turn %d offers %q, want exactly %q", i, got, want)
		}
		if r.Credential() != v.credential {
			w.t.Errorf("turn %d carries the credential %q, want %q", i, r.Credential(), v.credential)
		}
	}
	told := map[string]bool{}
	if v.settings != "" && !slices.ContainsFunc(w.mock.Requests(), func(r vendormock.Request) bool { return r.Path == v.settings }) {
		w.t.Errorf("nobody asked for %s, so that no managed settings were tried", v.settings)
	}
	for _, r := range w.mock.Requests() {
		if strings.HasPrefix(r.Path, "/ran/") {
			w.t.Errorf("a program of the worktree ran: %s", r.Path)
		}
		if r.Host != v.host {
			w.t.Errorf("%s%s was asked for, only %s is", r.Host, r.Path, v.host)
		}
		if !slices.Contains(v.paths, r.Path) && !strings.HasPrefix(r.Path, "/ran/") {
			w.t.Errorf("%s was asked for, and is not needed for an answer", r.Path)
		}
		all := r.Path + "\n" + string(r.Body)
		for k, vs := range r.Header {
			all += "\n" + k + ": " + strings.Join(vs, ", ")
		}
		for _, word := range []string{canary, strings.ReplaceAll(canary, "-", "_"), "agent:x:65532", "root:x:0"} {
			if i := strings.Index(all, word); i >= 0 && !told[word] {
				told[word] = true // the next request holds it as well
				w.t.Errorf("%s %s holds %q: …%s…", r.Method, r.Path, word, all[max(0, i-200):min(len(all), i+200)])
			}
		}
	}
}

// checkResults: the last request holds what the CLI told the model of every call.
func (w *world) checkResults(v vendor, calls []call) {
	turns := w.turns()
	results := turns[len(turns)-1].Results()
	if len(results) != len(calls) {
		w.t.Fatalf("%d calls were made, and %d have results: %+v", len(calls), len(results), results)
	}
	for i, c := range calls {
		switch r := results[i]; {
		case c.want == refused && !v.failed(r):
			w.t.Errorf("%s %v is allowed: %q", c.tool, c.input, r.Text)
		case c.want == works && (v.failed(r) || !strings.Contains(r.Text, c.says)):
			w.t.Errorf("%s %v fails: %q, want %q in it", c.tool, c.input, r.Text, c.says)
		case testing.Verbose():
			w.t.Logf("%-24s %.100q", c.tool, r.Text)
		}
	}
}

// checkWorktree: exactly the files of calls that work have changed, and belong to whom they should.
func (w *world) checkWorktree(name string, calls []call, before map[string]string) {
	want := []string{}
	for _, c := range calls {
		if c.want == works && c.leaves != "" && !slices.Contains(want, c.leaves) {
			want = append(want, c.leaves)
			info, err := os.Lstat(filepath.Join(w.worktree(name), c.leaves))
			if err != nil {
				w.t.Errorf("%s: %v", c.leaves, err)
			} else if s := info.Sys().(*syscall.Stat_t); s.Uid != agentUser || s.Gid != agentUser {
				w.t.Errorf("%s belongs to %d:%d, not to %d", c.leaves, s.Uid, s.Gid, agentUser)
			}
		}
	}
	slices.Sort(want)
	if got := changed(before, w.snapshot(name)); !slices.Equal(got, want) {
		w.t.Errorf("the worktree has changes in %q, want %q", got, want)
	}
}

// checkEgress: the proxy was asked for nothing but the vendor, and by sandplan's own proof for what it has
// to refuse. No secret is in what a run leaves behind.
func (w *world) checkEgress(v vendor) {
	r, text := w.lastRecord()
	for host := range r.Predicate.Egress.Refused {
		if host != "sandplan-refused.invalid:443" {
			w.t.Errorf("%s was asked for", host)
		}
	}
	for host := range r.Predicate.Egress.Allowed {
		if !slices.Contains(vendormock.Hosts(), strings.TrimSuffix(host, ":443")) {
			w.t.Errorf("%s was let through", host)
		}
	}
	if r.Predicate.Egress.Allowed[v.host+":443"] == 0 {
		w.t.Errorf("%s was not asked for: %v", v.host, r.Predicate.Egress.Allowed)
	}
	for _, secret := range []string{claudeToken, claudeKey, openaiKey} {
		if bytes.Contains([]byte(text), []byte(secret)) {
			w.t.Error("the record holds the credential")
		}
	}
}
