package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// typedOrder is the order in which a person types what the pages show.
var typedOrder = []string{"version", "completion", "init", "fmt", "validate", "graph", "apply", "plan", "snapshot", "show", "output", "state", "drift",
	"run", "dispatch", "logs", "runs", "force-unlock", "destroy"}

// typedBlocks has all that documented commands name.
const typedBlocks = `
vendor "local" {
  kind    = "custom"
  image   = IMAGE
  command = ["/agent", "say=done"]

  host "vendor.example" {
    port      = 8443
    addresses = [GATEWAY]
  }
}

phase "review" {
  runner "test" {
    argv  = ["/agent", "say=tested"]
    image = IMAGE
  }
}

invocation "login" {
  for_each = toset(["auth", "session"])
  vendor   = vendor.local
  phase    = phase.review
  worktree = "work"
}

invocation "review" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "work"
}

output "proxy" {
  value = invocation.review.proxy_address
}
`

// TestDocumentedCommandsRun types every command that a page or a help shows, in a project that has what they name,
// and answers yes where it is asked. The tutorial has a test of its own, and verify its own, too.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Parallel()
	socket := dockertest.Socket(t)
	n := newNeighbour(t, socket, build(t), "typed", "10.233.224.0/20", typedBlocks)
	n.vendor()
	// The base is a checkout of its own, as CI has it: with a lock file, or its images would be unknown.
	pin := exec.Command(filepath.Join(n.bin, "sandplan"), "init")
	pin.Dir, pin.Env = n.dir, append(os.Environ(), "DOCKER_HOST=unix://"+socket)
	if out, err := pin.CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	base := t.TempDir()
	if err := os.CopyFS(base, os.DirFS(n.dir)); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("codeboost", n.name, "../main", base, "examples/", examples+"/")
	var typed [][]string
	seen := map[string]bool{}
	for _, d := range documentedCommands(t) {
		if d.at == "tutorial.md" || d.args[0] == "verify" || d.mention && slices.Contains([]string{"run", "logs", "force-unlock", "dispatch"}, d.args[0]) {
			continue
		}
		var args []string
		for _, a := range d.args {
			args = append(args, here.Replace(a))
		}
		if line := strings.Join(args, " "); !seen[line] && line != "plan -out" {
			seen[line] = true
			typed = append(typed, args)
		}
	}
	rank := func(args []string) int {
		if slices.Equal(args, []string{"apply", "p"}) { // once it has been shown
			return slices.Index(typedOrder, "state")
		}
		return slices.Index(typedOrder, args[0])
	}
	slices.SortStableFunc(typed, func(a, b []string) int { return rank(a) - rank(b) })
	for _, args := range typed {
		line := strings.Join(args, " ")
		want := exitOK
		if strings.HasPrefix(line, "runs show 2") || strings.HasPrefix(line, "force-unlock") {
			want = exitError // there is no such run, and no such lock
		}
		if rank(args) < 0 {
			t.Errorf("sandplan %s: say in typedOrder when it is typed", line)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		cmd := exec.CommandContext(ctx, filepath.Join(n.bin, "sandplan"), args...)
		cmd.Dir, cmd.Env, cmd.Stdin = n.dir, append(os.Environ(), "DOCKER_HOST=unix://"+socket), strings.NewReader("yes\n")
		out, err := cmd.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || codeOf(err) != want {
			t.Errorf("sandplan %s: %v, want exit code %d\n%s", line, err, want, out)
		}
	}
	t.Logf("%d command lines", len(typed))
}
