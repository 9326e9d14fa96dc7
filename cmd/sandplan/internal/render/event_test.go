package render

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// longID is an engine ID that begins with the given hex digits.
func longID(start string) string { return start + strings.Repeat("0", 64-len(start)) }

func (r *Renderer) events(es ...applier.Event) string {
	var b strings.Builder
	for _, e := range es {
		b.WriteString(r.Event(e))
	}
	return b.String()
}

func began(a planner.Address, k planner.Kind, op planner.Op, id string) applier.Event {
	return applier.Event{Type: applier.EventStart, Addr: a, Kind: k, Op: op, ID: id}
}

func ended(a planner.Address, k planner.Kind, op planner.Op, id string, took time.Duration) applier.Event {
	return applier.Event{Type: applier.EventComplete, Addr: a, Kind: k, Op: op, ID: id, Elapsed: took}
}

func TestApply(t *testing.T) {
	e := readExample(t, "sandplan.hcl")
	r := e.renderer()
	image, agentImage := planner.AddrImage, planner.VendorImage("claude")
	net, proxy, agent := login.With(planner.PartNetwork), login.With(planner.PartProxy), login.With(planner.PartAgent)
	changes := []planner.Change{
		create(image, planner.KindImage, []planner.Field{headline("id", "sha256:5e2c1f9a7b30"), built("Os", "linux")}),
		create(planner.AddrUplink, planner.KindUplink, network("sandplan-codeboost-default-uplink-0d4e11", "10.213.0.0/22")),
		create(agentImage, planner.KindPinned, []planner.Field{headline("image", "codeboost/agent:2.1"), headline("digest", "sha256:91c0a1b2c3d4")}),
	}
	pl := &planner.Plan{Scope: codeboost, Changes: append(changes, e.createAuth()...)}
	const op = planner.OpCreate
	pulling := began(agentImage, planner.KindPinned, op, "")
	got := r.Plan(pl, PlanView{Free: 8123, Pool: "10.213.0.0/16"}) + r.Approval(pl) + "yes\n\n" +
		r.events(began(image, planner.KindImage, op, ""), pulling,
			ended(image, planner.KindImage, op, "sha256:"+longID("5e2c1f9a7b30"), 40*time.Millisecond),
			began(planner.AddrUplink, planner.KindUplink, op, ""), began(net, planner.KindNetwork, op, ""),
			ended(net, planner.KindNetwork, op, longID("7f00aa11bb22"), 80*time.Millisecond),
			ended(planner.AddrUplink, planner.KindUplink, op, longID("0d4e11c0ffee"), 90*time.Millisecond),
			began(proxy, planner.KindProxy, op, ""), ended(proxy, planner.KindProxy, op, longID("1be2ce3de4ef"), 20*time.Millisecond)) +
		r.Still(pulling, 10*time.Second) +
		r.events(ended(agentImage, planner.KindPinned, op, "sha256:"+longID("91c0a1b2c3d4"), 14*time.Second),
			began(agent, planner.KindAgent, op, ""), ended(agent, planner.KindAgent, op, longID("c0ffee123456"), 20*time.Millisecond)) +
		r.Applied(6, 0, 0) + "\n" +
		r.Outputs([]Output{{Name: "login_proxies", Value: cty.MapVal(map[string]cty.Value{"auth": cty.StringVal("10.213.4.10")})}})
	golden(t, filepath.Join(outputDir, "apply.txt"), got)
}

func TestDestroy(t *testing.T) {
	r := readExample(t, "sandplan.hcl").renderer()
	net := tokens.With(planner.PartNetwork)
	why := because(planner.ReasonDestroy, "because everything is to be destroyed")
	pl := &planner.Plan{Scope: codeboost, Destroy: true, Changes: []planner.Change{
		destroy(planner.AddrUplink, planner.KindUplink, network("sandplan-codeboost-default-uplink-0d4e11", "10.213.0.0/22"), why),
		destroy(net, planner.KindNetwork, network("sandplan-codeboost-default-login-tokens-1c77d0", "10.213.4.24/29"), why),
	}}
	const op = planner.OpDelete
	uplinkID, netID := longID("0d4e11c0ffee"), longID("1c77d0aa11bb")
	got := r.Plan(pl, PlanView{}) + r.Approval(pl) + "yes\n\n" + r.events(
		began(net, planner.KindNetwork, op, netID), ended(net, planner.KindNetwork, op, netID, 0),
		began(planner.AddrUplink, planner.KindUplink, op, uplinkID), ended(planner.AddrUplink, planner.KindUplink, op, uplinkID, 0)) +
		r.Destroyed(2)
	golden(t, filepath.Join(outputDir, "destroy.txt"), got)
}

