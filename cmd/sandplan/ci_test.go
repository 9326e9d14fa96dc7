package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// ciWorld is a repository with two branches, on a runner with an engine.
type ciWorld struct {
	t       *testing.T
	bin     string
	dir     string // of the checkout
	tmp     string
	summary string
	env     map[string]string
	// late: the last step was refused for want of time.
	late bool
}

const ciProject = "ciworkflow"

const ciConfig = `sandplan {
  project = "ciworkflow"
}

provider "docker" {
  subnet_pool = "10.229.80.0/20"
}

vendor "standin" {
  kind    = "custom"
  image   = "sandplan-test/ciworkflow:1"
  command = ["/agent", "cat=/work/NOTE"]

  host "vendor.test" {
    port      = 8443
    addresses = ["10.229.80.1"]
  }
}

invocation "review" {
  vendor   = vendor.standin
  phase    = phase.review
  worktree = "${path.root}/tree"

  limits {
    pids = 100
  }
}
`

const ciLock = `image "sandplan-test/ciworkflow:1" {
  ids   = ["sha256:1111111111111111111111111111111111111111111111111111111111111111"]
  shell = false
}
`

// newCIWorld has no engine where the socket is "".
func newCIWorld(t *testing.T, socket string) *ciWorld {
	t.Helper()
	w := &ciWorld{t: t, bin: build(t), tmp: t.TempDir()}
	w.dir, w.summary = filepath.Join(w.tmp, "checkout"), filepath.Join(w.tmp, "summary.md")
	stubs := filepath.Join(w.tmp, "stubs")
	w.env = map[string]string{
		"PATH": w.bin + ":" + stubs + ":" + os.Getenv("PATH"), "HOME": w.tmp, "DOCKER_HOST": "unix://" + socket, "SANDPLAN_IN_AUTOMATION": "1",
		"GITHUB_STEP_SUMMARY": w.summary, "GITHUB_PATH": filepath.Join(w.tmp, "path"), "GITHUB_OUTPUT": filepath.Join(w.tmp, "output"), "RUNNER_TEMP": w.tmp,
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "SANDPLAN_BOT_TOKEN": "t", "CI_API_V4_URL": "http://127.0.0.1:9/api/v4", "CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "7",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org", "STUBS": stubs,
	}
	w.must(`mkdir -p "$STUBS" checkout/tree
# What GitHub would do is not what this is about: its command writes down how it was called.
printf '#!/bin/sh\necho "gh $*" >>"$STUBS/calls"\n' >"$STUBS/gh"
chmod +x "$STUBS/gh"`)
	w.file("sandplan.hcl", ciConfig)
	w.file("tree/NOTE", "A note to review.\n")
	w.file(".gitignore", "/.sandplan/\n*.plan\n*.md\n*.txt\n*.sarif\n*.snap\n*.xml\n")
	if socket == "" {
		w.env["DOCKER_HOST"] = "unix:///nonexistent.sock"
		w.file(".sandplan.lock.hcl", ciLock)
	} else {
		w.engine(socket)
	}
	w.must("cd checkout && git init -q -b main . && git add . && git commit -q -m one && git clone -q --bare . ../origin.git && git remote add origin ../origin.git && git fetch -q && git checkout -q -b change")
	return w
}

// engine gives the world an agent's image, a vendor, and a lock file that pins them.
func (w *ciWorld) engine(socket string) {
	w.t.Helper()
	clean := func() {
		_, _ = w.sh("sandplan -chdir=/ destroy -project=" + ciProject + " -auto-approve -lock-timeout=60s")
	}
	w.t.Cleanup(clean)
	clean()
	loadAgent(w.t, socket, filepath.Join(w.bin, "agent"), "sandplan-test/ciworkflow:1")
	vendor := exec.Command(filepath.Join(w.bin, "vendor"), "-listen=10.229.80.1:8443", "-name=vendor.test", "-ca-out="+filepath.Join(w.tmp, "ca.pem"))
	if err := vendor.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = vendor.Process.Kill(); _ = vendor.Wait() })
	w.must("cd checkout && sandplan init")
}

func (w *ciWorld) file(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ciWorld) read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

// sh runs a script as the runners of both services do.
func (w *ciWorld) sh(script string, env ...string) (int, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.WaitDelay = w.tmp, 5*time.Second
	if _, err := os.Stat(w.dir); err == nil && strings.HasPrefix(script, "\n") {
		cmd.Dir = w.dir
	}
	for _, name := range slices.Sorted(maps.Keys(w.env)) {
		cmd.Env = append(cmd.Env, name+"="+w.env[name])
	}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	w.late = err != nil && tooBusy(string(out))
	return codeOf(err), string(out)
}

func (w *ciWorld) must(script string) {
	w.t.Helper()
	if code, out := w.sh(script); code != 0 {
		w.t.Fatalf("%s\ncode %d\n%s", script, code, out)
	}
}

