package planner_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

func savedPlan(want []planner.Resource, e *engine) *planner.SavedPlan {
	f := &planner.SavedPlan{
		Version: "0.1.0",
		Options: planner.Options{Targets: []planner.Address{`invocation.x["a"]`}, Origin: "host:/dir"},
		Spec:    []byte{0, 1, 2, 255},
		Sources: map[string][]byte{"sandplan.hcl": []byte("sandplan {}\n")},
		Allocation: planner.Allocation{
			Pool: netip.MustParsePrefix("10.236.0.0/16"), Free: 7,
			Uplink:   planner.Subnet{Prefix: netip.MustParsePrefix("10.236.0.0/22"), Gateway: netip.MustParseAddr("10.236.0.1")},
			Networks: map[planner.Address]planner.Subnet{inv: {Prefix: netip.MustParsePrefix("10.236.4.0/29")}},
		},
	}
	f.Remember(want, e.Snapshot)
	return f
}

func TestSavedPlanRoundTrip(t *testing.T) {
	f := savedPlan(world(), has(world()))
	path := filepath.Join(t.TempDir(), "p")
	if err := planner.WritePlan(path, f); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("a plan is readable by its owner only: mode %v, %v", info.Mode(), err)
	}
	got, err := planner.ReadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
	var one, two bytes.Buffer
	if err := errors.Join(f.Encode(&one), got.Encode(&two)); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("the same plan gives the same bytes (%v)", err)
	}
}

// What is no plan stays what it is: a device that a plan was renamed over would be gone for the machine.
func TestWritePlanReplacesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	fifo, link, sub := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "sub")
	for _, err := range []error{syscall.Mkfifo(fifo, 0o600), os.Symlink("/dev/null", link), os.Mkdir(sub, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/dev/null", fifo, link, sub} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := planner.WritePlan(path, &planner.SavedPlan{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v, want a refusal", path, err)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s was %v and is %v (%v)", path, before.Mode(), after, err)
		}
	}
}

func TestWritePlanIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := planner.WritePlan(path, savedPlan(world(), has(nil))); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode() != 0o600 {
		t.Errorf("a plan in place of a readable file stays private: mode %v", info.Mode())
	}
	// A target that cannot be replaced: nothing may be left lying about.
	blocked := filepath.Join(dir, "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := planner.WritePlan(blocked, savedPlan(world(), has(nil))); err == nil {
		t.Error("a directory was replaced by a plan")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("a failed write left something behind: %v, %v", left, err)
	}
	if err := planner.WritePlan(filepath.Join(dir, "no", "such"), savedPlan(nil, has(nil))); err == nil {
		t.Error("a directory that does not exist was written to")
	}
}

