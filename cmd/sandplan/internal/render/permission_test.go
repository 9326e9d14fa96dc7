package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// allowedAuth are the permissions of the example: a new invocation, and one that may do more than before.
func allowedAuth() []permission.Report {
	set := permission.Set{
		Invocation: login, Vendor: "claude", Phase: "review", Tools: []string{"read", "list", "search"}, Image: "sha256:" + strings.Repeat("ab12", 16),
		User: "1000:1000", Read: []string{"/home/dev/codeboost/auth"}, Reach: []string{"api.anthropic.com:443"},
		Command: []string{"claude", "-p", "--tools", "Read,Glob,Grep"}, Runners: []permission.Runner{{Name: "test", Argv: []string{"npm", "test", "--", "--run"}}},
		Env: []string{"HOME", "PATH"}, Credentials: []string{"ANTHROPIC_API_KEY as ANTHROPIC_API_KEY"},
		Limits: permission.Limits{Memory: 2 << 30, NanoCPUs: 1500000000, PIDs: 256, Output: 10 << 20, Upload: 64 << 20, Download: permission.Unbounded, Tunnels: 256, TunnelsPerSecond: 100,
			Timeout: 30 * time.Minute},
	}
	was, now := set, set
	was.Invocation, now.Invocation = session, session
	now.Reach = append([]string{"statsig.anthropic.com:443"}, now.Reach...)
	was.Runners = nil
	now.Limits.Timeout = time.Hour
	return permission.Against([]permission.Set{was}, []permission.Set{set, now})
}

func TestPermissions(t *testing.T) {
	golden(t, outputDir+"/permissions.txt", (&Renderer{}).Permissions(allowedAuth()))
}

// TestEveryWideningHasARow: one that no row of the table is marked for would not be seen.
func TestEveryWideningHasARow(t *testing.T) {
	full := permission.Set{Invocation: "invocation.a", Image: "i", User: "u", Read: []string{"r"}, Write: []string{"w"}, Reach: []string{"h"}, Command: []string{"c"},
		Files: []string{"f"}, Runners: []permission.Runner{{Name: "n"}}, Env: []string{"E"}, Credentials: []string{"k"}, AnyPrompt: true,
		Limits: permission.Limits{Memory: 1, Output: 1, Upload: 1, Download: 1, Tunnels: 1, TunnelsPerSecond: 1, NanoCPUs: 1, PIDs: 1, Timeout: 1}}
	rows := map[string]bool{}
	for _, r := range permissionRows(full) {
		rows[r.name] = true
	}
	widened := permission.Widened(permission.Set{}, full)
	if len(widened) < 15 {
		t.Fatalf("from nothing to everything only %d things widen", len(widened))
	}
	for _, w := range widened {
		if !rows[permissionRow(w.What)] {
			t.Errorf("%s has no row", w.What)
		}
	}
}

// TestManyPermissions: of many, those that may do more come first, and the rest is counted.
func TestManyPermissions(t *testing.T) {
	var many []permission.Report
	for i := range manyAlike + 5 {
		many = append(many, permission.Report{New: true, Set: permission.Set{Invocation: planner.Address(fmt.Sprintf("invocation.x[%d]", i))}})
	}
	many[len(many)-1] = permission.Report{Set: permission.Set{Invocation: "invocation.wider"}, Widened: []permission.Widening{{What: "reach", To: "evil\x1b[2J:443", Because: "b"}}}
	p := &page{r: &Renderer{}}
	p.r.allowed(p, many)
	got := p.String()
	if !strings.Contains(got, "# invocation.wider") || strings.Index(got, "invocation.wider") > strings.Index(got, "invocation.x") {
		t.Errorf("what is wider is not told first:\n%s", got)
	}
	if !strings.Contains(got, "5 more invocations: sandplan show -permissions") || strings.Contains(got, "\x1b") {
		t.Errorf("got:\n%s", got)
	}
}
