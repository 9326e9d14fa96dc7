package docker

import (
	"slices"
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
)

// TestEveryAttributeIsJudged: whatever a user can declare of an invocation takes part in the question whether its
// agent may do more. An attribute may stand in several rows; one of them has to be read.
func TestEveryAttributeIsJudged(t *testing.T) {
	rs, diags := onPaperIn(t, t.TempDir(), paperConfig, paperLock)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	judged := map[string]bool{}
	for i, r := range rs {
		for j, f := range r.Fields {
			if f.Attr != "" {
				judged[f.Attr] = judged[f.Attr] || isJudged(rs, i, j)
			}
		}
	}
	for _, attr := range sortedKeys(judged) {
		if !judged[attr] {
			t.Errorf("no value of %s counts as more", attr)
		}
	}
	for _, attr := range []string{"worktree", "git", "user", "image", "env", "prompt", "credential", "hosts", "dns", "timeout", "argv",
		"limits.memory", "limits.cpus", "limits.pids", "limits.output", "limits.upload",
		"limits.download", "limits.tunnels", "limits.tunnels_per_second"} {
		if _, known := judged[attr]; !known {
			t.Errorf("no row has the attribute %s: this test shows nothing of it", attr)
		}
	}
}

// isJudged reports whether another value of one row is more, or less, than the one that it has.
func isJudged(rs []planner.Resource, resource, field int) bool {
	base := Permissions(Wanted(rs))
	for _, v := range []planner.Value{planner.JSON("x"), planner.JSON(1 << 40), planner.JSON([]string{"x"}), planner.JSON([]any{map[string]any{"name": "x"}}), planner.JSON(nil)} {
		changed := slices.Clone(rs)
		changed[resource].Fields = slices.Clone(rs[resource].Fields)
		changed[resource].Fields[field].Value = v
		now := Permissions(Wanted(changed))
		if permission.Wider(permission.Against(base, now)) || permission.Wider(permission.Against(now, base)) {
			return true
		}
	}
	return false
}
