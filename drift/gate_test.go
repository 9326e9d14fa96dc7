package drift_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/planner"
)

const (
	login = planner.Address("invocation.login")
	other = planner.Address("invocation.other")
)

// wanted is two invocations of two vendors, with one row each that a tampering can change.
func wanted() []planner.Resource {
	out := []planner.Resource{
		resource(planner.AddrUplink, planner.KindUplink),
		resource(planner.AddrShim, planner.KindShim),
		resource(planner.VendorImage("login"), planner.KindPinned),
		resource(planner.VendorImage("other"), planner.KindPinned),
	}
	for _, a := range []planner.Address{login, other} {
		out = append(out,
			resource(a.With("network"), planner.KindNetwork),
			resource(a.With("proxy"), planner.KindProxy, planner.AddrUplink, a.With("network")),
			resource(a.With("agent"), planner.KindAgent, planner.AddrShim, a.With("network"), a.With("proxy"),
				planner.VendorImage(strings.TrimPrefix(string(a), "invocation."))),
			resource(a.Runner("test"), planner.KindRunner, planner.AddrShim),
		)
	}
	return out
}

func resource(a planner.Address, kind planner.Kind, deps ...planner.Address) planner.Resource {
	r := planner.Resource{Addr: a, Kind: kind, DependsOn: deps, Decl: hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 7}},
		Fields: []planner.Field{{Path: "HostConfig.Privileged", Value: planner.JSON(false)}, {Path: "State", Class: planner.ClassIgnored, Reason: "a test"}}}
	r.Digest = planner.Digest(r.Fields)
	return r
}