func TestRun(t *testing.T) {
	r := &Renderer{}
	var b strings.Builder
	tell := func(e launch.Event) {
		e.Addr = login
		b.WriteString(r.RunEvent(e))
	}
	tell(launch.Event{Kind: launch.EventCompared, N: 11})
	tell(launch.Event{Kind: launch.EventProxyReady, Took: 1310 * time.Millisecond, Detail: "10.213.4.10:3128"})
	tell(launch.Event{Kind: launch.EventProven, Took: 2390 * time.Millisecond, N: 39})
	tell(launch.Event{Kind: launch.EventRunning, ID: longID("c0ffee123456")})
	b.WriteString("I have read the worktree; two remarks follow.\n")
	tell(launch.Event{Kind: launch.EventEnded, Took: 48210 * time.Millisecond})
	tell(launch.Event{Kind: launch.EventEgress, Egress: &launch.Egress{
		Allowed: map[string]int64{"api.anthropic.com:443": 3}, Refused: map[string]int64{"example.com:443": 1, "sandplan-refused.invalid:443": 1}}})
	tell(launch.Event{Kind: launch.EventArmed})
	b.WriteString(r.Ended(login, launch.Result{By: launch.ByAgent, RecordDir: ".sandplan/runs/20261129T175755Z-aeb833a8"}))
	golden(t, filepath.Join(outputDir, "run.txt"), b.String())
}

// TestEveryRunEventHasAText: an event without one would be a run that goes silent.
func TestEveryRunEventHasAText(t *testing.T) {
	for _, k := range []launch.EventKind{launch.EventWaiting, launch.EventConverging, launch.EventRearming, launch.EventCompared,
		launch.EventProxyReady, launch.EventProven, launch.EventRunning, launch.EventStopping, launch.EventEnded, launch.EventEgress,
		launch.EventArmed, launch.EventKept, launch.EventDisposed} {
		if text := (&Renderer{}).RunEvent(launch.Event{Kind: k, Addr: login, Egress: &launch.Egress{}}); !strings.HasPrefix(text, string(login)+": ") {
			t.Errorf("%s: %q", k, text)
		}
	}
}

func TestEgressText(t *testing.T) {
	many := launch.Egress{Refused: map[string]int64{}}
	for _, h := range "abcdefghijklm" {
		many.Refused[string(h)+".example:443"] = 1
	}
	for _, tt := range []struct {
		in           launch.Egress
		want, reason string
	}{
		{launch.Egress{}, "none", "nothing went through"},
		{launch.Egress{Allowed: map[string]int64{"b:443": 2, "a:443": 1}}, "1 tunnel to a:443, 2 tunnels to b:443 (the proof's own included)", "sorted"},
		{launch.Egress{Incomplete: "it was killed"}, "none; the log is incomplete: it was killed", "a gap is said"},
		{launch.Egress{Refused: map[string]int64{`"/"`: 1, launch.NoTarget: 2, "a:443": 3}}, `1 refused to "/", 2 refused that named no target, 3 refused to a:443 (the proof's own included)`,
			"what is no HOST:PORT is told as it came"},
		{launch.Egress{Refused: map[string]int64{`"%d"`: 1, launch.Unlisted: 2}}, `1 refused to "%d", 2 refused that are not listed (the proof's own included)`,
			"a flood of names hides nothing in silence"},
		{many, "1 refused to a.example:443, 1 refused to b.example:443, 1 refused to c.example:443, 1 refused to d.example:443, " +
			"1 refused to e.example:443, 1 refused to f.example:443, 1 refused to g.example:443, 1 refused to h.example:443, 5 more hosts (the proof's own included)", "a flood is one line"},
	} {
		if got := egressText(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

// TestDecided: the last line of a run that sandplan ended begins with its name, whatever the reason holds.
func TestDecided(t *testing.T) {
	d := &launch.Decision{Code: launch.CodeProof, Reason: "the sandbox is not as declared\nsandplan: all is well",
		Checks: []wire.Check{{Name: "net.direct", Detail: "1.1.1.1:443 answers"}}}
	got := (&Renderer{}).Ended(login, launch.Result{Code: 121, By: launch.BySandplan, Decision: d})
	lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
	last := lines[len(lines)-1]
	if want := `sandplan: the sandbox is not as declared\nsandplan: all is well (exit code 121)`; last != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
	if !strings.Contains(got, "failed: net.direct: 1.1.1.1:443 answers") {
		t.Errorf("the failed check is not told:\n%s", got)
	}
}
