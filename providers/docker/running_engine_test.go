package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/planner"
)

// What the engine fills in while a container runs, and leaves behind when it has run, is no drift.
func TestRunningContainersDoNotDiffer(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.64.0/20", fmt.Sprintf(`
phase "review" {
  runner "test" {
    argv  = ["/agent", "test"]
    image = %q
  }
}
invocation "one" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = %q
}
`, w.agent, w.repo)))
	c := w.compile(s)
	ids := w.apply(c)
	containers := []planner.Address{"invocation.one.proxy", "invocation.one.agent", `invocation.one.runner["test"]`}
	look := func(when string, status planner.Status) {
		t.Helper()
		snap := c.Complete(w.observe(t.Context()))
		for _, d := range differences(c, snap) {
			t.Errorf("%s: %s", when, d)
		}
		for _, a := range containers {
			if o, _ := snap.Object(a); o.Status != status {
				t.Errorf("%s: %s is %q, want %q", when, a, o.Status, status)
			}
		}
	}
	for _, a := range containers {
		if err := w.engine.cli.ContainerStart(t.Context(), ids[a], container.StartOptions{}); err != nil {
			t.Fatalf("start %s: %v", a, err)
		}
	}
	look("while they run", planner.StatusRunning)

	made, err := w.engine.cli.ContainerExecCreate(t.Context(), ids["invocation.one.agent"], container.ExecOptions{Cmd: []string{"/agent"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.cli.ContainerExecStart(t.Context(), made.ID, container.ExecStartOptions{Detach: true}); err != nil {
		t.Fatal(err)
	}
	if d := differences(c, c.Complete(w.observe(t.Context()))); len(d) != 1 || !strings.HasPrefix(d[0], "invocation.one.agent ExecIDs: want []") {
		t.Errorf("docker exec shows as %q", d)
	}

	for _, a := range containers {
		if err := w.engine.Kill(t.Context(), ids[a]); err != nil {
			t.Fatalf("end %s: %v", a, err)
		}
		if _, err := w.engine.Wait(t.Context(), ids[a]); err != nil {
			t.Fatalf("end %s: %v", a, err)
		}
	}
	look("after they have run", planner.StatusExited)
}

// Worktrees of every form, several invocations at once, and what they see of each other.
func TestCompileAndMakeSeveral(t *testing.T) {
	w := newWorld(t)
	root := filepath.Dir(w.repo)
	linked := filepath.Join(root, "linked")
	git(t, w.repo, "-c", "safe.directory=*", "worktree", "add", "-q", linked)
	// The second repository holds the configuration in a subdirectory, and the agent may write there.
	other := filepath.Join(root, "other")
	mkdir(t, filepath.Join(other, "agents"))
	git(t, other, "init", "-q")
	w.dir = filepath.Join(other, "agents")
	write(t, filepath.Join(w.dir, "prompt.md"), "Fix it.")
	for _, p := range []string{linked, other} {
		if err := os.Chown(p, 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	s := w.load(w.config("10.231.80.0/20", fmt.Sprintf(`
invocation "read" {
  for_each = { main = %q, linked = %q }
  vendor   = vendor.local
  phase    = phase.planning
  worktree = each.value
}
invocation "blind" {
  vendor   = vendor.local
  phase    = phase.questions
  worktree = %q
  git      = "none"
}
invocation "write" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = %q
  prompt   = file("prompt.md")
  limits {
    memory = "256MiB"
    cpus   = 0.5
    pids   = 64
    upload = "1MiB"

    download           = "1GiB"
    tunnels            = 8
    tunnels_per_second = 8
  }
}
`, w.repo, linked, w.repo, other)))
	c := w.compile(s)
	shim := c.desired[planner.AddrShim].(desiredShim).name() + " /.sandplan ro"
	for _, tt := range []struct {
		addr planner.Address
		want []string
	}{
		{`invocation.read["main"].agent`, []string{w.repo + " /work ro", w.repo + "/.git /work/.git ro", shim}},
		{`invocation.read["linked"].agent`, []string{linked + " /work ro", linked + "/.git /work/.git ro", w.repo + "/.git " + w.repo + "/.git ro", shim}},
		{"invocation.blind.agent", []string{w.repo + " /work ro", shim}},
		{"invocation.write.agent", []string{other + " /work rw", other + "/.git /work/.git ro", other + "/agents /work/agents ro", shim}},
	} {
		slices.Sort(tt.want)
		if got := mountsOf(c, tt.addr); !slices.Equal(got, tt.want) {
			t.Errorf("%s mounts %q\nwant %q", tt.addr, got, tt.want)
		}
	}
	if hidden := c.desired["invocation.blind.agent"].(containerSpec).host.Tmpfs["/work/.git"]; hidden == "" {
		t.Error(`git = "none" hides nothing`)
	}
	seen := map[string]bool{}
	for _, n := range c.Allocation().Networks {
		if seen[n.Prefix.String()] || seen[n.Uplink.String()] {
			t.Errorf("%v is given out twice", n)
		}
		seen[n.Prefix.String()], seen[n.Uplink.String()] = true, true
	}

	w.apply(c)
	snap := c.Complete(w.observe(t.Context()))
	for _, d := range differences(c, snap) {
		t.Error(d)
	}
	w.destroy(snap)
	left := w.observe(t.Context())
	for _, o := range append(left.Objects, left.Duplicates...) {
		t.Errorf("left after destroy: %s %s", o.Kind, o.Name)
	}
}

func mountsOf(c *Compiled, a planner.Address) []string {
	var out []string
	spec := c.desired[a].(containerSpec)
	for _, m := range spec.host.Mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		out = append(out, m.Source+" "+m.Target+" "+mode)
	}
	slices.Sort(out)
	return out
}
