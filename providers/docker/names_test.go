package docker

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestObjectName(t *testing.T) {
	s := planner.Scope{Project: "demo", Workspace: "default"}
	for _, tc := range []struct {
		reason string
		a      planner.Address
		words  string
	}{
		{"plain", "invocation.login.agent", "sandplan-demo-default-login-agent-"},
		{"a key", `invocation.login["Auth/v2"].agent`, "sandplan-demo-default-login-auth-v2-agent-"},
		{"a key of other letters", `invocation.login["äö"].agent`, "sandplan-demo-default-login-agent-"},
		{"a long key", planner.Address(`invocation.x["` + strings.Repeat("ab", 200) + `"].agent`), "sandplan-demo-default-x-ababab"},
		{"shared", planner.AddrUplink, "sandplan-demo-default-uplink-"},
	} {
		got := objectName(s, tc.a)
		if !strings.HasPrefix(got, tc.words) || !ownName.MatchString(got) || len(got) > 110 {
			t.Errorf("%s: %s", tc.reason, got)
		}
	}
	// Names whose words are the same differ by their hash.
	seen := map[string]string{}
	for _, n := range []string{
		objectName(s, `invocation.a["b"].agent`), objectName(s, `invocation.a-b.agent`), objectName(s, `invocation.a["B"].agent`),
		objectName(planner.Scope{Project: "demo-default", Workspace: "a"}, `invocation.b.agent`),
		objectName(s, `invocation.a-b.agent`, "salt"), objectName(s, `invocation.a-b.agent`, "sal", "t"),
	} {
		if seen[n] != "" {
			t.Errorf("%s is given twice", n)
		}
		seen[n] = n
	}
	if b := bridgeName(s, planner.AddrUplink); !ownBridge.MatchString(b) || len(b) != 15 {
		t.Errorf("bridge %s", b)
	}
}