// made is a snapshot of an engine that has exactly that.
func made() *planner.Snapshot {
	s := &planner.Snapshot{}
	for _, r := range wanted() {
		o := planner.Object{Addr: r.Addr, Kind: r.Kind, ID: "id-" + string(r.Addr), Name: "n", Schema: planner.Schema, Digest: r.Digest,
			Declared: slices.Clone(r.Fields), Observed: slices.Clone(r.Fields), DependsOn: r.DependsOn}
		switch r.Kind {
		case planner.KindAgent, planner.KindProxy, planner.KindRunner:
			o.Status = planner.StatusCreated
		case planner.KindPinned:
			o.Schema, o.Digest, o.Declared = "", "", nil
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

func at(s *planner.Snapshot, a planner.Address) *planner.Object {
	for i := range s.Objects {
		if s.Objects[i].Addr == a {
			return &s.Objects[i]
		}
	}
	panic("nothing at " + string(a))
}

func remove(s *planner.Snapshot, as ...planner.Address) {
	s.Objects = slices.DeleteFunc(s.Objects, func(o planner.Object) bool { return slices.Contains(as, o.Addr) })
}

// privileged is the tampering of these tests.
func privileged(fields []planner.Field) { fields[0].Value = planner.JSON(true) }

func lease(s *planner.Snapshot, a planner.Address, id string, live bool) {
	s.Leases = append(s.Leases, planner.Lease{Invocation: a, Live: live,
		Info: planner.LockInfo{ID: id, Operation: "run", Who: "me@here"}})
}

func verdict(v drift.Verdict) string {
	var b strings.Builder
	for _, f := range v.Refusals {
		fmt.Fprintf(&b, "%s ", f.Addr)
		if m := f.Mismatch; m != nil {
			fmt.Fprintf(&b, "%s: want %s, got %s\n", m.Field.Path, m.Want.Text(), m.Got.Text())
		} else {
			b.WriteString(f.Text + "\n")
		}
	}
	for _, a := range v.Rearm {
		fmt.Fprintf(&b, "rearm %s\n", a)
	}
	return b.String()
}

func TestGate(t *testing.T) {
	agent, proxy, network, runner := login.With("agent"), login.With("proxy"), login.With("network"), login.Runner("test")
	run := drift.Look{Run: []planner.Address{login}, Lease: "mine"}
	dispatch := drift.Look{Run: []planner.Address{runner}, Lease: "mine"}
	cases := []struct {
		name, reason string
		look         drift.Look
		want         func([]planner.Resource) []planner.Resource
		have         func(*planner.Snapshot)
		says         []string
	}{
		{name: "equal", reason: "everything is as declared: the start is allowed", look: run, have: func(s *planner.Snapshot) { lease(s, login, "mine", true) }},
		{name: "tampered", reason: "one field of the agent", look: run, have: func(s *planner.Snapshot) { privileged(at(s, agent).Observed) },
			says: []string{"invocation.login.agent HostConfig.Privileged: want false, got true"}},
		{name: "label forged with it", reason: "a label that says what was observed, digest and all, is not what was declared",
			look: run, have: func(s *planner.Snapshot) {
				o := at(s, agent)
				privileged(o.Observed)
				privileged(o.Declared)
				o.Digest = planner.Digest(o.Declared)
			},
			says: []string{"invocation.login.agent HostConfig.Privileged: want false, got true"}},
		{name: "HCL changed, not applied", reason: "the old declaration is no excuse: the proxy of another policy is not adopted", look: run,
			want: func(rs []planner.Resource) []planner.Resource {
				for i := range rs {
					if rs[i].Addr == proxy {
						rs[i].Fields = []planner.Field{{Path: "HostConfig.Privileged", Value: planner.JSON(nil)}, rs[i].Fields[1]}
						rs[i].Digest = planner.Digest(rs[i].Fields)
					}
				}
				return rs
			},
			says: []string{"invocation.login.proxy HostConfig.Privileged: want null, got false"}},
		{name: "digest forged", reason: "nothing hangs on the digest, but whoever forged it forged the object", look: run,
			have: func(s *planner.Snapshot) { at(s, agent).Digest = "0000" },
			says: []string{"invocation.login.agent has a label that does not match its own digest"}},
		{name: "label unreadable", reason: "the same", look: run, have: func(s *planner.Snapshot) { at(s, network).Declared = nil },
			says: []string{"invocation.login.network has a label that cannot be read"}},
		{name: "other schema", reason: "made by rows that this version does not know", look: run, have: func(s *planner.Snapshot) { at(s, network).Schema = "0" },
			says: []string{"invocation.login.network was made by another version of sandplan; `sandplan apply` replaces it"}},
		{name: "digest claimed", reason: "an object that carries the wanted digest and other rows: rows are compared, not digests", look: run,
			have: func(s *planner.Snapshot) {
				o := at(s, agent)
				privileged(o.Observed)
				o.Declared = nil
			},
			says: []string{"invocation.login.agent has a label that cannot be read", "invocation.login.agent HostConfig.Privileged: want false, got true"}},
		{name: "extra endpoint", reason: "an endpoint more, every row equal", look: run,
			have: func(s *planner.Snapshot) {
				at(s, agent).Extra = []planner.Extra{{Path: "NetworkSettings.Networks.bridge", Detail: "172.17.0.2"}}
			},
			says: []string{"invocation.login.agent has NetworkSettings.Networks.bridge, which nothing declares: 172.17.0.2"}},
		{name: "row missing", reason: "a field that the engine does not show is not equal to anything", look: run,
			have: func(s *planner.Snapshot) { o := at(s, agent); o.Observed = o.Observed[1:] },
			says: []string{"invocation.login.agent HostConfig.Privileged: want false, got "}},
		{name: "row ignored", reason: "an observed row that calls itself ignored is compared all the same", look: run,
			have: func(s *planner.Snapshot) {
				o := at(s, agent)
				privileged(o.Observed)
				o.Observed[0].Class = planner.ClassIgnored
			},
			says: []string{"invocation.login.agent HostConfig.Privileged: want false, got true"}},
		{name: "row twice", reason: "a good row does not hide a bad one of the same path", look: run,
			have: func(s *planner.Snapshot) {
				o := at(s, agent)
				bad := o.Observed[0]
				bad.Value = planner.JSON(true)
				o.Observed = slices.Insert(o.Observed, 1, bad)
			},
			says: []string{"invocation.login.agent HostConfig.Privileged: want , got true"}},
		{name: "wrong kind", reason: "a runner that says it is the agent", look: run,
			have: func(s *planner.Snapshot) { at(s, agent).Kind = planner.KindRunner },
			says: []string{"invocation.login.agent is labelled as runner, not as agent"}},
		{name: "missing part", reason: "the network is gone", look: run, have: func(s *planner.Snapshot) { remove(s, network) },
			says: []string{"invocation.login.network is missing; `sandplan apply` creates it"}},
		{name: "agent absent, proxy there", reason: "absent excuses others, not what is to run", look: run, have: func(s *planner.Snapshot) { remove(s, agent) },
			says: []string{"invocation.login.agent is missing; `sandplan apply` creates it"}},
		{name: "nothing there", reason: "run before the first apply", look: run, have: func(s *planner.Snapshot) { s.Objects = nil },
			says: []string{
				"sandplan.shim is missing; `sandplan apply` creates it",
				"sandplan.uplink is missing; `sandplan apply` creates it",
				"vendor.login.image is missing; `sandplan apply` creates it",
				"invocation.login.network is missing; `sandplan apply` creates it",
				"invocation.login.proxy is missing; `sandplan apply` creates it",
				"invocation.login.agent is missing; `sandplan apply` creates it",
				`invocation.login.runner["test"] is missing; ` + "`sandplan apply` creates it",
			}},
		{name: "image missing", reason: "the image that it is made from", look: run, have: func(s *planner.Snapshot) { remove(s, planner.VendorImage("login")) },
			says: []string{"vendor.login.image is missing; `sandplan apply` creates it"}},
		{name: "other image missing", reason: "an image that only an absent invocation needs", look: run,
			have: func(s *planner.Snapshot) { remove(s, planner.VendorImage("other"), other.With("agent")) }},
		{name: "duplicate", reason: "two objects at one address: which is which cannot be told", look: run,
			have: func(s *planner.Snapshot) {
				twin := *at(s, proxy)
				twin.ID = "twin"
				s.Duplicates = append(s.Duplicates, twin)
			},
			says: []string{"invocation.login.proxy is there twice: n (twin) carries its labels as well"}},
		{name: "duplicate among the objects", reason: "even if the snapshot does not call it one", look: run,
			have: func(s *planner.Snapshot) {
				twin := *at(s, proxy)
				twin.ID = "twin"
				s.Objects = append(s.Objects, twin)
			},
			says: []string{"invocation.login.proxy is there twice: n (twin) carries its labels as well"}},
		{name: "duplicate elsewhere", reason: "no state of another invocation explains a second object", look: run,
			have: func(s *planner.Snapshot) {
				twin := *at(s, other.With("proxy"))
				twin.ID = "twin"
				remove(s, other.With("agent"))
				s.Duplicates = append(s.Duplicates, twin)
			},
			says: []string{"invocation.other.proxy is there twice: n (twin) carries its labels as well"}},
		{name: "leftover", reason: "our labels on something that has no place", look: run,
			have: func(s *planner.Snapshot) {
				s.Duplicates = append(s.Duplicates, planner.Object{Addr: "sandplan.unknown", Name: "x", ID: "y"})
			},
			says: []string{"sandplan.unknown is the label of x (y), which has no place in the scope"}},
		{name: "unwanted", reason: "our labels on something that nobody wants", look: run,
			want: func(rs []planner.Resource) []planner.Resource {
				return slices.DeleteFunc(rs, func(r planner.Resource) bool { return r.Addr.Invocation() == other })
			},
			says: []string{
				"invocation.other.network is not wanted by the configuration; `sandplan apply` removes it",
				"invocation.other.proxy is not wanted by the configuration; `sandplan apply` removes it",
				"invocation.other.agent is not wanted by the configuration; `sandplan apply` removes it",
				`invocation.other.runner["test"] is not wanted by the configuration; ` + "`sandplan apply` removes it",
			}},
		{name: "conflict", reason: "something foreign in the place of a part", look: run,
			have: func(s *planner.Snapshot) {
				s.Conflicts = append(s.Conflicts, planner.Conflict{Addr: network, Detail: "is taken by network n"})
			},
			says: []string{"invocation.login.network is taken by network n"}},
		{name: "not configured", reason: "a name with a typing error", look: drift.Look{Run: []planner.Address{"invocation.logn"}},
			says: []string{"invocation.logn is not in the configuration"}},

		{name: "agent running", reason: "started by hand, without any lease", look: run, have: func(s *planner.Snapshot) { at(s, agent).Status = planner.StatusRunning },
			says: []string{"invocation.login.agent was started outside a run"}},
		{name: "proxy running, dead lease", reason: "its run was killed", look: run, have: func(s *planner.Snapshot) {
			at(s, proxy).Status = planner.StatusRunning
			lease(s, login, "theirs", false)
		},
			says: []string{"invocation.login.proxy was started outside a run"}},
		{name: "running elsewhere by hand", reason: "a stray of another invocation is judged: it is nobody's run", look: run,
			have: func(s *planner.Snapshot) { at(s, other.With("agent")).Status = planner.StatusRunning },
			says: []string{"invocation.other.agent was started outside a run"}},
		{name: "stray proxy of an absent invocation", reason: "absent is no excuse for what runs on the shared uplink", look: run,
			have: func(s *planner.Snapshot) {
				remove(s, other.With("agent"))
				at(s, other.With("proxy")).Status = planner.StatusRunning
			},
			says: []string{
				"invocation.other.proxy was started outside a run",
				"invocation.other.agent is missing; `sandplan apply` creates it",
			}},
		{name: "somebody else's run", reason: "the invocation is under another live lease", look: run, have: func(s *planner.Snapshot) {
			at(s, agent).Status, at(s, proxy).Status = planner.StatusRunning, planner.StatusRunning
			lease(s, login, "theirs", true)
		},
			says: []string{
				"invocation.login is running: its lease is held by me@here (run, lease theirs)",
				"invocation.login.proxy was started outside a run",
				"invocation.login.agent was started outside a run",
			}},
		{name: "other tampered", reason: "everything in the scope is judged", look: run, have: func(s *planner.Snapshot) { privileged(at(s, other.With("agent")).Observed) },
			says: []string{"invocation.other.agent HostConfig.Privileged: want false, got true"}},
		{name: "other running and tampered", reason: "its own watch judges it", look: run, have: func(s *planner.Snapshot) {
			privileged(at(s, other.With("agent")).Observed)
			lease(s, other, "theirs", true)
		}},
		{name: "other spent and tampered", reason: "what has run is replaced before it runs again", look: run, have: func(s *planner.Snapshot) {
			privileged(at(s, other.With("agent")).Observed)
			at(s, other.With("agent")).Status = planner.StatusExited
		}},
		{name: "other absent", reason: "not made yet", look: run, have: func(s *planner.Snapshot) {
			remove(s, other.With("agent"), other.With("proxy"), other.With("network"), other.Runner("test"))
		}},

		{name: "spent", reason: "equal apart from having run: arm again, nothing refused", look: run,
			have: func(s *planner.Snapshot) {
				at(s, agent).Status, at(s, proxy).Status = planner.StatusExited, planner.StatusExited
				lease(s, login, "mine", true)
			},
			says: []string{"rearm invocation.login.proxy", "rearm invocation.login.agent"}},
		{name: "spent and tampered", reason: "having run excuses nothing", look: run,
			have: func(s *planner.Snapshot) {
				at(s, agent).Status = planner.StatusExited
				privileged(at(s, proxy).Observed)
			},
			says: []string{"invocation.login.proxy HostConfig.Privileged: want false, got true", "rearm invocation.login.agent"}},
		{name: "shim has run", reason: "what is shared is never armed again by a run", look: run,
			have: func(s *planner.Snapshot) { at(s, planner.AddrShim).Status = planner.StatusExited },
			says: []string{"sandplan.shim was started, and nothing ever starts it"}},
		{name: "dispatch", reason: "a runner's start needs its whole invocation right", look: dispatch,
			have: func(s *planner.Snapshot) { privileged(at(s, agent).Observed) },
			says: []string{"invocation.login.agent HostConfig.Privileged: want false, got true"}},
		{name: "dispatch beside a kept agent", reason: "an agent that was kept as it ended is not armed for a runner's sake", look: dispatch,
			have: func(s *planner.Snapshot) { at(s, agent).Status = planner.StatusExited }},
		{name: "dispatch again", reason: "the runner itself has run", look: dispatch,
			have: func(s *planner.Snapshot) { at(s, runner).Status = planner.StatusExited },
			says: []string{`rearm invocation.login.runner["test"]`}},

		{name: "proxy started", reason: "second look: the proxy runs because the caller started it",
			look: drift.Look{Run: run.Run, Started: []planner.Address{proxy}, Lease: "mine"},
			have: func(s *planner.Snapshot) {
				at(s, proxy).Status = planner.StatusRunning
				lease(s, login, "mine", true)
			}},
		{name: "proxy gone again", reason: "the caller started it and it does not run any more",
			look: drift.Look{Run: run.Run, Started: []planner.Address{proxy}},
			have: func(s *planner.Snapshot) { at(s, proxy).Status = planner.StatusExited },
			says: []string{"invocation.login.proxy has stopped running"}},
		{name: "agent started too early", reason: "between the looks somebody started the agent",
			look: drift.Look{Run: run.Run, Started: []planner.Address{proxy}},
			have: func(s *planner.Snapshot) {
				at(s, proxy).Status, at(s, agent).Status = planner.StatusRunning, planner.StatusRunning
			},
			says: []string{"invocation.login.agent was started outside a run"}},
		{name: "only", reason: "a look at some objects says nothing of the others",
			look: drift.Look{Run: run.Run, Only: []planner.Address{login.With("agent"), proxy, network, planner.AddrUplink}},
			have: func(s *planner.Snapshot) {
				s.Objects = slices.DeleteFunc(s.Objects, func(o planner.Object) bool {
					return o.Addr.Invocation() == other || o.Kind == planner.KindShim || o.Kind == planner.KindPinned || o.Kind == planner.KindRunner
				})
				privileged(at(s, planner.AddrUplink).Observed)
			},
			says: []string{"sandplan.uplink HostConfig.Privileged: want false, got true"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.reason == "" {
				t.Fatal("a case without a reason")
			}
			want, s := wanted(), made()
			if c.want != nil {
				want = c.want(want)
			}
			if c.have != nil {
				c.have(s)
			}
			v := drift.Gate(want, *s, c.look)
			var says string
			if len(c.says) > 0 {
				says = strings.Join(c.says, "\n") + "\n"
			}
			if d := cmp.Diff(says, verdict(v)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			if v.OK() != (says == "") {
				t.Errorf("OK() = %v with verdict %q", v.OK(), verdict(v))
			}
			for _, f := range v.Refusals {
				if f.Mismatch != nil && f.Decl.Filename == "" {
					t.Errorf("a mismatch without a line to show: %+v", f)
				}
			}
		})
	}
}
