package docker

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// TestObstacles holds what a plan says of worktrees against what is in them.
func TestObstacles(t *testing.T) {
	clean, bad := t.TempDir(), t.TempDir()
	if err := syscall.Mkfifo(bad+"/f\x1b[2J", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		trees    map[planner.Address]string
		leases   []planner.Lease
		severity hcl.DiagnosticSeverity
		want     []string // of the details
		reason   string
	}{
		"clean": {map[planner.Address]string{"invocation.a": clean}, nil, 0, nil, "nothing to say"},
		"FIFO": {map[planner.Address]string{"invocation.a": clean, "invocation.b": bad}, nil, hcl.DiagError,
			[]string{`"f\x1b[2J" (a FIFO)`, `rm "` + bad}, "named, quoted, and what to do"},
		"twice":        {map[planner.Address]string{"invocation.a": bad, "invocation.b": bad}, nil, hcl.DiagError, []string{"a FIFO"}, "each worktree once"},
		"running":      {map[planner.Address]string{"invocation.b": bad}, []planner.Lease{{Invocation: "invocation.b", Live: true}}, 0, nil, "its run watches it"},
		"dead":         {map[planner.Address]string{"invocation.b": bad}, []planner.Lease{{Invocation: "invocation.b"}}, hcl.DiagError, []string{"a FIFO"}, "nobody watches it any more"},
		"gone":         {map[planner.Address]string{"invocation.b": bad + "/none"}, nil, hcl.DiagError, []string{"no such file"}, "what cannot be seen is no good"},
		"another type": {map[planner.Address]string{"invocation.b": bad + "/f\x1b[2J"}, nil, hcl.DiagError, []string{"not a directory"}, "opening it must not block"},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := &Compiled{engine: &Engine{options: Options{Now: time.Now}}, binds: map[planner.Address][]bind{}, declared: map[planner.Address]hcl.Range{}}
			for inv, root := range c.trees {
				compiled.binds[inv.With(planner.PartAgent)] = []bind{{source: root, target: policy.Worktree}}
				compiled.declared[inv] = hcl.Range{Filename: "x.hcl"}
			}
			diags := compiled.Obstacles(t.Context(), planner.Snapshot{Leases: c.leases})
			if len(c.want) == 0 {
				if len(diags) > 0 {
					t.Fatalf("%v (%s)", diags, c.reason)
				}
				return
			}
			if len(diags) != 1 || diags[0].Severity != c.severity || diags[0].Subject == nil {
				t.Fatalf("%v (%s)", diags, c.reason)
			}
			for _, want := range c.want {
				if !strings.Contains(diags[0].Detail, want) {
					t.Errorf("%s: %q is missing (%s)", diags[0].Detail, want, c.reason)
				}
			}
		})
	}
}