// expressions are what the service would put in place of them.
var expressions = map[string]string{
	"github.base_ref": "main", "!contains(github.event.pull_request.labels.*.name, 'wider')": "true", "github.token": "t",
	"github.event.pull_request.number": "7", "secrets.VENDOR_TOKEN": "x",
}

var expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)

// run runs the steps of a job. After a failure only those run that say so. The code is that of the step that
// failed first.
func (w *ciWorld) run(j ciJob, given map[string]string) int {
	w.t.Helper()
	failed := 0
	for _, s := range j.Steps {
		if s.Run == "" || failed != 0 && !strings.Contains(s.If, "!cancelled()") && !strings.Contains(s.If, "always()") {
			continue
		}
		if expression.MatchString(s.Run) {
			w.t.Errorf("the step %q has an expression within its script, where it would be run as a command", s.Name)
		}
		var env []string
		for name, value := range s.Env {
			value = expression.ReplaceAllStringFunc(value, func(e string) string {
				inner := expression.FindStringSubmatch(e)[1]
				out, known := expressions[inner]
				if over, ok := given[inner]; ok {
					out, known = over, true
				}
				if !known {
					w.t.Errorf("the step %q has the expression %s, which this test does not know", s.Name, inner)
				}
				return out
			})
			env = append(env, name+"="+value)
		}
		late := w.late
		if code, out := w.sh("\n"+s.Run, env...); failed != 0 {
			w.late = late // that of the step that failed first
		} else if code != 0 {
			failed = code
			w.t.Logf("step %q: code %d\n%s", s.Name, code, out)
		}
	}
	return failed
}

// script runs a job of GitLab.
func (w *ciWorld) script(j ciJob) int {
	w.t.Helper()
	code, out := w.sh("\n" + strings.Join(j.Script, "\n"))
	w.t.Logf("code %d\n%s", code, out)
	if len(j.AfterScript) > 0 {
		if code, out := w.sh("\n" + strings.Join(j.AfterScript, "\n")); code != 0 {
			w.t.Errorf("after_script: code %d\n%s", code, out)
		}
	}
	return code
}

// change commits another configuration on the branch, and takes the checkout of the base away again.
func (w *ciWorld) change(from, to string) {
	w.t.Helper()
	text := strings.Replace(ciConfig, from, to, 1)
	w.file("sandplan.hcl", text)
	w.must("cd checkout && git worktree prune && { git commit -q -am change || true; } && rm -rf ../base && git worktree prune")
}

// TestReviewJobs runs the commands for a pull request, of both workflows in docs/ci.md, where there is no engine.
func TestReviewJobs(t *testing.T) {
	t.Parallel()
	github, gitlab := workflows(t)
	w := newCIWorld(t, "")
	comments := newGitLab(t)
	w.env["CI_API_V4_URL"] = comments.url
	// One that narrows passes, one that widens does not, and both are commented on.
	for _, tt := range []struct {
		to, says string
		code     int
	}{{"pids = 99", "No agent may do more than before.", 0}, {"pids = 101", "which is not allowed here", 1}} {
		w.change("pids = 100", tt.to)
		if code := w.run(github["review"], nil); code != tt.code || !strings.Contains(w.read(filepath.Join(w.tmp, "plan.md")), tt.says) {
			t.Errorf("GitHub, %s: code %d, want %d and %q:\n%s", tt.to, code, tt.code, tt.says, w.read(filepath.Join(w.tmp, "plan.md")))
		}
		w.change("pids = 100", tt.to)
		if code := w.script(gitlab["review"]); code != tt.code || !strings.Contains(w.read(filepath.Join(w.dir, "plan.md")), tt.says) {
			t.Errorf("GitLab, %s: code %d, want %d and %q", tt.to, code, tt.code, tt.says)
		}
		if note := comments.last("projects/1/merge_requests/7/notes"); note != w.read(filepath.Join(w.dir, "plan.md")) {
			t.Errorf("GitLab, %s: the comment is not the plan: %q", tt.to, note)
		}
	}
	w.change("pids = 100", "pids = 101")
	if code := w.run(github["review"], map[string]string{"!contains(github.event.pull_request.labels.*.name, 'wider')": "false"}); code != 0 {
		t.Errorf("what a person has approved: code %d", code)
	}
	if calls := w.read(filepath.Join(w.tmp, "stubs/calls")); strings.Count(calls, "gh pr comment 7 --body-file ../plan.md --edit-last --create-if-none\n") != 3 {
		t.Errorf("comments: %s", calls)
	}
	w.action()
}

