package render

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
)

func TestDrift(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	argv := e.attr("argv", "Config.Cmd", `argv  = ["npm", "test", "--", "--run"]`, nil, planner.UnitNone)
	fs := append(e.drift(planner.FindingDrift),
		planner.Finding{Kind: planner.FindingPending, Addr: session.Runner("test"), Decl: argv.At(), Mismatch: &planner.Mismatch{
			Field: argv, Want: planner.JSON([]string{"npm", "test", "--", "--run"}), Got: planner.JSON([]string{"npm", "test"})}},
		planner.Finding{Kind: planner.FindingPending, Addr: login, Decl: e.at(`invocation "login" {`), Text: "is declared and not there yet"})
	titles := map[planner.Address]string{login: title}
	for _, part := range []planner.Address{session.With(planner.PartNetwork), session.With(planner.PartAgent), session.Runner("test")} {
		titles[part] = title
	}
	golden(t, filepath.Join(outputDir, "drift.txt"), e.renderer().Drift(codeboost, 9, fs, titles))
}

func TestDriftClean(t *testing.T) {
	for objects, want := range map[int]string{
		9: "No drift. The 9 objects of codeboost/default are as declared.\n",
		1: "No drift. The one object of codeboost/default is as declared.\n",
		0: "No drift. Nothing of codeboost/default is on the engine.\n",
	} {
		if got := (&Renderer{}).Drift(codeboost, objects, nil, nil); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDriftPendingOnly: exit code 3 must not read like drift.
func TestDriftPendingOnly(t *testing.T) {
	fs := []planner.Finding{{Kind: planner.FindingPending, Addr: login, Text: "is declared and not there yet"}}
	got := (&Renderer{}).Drift(codeboost, 0, fs, nil)
	if !strings.Contains(got, "No drift: 1 object is pending.") {
		t.Errorf("rendered:\n%s", got)
	}
}

// TestRefusalBeforeApply: what is missing is told once for each block that declares it, and not object by object.
func TestRefusalBeforeApply(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	var fs []planner.Finding
	for _, a := range []planner.Address{planner.AddrShim, planner.AddrUplink} {
		fs = append(fs, planner.Finding{Kind: planner.FindingDrift, Addr: a, Decl: e.at("sandplan {"), Text: "is missing"})
	}
	for _, part := range []string{planner.PartNetwork, planner.PartProxy} {
		fs = append(fs, planner.Finding{Kind: planner.FindingDrift, Addr: login.With(part), Decl: e.at(`invocation "login" {`), Text: "is missing"})
	}
	fs = append(fs, planner.Finding{Kind: planner.FindingDrift, Addr: login.With(planner.PartAgent), Decl: e.at(`invocation "login" {`), Text: "was started by somebody"})
	got := e.renderer().Refusal(login, fs)
	for _, want := range []string{
		"5 findings\non 5 objects", "\nsandplan.shim,\nsandplan.uplink: each is missing\n", "\n" + string(login) + ".network,\n" + string(login) + ".proxy: each is missing\n",
		"\n" + string(login) + ".agent: it was started by somebody\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "  on sandplan.hcl line"); n != 3 {
		t.Errorf("%d places are shown, want one for each of three:\n%s", n, got)
	}
}

func TestRefusal(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	r := e.renderer()
	refused := &launch.Decision{Code: launch.CodeRefused, Reason: "the engine differs from the declaration"}
	golden(t, filepath.Join(outputDir, "refusal.txt"), r.Refusal(session, e.drift(planner.FindingDrift))+
		r.Ended(session, launch.Result{Code: 125, By: launch.BySandplan, Decision: refused}))
}

// TestFindingOfLongValue: two command lines of a thousand characters are shown by what differs.
func TestFindingOfLongValue(t *testing.T) {
	long := []string{"egress", `{"hosts":["api.anthropic.com:443"],"listen":"10.213.4.2:3128","pad":"` + strings.Repeat("x", 400) + `"}`}
	other := []string{"egress", strings.Replace(long[1], "443", "444", 1)}
	f := planner.Finding{Kind: planner.FindingDrift, Addr: login.With(planner.PartProxy), Mismatch: &planner.Mismatch{
		Field: planner.Field{Path: "Config.Cmd"}, Want: planner.JSON(long), Got: planner.JSON(other)}}
	got := (&Renderer{}).Refusal(login, []planner.Finding{f})
	if strings.Contains(got, "xxx") || !strings.Contains(got, `"api.anthropic.com:443"`) || !strings.Contains(got, `"api.anthropic.com:444"`) {
		t.Errorf("rendered:\n%s", got)
	}
}

// TestFindingsOfOneAttribute: two fields that one attribute sets, and that read the same, are told once.
func TestFindingsOfOneAttribute(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	memory := e.drift(planner.FindingDrift)[1]
	swap := *memory.Mismatch
	swap.Field.Path = "HostConfig.MemorySwap"
	other := swap
	other.Field.Path, other.Got = "HostConfig.MemoryReservation", planner.JSON(1)
	fs := []planner.Finding{memory}
	for _, m := range []planner.Mismatch{swap, other} {
		f := memory
		f.Mismatch = &m
		fs = append(fs, f)
	}
	got := e.renderer().Refusal(session, fs)
	for _, want := range []string{"2 findings\non 1 object", "limits.memory (HostConfig.Memory, HostConfig.MemorySwap)\n", "limits.memory (HostConfig.MemoryReservation)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestStoppedForSeveralThings: each thing that happened has a line of its own.
func TestStoppedForSeveralThings(t *testing.T) {
	one := planner.Finding{Kind: planner.FindingDrift, Addr: login, Text: "left a FIFO"}
	two := planner.Finding{Kind: planner.FindingDrift, Addr: login, Text: "left a worktree that could not be looked over"}
	if got, want := (&Renderer{}).Stopped(login, []planner.Finding{one, two}), "\n"+string(login)+" has changed while it ran:\n"+
		"  - it left a FIFO\n  - it left a worktree that could not be looked over\n\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := (&Renderer{}).Stopped(login, []planner.Finding{one}), "\n"+string(login)+" has changed while it ran: it left a FIFO\n\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
