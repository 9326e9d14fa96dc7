package drift_test

import (
	"strings"
	"testing"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

func TestAudit(t *testing.T) {
	const path = "HostConfig.Privileged"
	agent := login.With("agent")
	mismatch := func(kind planner.FindingKind, a planner.Address) planner.Finding {
		return planner.Finding{Kind: kind, Addr: a, Mismatch: &planner.Mismatch{Field: planner.Field{Path: path, Attr: "privileged"}}}
	}
	extra := planner.Finding{Kind: planner.FindingDrift, Addr: agent, Extra: &planner.Extra{Path: "Mounts./etc"}}
	whole := planner.Finding{Kind: planner.FindingDrift, Addr: login.With("network"), Text: "is missing"}
	pending := mismatch(planner.FindingPending, agent)
	drifted := mismatch(planner.FindingDrift, agent)
	conflict := planner.Finding{Kind: planner.FindingConflict, Addr: login.With("network"), Text: "is taken"}
	for _, c := range []struct {
		name, reason string
		findings     []planner.Finding
		ignore       []string
		code         int
		counted      int
	}{
		{name: "clean", reason: "nothing found", code: drift.CodeClean},
		{name: "pending", reason: "only pending has a code of its own", findings: []planner.Finding{pending}, code: drift.CodePending, counted: 1},
		{name: "drift", reason: "drift wins over pending", findings: []planner.Finding{drifted, pending}, code: drift.CodeDrift, counted: 2},
		{name: "conflict", reason: "a conflict counts as drift does", findings: []planner.Finding{conflict}, code: drift.CodeDrift, counted: 1},
		{name: "ignored", reason: "by the object's address and the path", findings: []planner.Finding{drifted, pending},
			ignore: []string{"invocation.login.agent." + path}, code: drift.CodeClean},
		{name: "ignored by attribute", reason: "or by the user's attribute", findings: []planner.Finding{drifted},
			ignore: []string{"invocation.login.agent.privileged"}, code: drift.CodeClean},
		{name: "ignored by invocation", reason: "an address stands for all that it contains", findings: []planner.Finding{drifted},
			ignore: []string{"invocation.login." + path}, code: drift.CodeClean},
		{name: "ignored extra", reason: "an extra has a path, too", findings: []planner.Finding{extra},
			ignore: []string{"invocation.login.agent.Mounts./etc"}, code: drift.CodeClean},
		{name: "other field", reason: "a path is exact, not a prefix", findings: []planner.Finding{drifted},
			ignore: []string{"invocation.login.agent.HostConfig"}, code: drift.CodeDrift, counted: 1},
		{name: "other object", reason: "so is the address", findings: []planner.Finding{drifted},
			ignore: []string{"invocation.login.proxy." + path}, code: drift.CodeDrift, counted: 1},
		{name: "whole object", reason: "that something is missing cannot be ignored by any field", findings: []planner.Finding{whole, conflict},
			ignore: []string{"invocation.login.network.Name"}, code: drift.CodeDrift, counted: 2},
	} {
		var ignore []drift.Ignore
		for _, s := range c.ignore {
			i, err := drift.ParseIgnore(s)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			ignore = append(ignore, i)
		}
		r := drift.Audit(&planner.Plan{Findings: c.findings}, ignore...)
		if r.Code() != c.code || len(r.Findings) != c.counted {
			t.Errorf("%s (%s): code %d with %d findings, want %d with %d", c.name, c.reason, r.Code(), len(r.Findings), c.code, c.counted)
		}
		if len(r.Findings)+len(r.Ignored) != len(c.findings) {
			t.Errorf("%s: a finding got lost", c.name)
		}
		if r.Conflicts+r.Drift+r.Pending != len(r.Findings) {
			t.Errorf("%s: the counts do not add up: %+v", c.name, r)
		}
	}
}

func TestParseIgnore(t *testing.T) {
	for in, want := range map[string]drift.Ignore{
		"invocation.login.agent.HostConfig.Memory":           {Addr: "invocation.login.agent", Path: "HostConfig.Memory"},
		`invocation.x["a.b"].proxy.Config.Labels["a.b"]`:     {Addr: `invocation.x["a.b"].proxy`, Path: `Config.Labels["a.b"]`},
		"sandplan.uplink.Options.com.docker.network.bridge":  {Addr: "sandplan.uplink", Path: "Options.com.docker.network.bridge"},
		`invocation.login.runner["test"].HostConfig.CapDrop`: {Addr: `invocation.login.runner["test"]`, Path: "HostConfig.CapDrop"},
	} {
		if got, err := drift.ParseIgnore(in); err != nil || got != want {
			t.Errorf("ParseIgnore(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "HostConfig.Memory", "invocation.login.agent", "invocation.login.agent.", ".x", "vendor.claude.image"} {
		if got, err := drift.ParseIgnore(in); err == nil || !strings.Contains(err.Error(), "ADDRESS.FIELD") {
			t.Errorf("ParseIgnore(%q) = %+v, %v; want an error that shows the form", in, got, err)
		}
	}
}

// TestUnreadable: an object that could not be looked at is an error, which nothing hides and nobody can ignore.
func TestUnreadable(t *testing.T) {
	broken := planner.Finding{Kind: planner.FindingDrift, Addr: "invocation.a.agent", Extra: &planner.Extra{Path: planner.PathUnreadable, Detail: "it cannot be looked at"}}
	label := planner.Finding{Kind: planner.FindingDrift, Addr: "invocation.a.agent", Text: "has a label that cannot be read"}
	pending := planner.Finding{Kind: planner.FindingPending, Addr: "invocation.b", Text: "does not exist yet"}
	other := planner.Finding{Kind: planner.FindingDrift, Addr: "invocation.b.agent", Text: "was started outside a run"}
	ignore, err := drift.ParseIgnore("invocation.a.agent." + planner.PathUnreadable)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		findings []planner.Finding
		code     int
		reason   string
	}{
		{[]planner.Finding{broken, label}, drift.CodeError, "what follows from it is no drift"},
		{[]planner.Finding{broken, label, pending}, drift.CodeError, "what is pending does not hide it"},
		{[]planner.Finding{broken, label, other}, drift.CodeDrift, "drift elsewhere is drift"},
	} {
		if got := drift.Audit(&planner.Plan{Findings: tt.findings}, ignore); got.Code() != tt.code || len(got.Ignored) != 0 {
			t.Errorf("%s: code %d, %d ignored; want %d and none", tt.reason, got.Code(), len(got.Ignored), tt.code)
		}
	}
}
