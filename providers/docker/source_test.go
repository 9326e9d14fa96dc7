package docker

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner/policy"
)

// TestSourceOf: two sources are the same only where they are, and none can be read from what stands for it.
func TestSourceOf(t *testing.T) {
	type source struct{ env, file, home string }
	of := func(s source) string {
		return sourceOf(policy.Credential{Name: "token", SourceEnv: s.env, SourceFile: s.file}, s.home)
	}
	for _, tt := range []struct {
		a, b   source
		same   bool
		reason string
	}{
		{source{env: "TOKEN"}, source{env: "TOKEN"}, true, "the same variable"},
		{source{env: "TOKEN"}, source{env: "AWS_SECRET_ACCESS_KEY"}, false, "another variable"},
		{source{env: "TOKEN"}, source{file: "TOKEN"}, false, "a file of the same name"},
		{source{file: "/a/ci/token", home: "/a"}, source{file: "/b/ci/token", home: "/b"}, true, "the same file of two checkouts"},
		{source{file: "/a/ci/token", home: "/a"}, source{file: "/a/token", home: "/a"}, false, "another file of the same checkout"},
		{source{file: "/root/.ssh/id", home: "/a"}, source{file: "/root/.ssh/id", home: "/b"}, true, "the same file outside of both"},
		{source{file: "/ab/token", home: "/a"}, source{file: "/b/token", home: "/a"}, false, "a directory whose name only begins alike"},
	} {
		a, b := of(tt.a), of(tt.b)
		if (a == b) != tt.same || a == "" || b == "" {
			t.Errorf("%s: %s and %s, want the same: %v", tt.reason, a, b, tt.same)
		}
		for _, secret := range []string{"TOKEN", "AWS", "ssh", "token", "ci"} {
			if strings.Contains(a+b, secret) {
				t.Errorf("%s: %s and %s show %s", tt.reason, a, b, secret)
			}
		}
	}
	if got := of(source{}); got != "" {
		t.Errorf("a credential without a source stands for %q", got)
	}
}
