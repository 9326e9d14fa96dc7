//go:build vendors

package vendors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

// What scripts/test-vendors sets.
const (
	claudeImageVariable = "SANDPLAN_VENDORS_CLAUDE" // the image, with the mock's authority at caInImage
	codexImageVariable  = "SANDPLAN_VENDORS_CODEX"
	caVariable          = "SANDPLAN_VENDORS_CA" // the authority's file on this machine, FILE.key beside it
	caInImage           = "/etc/sandplan-test-ca.pem"
)

// versionOf is the version of the CLI in an image: its tag.
func versionOf(variable string) string {
	image := os.Getenv(variable)
	return image[strings.LastIndexByte(image, ':')+1:]
}

// The uplink's gateway is where a program of the host can be reached by proxies.
const (
	pool        = "10.241.0.0/16"
	mockAddress = "10.241.0.1"
	agentUser   = 65532
)

// Dummies in the form of real credentials.
const (
	claudeToken = "sk-ant-oat01-vendors-dummy-token"
	claudeKey   = "sk-ant-api03-vendors-dummy-key"
	openaiKey   = "sk-proj-vendors-dummy-key"
	openKey     = "sk-vendors-for-all-to-see" // where a test has to put one into a declaration
)

// world is one project on the engine with the mock beside it.
type world struct {
	t      *testing.T
	mock   *vendormock.Server
	binary string // built with the tag of tests
	dir    string // of the configuration
	data   string
	env    []string
}

// newWorld builds sandplan, starts the mock, and applies a configuration whose worktrees it makes: one for
// each name, below the configuration's directory.
func newWorld(t *testing.T, project, config string, worktrees ...string) *world {
	if os.Getenv(claudeImageVariable) == "" || os.Getenv(codexImageVariable) == "" || os.Getenv(caVariable) == "" {
		t.Fatal("the agent images are not made; run this as `make test-vendors`")
	}
	dockertest.Socket(t)
	w := &world{t: t, dir: t.TempDir(), data: t.TempDir()}
	w.binary = filepath.Join(w.data, "sandplan")
	build(t, w.binary, "..", "-tags", "sandplantest")
	w.env = append(os.Environ(),
		"SANDPLAN_TEST_VENDOR_ADDRESS="+mockAddress, "SANDPLAN_TEST_VENDOR_CA="+caInImage, "SANDPLAN_DATA_DIR="+w.data,
		"TEST_CLAUDE_TOKEN="+claudeToken, "TEST_CLAUDE_KEY="+claudeKey, "TEST_OPENAI_KEY="+openaiKey,
		"TEST_CODEX_LOGIN="+login(48*time.Hour))
	w.write("sandplan.hcl", fmt.Sprintf("sandplan {\n  project = %q\n}\n\nprovider \"docker\" {\n  subnet_pool = %q\n}\n", project, pool)+config)
	w.write("prompt.txt", prompt)
	w.write("token", claudeToken+"\n")
	w.write("key", openaiKey+"\n")
	w.write("login.json", login(48*time.Hour))
	w.write("auth.json", `{"OPENAI_API_KEY":"`+openaiKey+`"}`)
	evil := filepath.Join(w.data, "evil")
	build(t, evil, "./testdata/evil")
	for _, name := range worktrees {
		w.makeWorktree(name, evil)
	}
	t.Cleanup(func() { w.sandplan(time.Minute, "destroy", "-auto-approve") })
	w.sandplan(time.Minute, "destroy", "-auto-approve") // what a run left that was stopped half-way
	w.must("init")
	w.must("apply", "-auto-approve")
	w.listen()
	return w
}

// listen starts the mock. Port 443 of an address that only this scope's uplink has.
func (w *world) listen() {
	mock, err := vendormock.Start(context.Background(), mockAddress+":443", os.Getenv(caVariable))
	if err != nil {
		w.t.Fatal(err)
	}
	w.mock = mock
	w.t.Cleanup(func() { mock.Close() })
}

func build(t *testing.T, out, pkg string, flags ...string) {
	t.Helper()
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", out}, flags...), pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, text)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// ended is how a command of sandplan ended.
type ended struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (w *world) sandplan(limit time.Duration, args ...string) ended {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return w.start(ctx, nil, args...)()
}

// start starts a command; what it returns waits for its end.
func (w *world) start(ctx context.Context, onLine func(string), args ...string) func() ended {
	cmd := exec.CommandContext(ctx, w.binary, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var stdout bytes.Buffer
	stderr := &lines{on: onLine}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	began := time.Now()
	err := cmd.Start()
	return func() ended {
		if err == nil {
			err = cmd.Wait()
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			w.t.Errorf("sandplan %v: %v", args, err)
		}
		return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.all.String(), time.Since(began)}
	}
}

// lines calls a function with every line that is written.
type lines struct {
	all  bytes.Buffer
	part []byte
	on   func(string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.all.Write(p)
	l.part = append(l.part, p...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		if l.on != nil {
			l.on(string(l.part[:i]))
		}
		l.part = l.part[i+1:]
	}
}

func (w *world) must(args ...string) {
	w.t.Helper()
	if e := w.sandplan(3*time.Minute, args...); e.code != 0 {
		w.t.Fatalf("sandplan %v ends with %d\n%s%s", args, e.code, e.stdout, e.stderr)
	}
}

// run runs an invocation against a script.
func (w *world) run(name string, script vendormock.Script) ended {
	w.mock.Play(script)
	return w.sandplan(3*time.Minute, "run", "-prompt="+filepath.Join(w.dir, "prompt.txt"), "invocation."+name)
}

// turns are the recorded requests that ask a model.
func (w *world) turns() []vendormock.Request {
	var out []vendormock.Request
	for _, r := range w.mock.Requests() {
		if r.IsTurn() {
			out = append(out, r)
		}
	}
	return out
}

// record is what a run wrote down, as far as the tests look at it.
type record struct {
	Predicate struct {
		Exit struct {
			Code   int    `json:"code"`
			By     string `json:"by"`
			Reason string `json:"reason"`
		} `json:"exit"`
		Egress struct {
			Allowed map[string]int64 `json:"allowed"`
			Refused map[string]int64 `json:"refused"`
		} `json:"egress"`
	} `json:"predicate"`
}

// lastRecord is the record of the newest run, and everything of it as text.
func (w *world) lastRecord() (record, string) {
	w.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.data, "runs", "*"))
	if err != nil || len(dirs) == 0 {
		w.t.Fatalf("no record: %v", err)
	}
	dir := ""
	var newest time.Time
	for _, d := range dirs {
		if info, err := os.Stat(d); err == nil && info.ModTime().After(newest) {
			newest, dir = info.ModTime(), d
		}
	}
	var text strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		text.Write(b)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "record.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		w.t.Fatal(err)
	}
	return r, text.String()
}
