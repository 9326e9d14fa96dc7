package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	codeRemark = regexp.MustCompile(`(?m)^(.*) # exit code ([0-9]+)$`)
)

// TestTutorial runs the commands of docs/tutorial.md one after another, as its reader does. A command that
// a remark gives an exit code has to end with that one, and all others with 0.
func TestTutorial(t *testing.T) {
	socket := dockertest.Socket(t)
	doc, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\ntrap 'kill $(jobs -p)' EXIT\n"
	blocks := shellBlock.FindAllStringSubmatch(string(doc), -1)
	if len(blocks) < 5 {
		t.Fatalf("found %d blocks of commands", len(blocks))
	}
	for _, b := range blocks {
		script += codeRemark.ReplaceAllString(b[1], "code=0; $1 || code=$$?; [ $$code = $2 ] || { echo \"exit code $$code, not $2: $1\"; exit 1; }")
	}
	bin, dir := build(t), t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	env := append(os.Environ(), "BIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"), "DOCKER_HOST=unix://"+socket, "SANDPLAN_IN_AUTOMATION=1")
	clean := func() {
		cmd := exec.Command(filepath.Join(bin, "sandplan"), "-chdir=/", "destroy", "-project=tutorial", "-auto-approve")
		cmd.Env = env
		_ = cmd.Run() // it is tidying up: what the test is about was judged before
		_ = exec.Command("docker", "image", "rm", "tutorial/agent:1").Run()
	}
	clean()
	t.Cleanup(clean)
	cmd := exec.CommandContext(ctx, "bash", "-xc", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 5*time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "A note to review.\n"); n < 2 {
		t.Errorf("the agent printed the note %d times, want two runs:\n%s", n, out)
	}
}