func TestSavedPlanVerifies(t *testing.T) {
	agent := inv.With("agent")
	cases := []struct {
		name, reason string
		verify       func(f *planner.SavedPlan) error
		fault        planner.PlanFault
		objects      []planner.Address
		says         string
	}{
		{name: "fresh", reason: "nothing has changed", verify: func(f *planner.SavedPlan) error {
			return errors.Join(f.VerifyVersion("0.1.0"), f.VerifyEngine(has(world()).Snapshot),
				f.VerifyFresh(has(world()).Snapshot), f.VerifyWanted(world()))
		}},
		{name: "images", reason: "images are the engine's: another scope has removed one in between", verify: func(f *planner.SavedPlan) error {
			return f.VerifyFresh(has(world()).without(planner.AddrImage, planner.VendorImage("claude")).Snapshot)
		}},
		{name: "other version", reason: "rows differ between versions", fault: planner.PlanVersion, says: "sandplan 0.1.0, and this is 0.2.0",
			verify: func(f *planner.SavedPlan) error { return f.VerifyVersion("0.2.0") }},
		{name: "other engine", reason: "hosted CI: the engine of the plan job is gone", fault: planner.PlanEngine, says: "in one job",
			verify: func(f *planner.SavedPlan) error {
				e := has(world())
				e.EngineID = "OTHER"
				return f.VerifyEngine(e.Snapshot)
			}},
		{name: "other scope", reason: "a plan of one workspace is not applied to another", fault: planner.PlanEngine, says: "demo/default",
			verify: func(f *planner.SavedPlan) error {
				e := has(world())
				e.Scope.Workspace = "prod"
				return f.VerifyEngine(e.Snapshot)
			}},
		{name: "changed", reason: "an object was touched in between", fault: planner.PlanStale, objects: []planner.Address{agent},
			says: "invocation.a.agent has changed",
			verify: func(f *planner.SavedPlan) error {
				return f.VerifyFresh(has(world()).with(agent, func(o *planner.Object) { o.Fingerprint = "x" }).Snapshot)
			}},
		{name: "started", reason: "started in between, nothing else changed", fault: planner.PlanStale, objects: []planner.Address{agent},
			says: "invocation.a.agent has changed",
			verify: func(f *planner.SavedPlan) error {
				return f.VerifyFresh(has(world()).status(planner.StatusRunning, agent).Snapshot)
			}},
		{name: "remade", reason: "equal in everything but its ID", fault: planner.PlanStale, objects: []planner.Address{agent},
			says: "invocation.a.agent is another object",
			verify: func(f *planner.SavedPlan) error {
				return f.VerifyFresh(has(world()).with(agent, func(o *planner.Object) { o.ID = "remade" }).Snapshot)
			}},
		{name: "gone", reason: "somebody removed it", fault: planner.PlanStale, objects: []planner.Address{agent}, says: "invocation.a.agent is gone",
			verify: func(f *planner.SavedPlan) error { return f.VerifyFresh(has(world()).without(agent).Snapshot) }},
		{name: "new", reason: "somebody added two", fault: planner.PlanStale, says: `invocation.b.network is new`,
			objects: []planner.Address{"invocation.b.network", inv.Runner("test")},
			verify: func(f *planner.SavedPlan) error {
				return f.VerifyFresh(has(slices.Concat(world("test"), invocation("invocation.b", "x")[:1])).Snapshot)
			}},
		{name: "duplicate", reason: "a second object at an address that was there", fault: planner.PlanStale, objects: []planner.Address{agent},
			says: "invocation.a.agent is another object",
			verify: func(f *planner.SavedPlan) error {
				e := has(world())
				twin := *e.at(agent)
				twin.ID = "twin"
				e.Duplicates = append(e.Duplicates, twin)
				return f.VerifyFresh(e.Snapshot)
			}},
		{name: "foreign", reason: "a foreign object appeared in a place of ours", fault: planner.PlanStale, objects: []planner.Address{agent},
			says: "invocation.a.agent is another object",
			verify: func(f *planner.SavedPlan) error {
				e := has(world())
				e.Conflicts = []planner.Conflict{{Addr: agent, Name: "n", ID: "foreign"}}
				return f.VerifyFresh(e.Snapshot)
			}},
		{name: "edited", reason: "an edited specification compiles to other rows", fault: planner.PlanTampered, objects: []planner.Address{agent},
			says: "invocation.a.agent",
			verify: func(f *planner.SavedPlan) error {
				want := world()
				for i := range want {
					if want[i].Addr == agent {
						// The digest that the resource carries still is the old one.
						setRow(want[i].Fields, "Text", "loosened")
					}
				}
				return f.VerifyWanted(want)
			}},
		{name: "more", reason: "an object more than was planned", fault: planner.PlanTampered, objects: []planner.Address{inv.Runner("x")},
			says:   `runner["x"]`,
			verify: func(f *planner.SavedPlan) error { return f.VerifyWanted(world("x")) }},
		{name: "fewer", reason: "an object less than was planned", fault: planner.PlanTampered, objects: []planner.Address{agent},
			says: "invocation.a.agent",
			verify: func(f *planner.SavedPlan) error {
				return f.VerifyWanted(slices.DeleteFunc(world(), func(r planner.Resource) bool { return r.Addr == agent }))
			}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			requireReason(t, c.name, c.reason)
			err := c.verify(savedPlan(world(), has(world())))
			if c.fault == "" {
				if err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
				return
			}
			var fault *planner.PlanError
			if !errors.As(err, &fault) || fault.Fault != c.fault {
				t.Fatalf("%s: want fault %q, got %v", c.reason, c.fault, err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q does not say %q", c.reason, err, c.says)
			}
			for _, a := range c.objects {
				if !slices.Contains(fault.Objects, a) {
					t.Errorf("%s: %v does not name %s", c.reason, fault.Objects, a)
				}
			}
		})
	}
}

func TestDecodePlanRefuses(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.Bytes()
	}
	var good bytes.Buffer
	if err := savedPlan(world(), has(world())).Encode(&good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, reason string
		file         []byte
		fault        planner.PlanFault
	}{
		{"empty", "no file at all", nil, planner.PlanMalformed},
		{"configuration", "somebody passes the HCL file", []byte("sandplan {\n}\n"), planner.PlanMalformed},
		{"cut off", "a copy that broke off", good.Bytes()[:good.Len()-20], planner.PlanMalformed},
		{"flipped", "a damaged byte", func() []byte { b := bytes.Clone(good.Bytes()); b[len(b)/2] ^= 0x40; return b }(), planner.PlanMalformed},
		{"no JSON", "another gzip file", zip("hello"), planner.PlanMalformed},
		{"other format", "a plan of a later sandplan", zip(`{"Format":"sandplan-plan-2","Plan":{}}`), planner.PlanVersion},
		{"unknown field", "nothing in a plan may be without effect", zip(`{"Format":"sandplan-plan-1","Plan":{"Loosen":true}}`), planner.PlanMalformed},
		{"two plans", "what follows would be without effect, too", zip(`{"Format":"sandplan-plan-1","Plan":{}}{}`), planner.PlanMalformed},
	} {
		f, err := planner.DecodePlan(bytes.NewReader(c.file))
		var fault *planner.PlanError
		if !errors.As(err, &fault) || fault.Fault != c.fault {
			t.Errorf("%s (%s): want fault %q, got %v, %v", c.name, c.reason, c.fault, f, err)
		}
	}
}

func FuzzDecodePlan(f *testing.F) {
	var good bytes.Buffer
	if err := savedPlan(world(), has(world())).Encode(&good); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte("sandplan {}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := planner.DecodePlan(bytes.NewReader(file))
		if (p == nil) == (err == nil) {
			t.Errorf("a plan or an error, not %v and %v", p, err)
		}
	})
}