// TestAgentAndAuditJobs runs the commands of the other jobs on the real engine: what was merged is applied and run, and
// an audit looks at it, before and after somebody tampers.
func TestAgentAndAuditJobs(t *testing.T) {
	t.Parallel()
	github, gitlab := workflows(t)
	w := newCIWorld(t, dockertest.Socket(t))
	for _, one := range []struct {
		service string
		run     func() int
	}{{"GitHub", func() int { return w.run(github["agents"], nil) }}, {"GitLab", func() int { return w.script(gitlab["agents"]) }}} {
		w.must("rm -f checkout/review.txt")
		code := one.run()
		for tries := 0; code == exitRefused && w.late && tries < 5; tries++ {
			t.Log("the machine is too busy for a start within its bound: once more")
			code = one.run()
		}
		if code != 0 || w.read(filepath.Join(w.dir, "review.txt")) != "A note to review.\n" {
			t.Errorf("%s: code %d, the agent printed %q", one.service, code, w.read(filepath.Join(w.dir, "review.txt")))
		}
	}
	if records, _ := filepath.Glob(filepath.Join(w.dir, ".sandplan/runs/*/record.json")); len(records) < 2 {
		t.Errorf("records: %q", records)
	}
	if !strings.Contains(w.read(w.summary), "### sandplan plan: `ciworkflow/default`") {
		t.Errorf("the step summary: %s", w.read(w.summary))
	}
	if code := w.run(github["audit"], nil); code != 0 || !strings.Contains(w.read(filepath.Join(w.dir, "drift.sarif")), `"verdict": "clean"`) {
		t.Errorf("GitHub, nothing has drifted: code %d\n%s", code, w.read(filepath.Join(w.dir, "drift.sarif")))
	}
	w.must("rm checkout/engine.snap; docker update --pids-limit=4000 $(docker ps -aq --filter label=dev.sandplan.project=" + ciProject + " --filter label=dev.sandplan.address=invocation.review.agent)")
	if code := w.run(github["audit"], nil); code != 2 || !strings.Contains(w.read(filepath.Join(w.dir, "drift.sarif")), `"ruleId": "sandplan.drift.replace"`) {
		t.Errorf("GitHub, a limit was raised: code %d\n%s", code, w.read(filepath.Join(w.dir, "drift.sarif")))
	}
	if code := w.script(gitlab["audit"]); code != 2 || !strings.Contains(w.read(filepath.Join(w.dir, "drift.xml")), "<failure ") {
		t.Errorf("GitLab, a limit was raised: code %d\n%s", code, w.read(filepath.Join(w.dir, "drift.xml")))
	}
	if _, err := os.Stat(filepath.Join(w.dir, "engine.snap")); err != nil {
		t.Error(err)
	}
}

// action runs the steps of action.yml: a release is installed when its checksum is right, and only then.
func (w *ciWorld) action() {
	w.t.Helper()
	text := w.read("../../action.yml")
	var a struct{ Runs struct{ Steps []ciStep } }
	readYAML(w.t, text, &a)
	install, run := a.Runs.Steps[0], a.Runs.Steps[1]
	for _, s := range a.Runs.Steps {
		if expression.MatchString(s.Run) {
			w.t.Errorf("the step %q has an expression within its script, where it would be run as a command", s.Name)
		}
	}
	file := "sandplan-linux-" + runtime.GOARCH
	w.must(fmt.Sprintf("mkdir -p release/v1.2.3 && cp %s/sandplan release/v1.2.3/%s && cd release/v1.2.3 && sha256sum %s >SHA256SUMS", w.bin, file, file))
	source := "SOURCE=file://" + filepath.Join(w.tmp, "release")
	if code, out := w.sh("\n"+install.Run, "VERSION=1.2.3", source); code != 0 || w.read(w.env["GITHUB_PATH"]) != filepath.Join(w.tmp, "sandplan-1.2.3")+"\n" {
		w.t.Errorf("install: code %d\n%s", code, out)
	}
	w.must("sed -i 's/^[0-7]/8/; t; s/^./0/' release/v1.2.3/SHA256SUMS; rm -rf sandplan-1.2.3")
	if code, out := w.sh("\n"+install.Run, "VERSION=1.2.3", source); code == 0 {
		w.t.Errorf("a binary with another checksum was installed\n%s", out)
	}
	for _, tt := range []struct {
		command, sarif string
		code           int
	}{{"validate", "", 0}, {"drift", "action.sarif", 1}, {"plan -base=. -deny-widening", "", 0}, {"plan; echo $(id)", "", 1}, {"plan", "x.sarif", 1}} {
		w.must("rm -f output")
		code, out := w.sh("\n"+run.Run, "COMMAND="+tt.command, "SUMMARY=true", "SARIF="+tt.sarif)
		if code != tt.code || strings.Contains(out, "uid=") {
			w.t.Errorf("%s: code %d, want %d\n%s", tt.command, code, tt.code, out)
		}
	}
	if !strings.Contains(w.read(filepath.Join(w.dir, "action.sarif")), `"executionSuccessful": false`) || !strings.Contains(w.read(w.summary), "### sandplan drift") {
		w.t.Error("the action wrote no SARIF log, or no summary")
	}
}
