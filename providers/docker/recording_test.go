package docker

import (
	"bytes"
	"compress/gzip"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

// recordedLook is a look with an object of each form that matters: as declared, drifted, without a readable label,
// not to be looked at at all.
func recordedLook(t *testing.T) planner.Snapshot {
	t.Helper()
	e := NoEngine("")
	k, err := e.kind(planner.KindNetwork)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := k.table.read([]byte(`{"Name":"n","Internal":true,"IPAM.Config[0].Subnet":"10.213.4.0/29"}`))
	if err != nil {
		t.Fatal(err)
	}
	drifted, err := k.table.read([]byte(`{"Name":"n","Internal":false,"IPAM.Config[0].Subnet":{"$ref":"invocation.a.network"}}`))
	if err != nil {
		t.Fatal(err)
	}
	object := func(a planner.Address, declared, observed []planner.Field) planner.Object {
		o := planner.Object{Addr: a, Kind: planner.KindNetwork, ID: "id of " + string(a), Schema: planner.Schema, Digest: planner.Digest(fields),
			Declared: declared, Observed: observed, Fingerprint: "f"}
		o.DependsOn = e.needs(o)
		return o
	}
	broken := object("invocation.d.network", nil, nil)
	broken.Extra = []planner.Extra{{Path: planner.PathUnreadable, Detail: "it cannot be looked at"}}
	return planner.Snapshot{
		EngineID: "E", Scope: planner.Scope{Project: "p", Workspace: "w"},
		Objects:    []planner.Object{object("invocation.a.network", fields, fields), object("invocation.b.network", fields, drifted), object("invocation.c.network", nil, fields), broken},
		Duplicates: []planner.Object{object("invocation.a.network", fields, fields)},
		Foreign:    []planner.Conflict{{Name: "x", Detail: "is somebody's"}},
		Taken:      []planner.Taken{{Prefix: netip.MustParsePrefix("172.17.0.0/16"), By: `network "bridge"`}},
		Leases:     []planner.Lease{{Invocation: "invocation.a", Live: true, Info: planner.LockInfo{ID: "l", PID: 1}}},
		Unchecked:  []string{"something"},
	}
}

func encoded(t *testing.T, s planner.Snapshot) []byte {
	t.Helper()
	e := NoEngine("")
	e.info.ID = "E"
	var b bytes.Buffer
	if err := e.Record(s, nil, time.Unix(1, 0)).Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRecording: what a look found is the same after a file, finding by finding.
func TestRecording(t *testing.T) {
	look := recordedLook(t)
	file := encoded(t, look)
	if again := encoded(t, look); !bytes.Equal(file, again) {
		t.Error("two recordings of one look differ")
	}
	r, err := DecodeRecording(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Recorded(r).Observe(t.Context(), look.Scope)
	if err != nil {
		t.Fatal(err)
	}
	findings := func(s planner.Snapshot) []planner.Finding {
		return planner.Diff(planner.Recorded(s), s, planner.Options{}).Findings
	}
	if d := cmp.Diff(findings(look), findings(got), cmp.Comparer(func(a, b planner.Value) bool { return a == b })); d != "" || len(findings(look)) < 4 {
		t.Errorf("findings (-engine +file):\n%s", d)
	}
	if d := cmp.Diff(look.Taken, got.Taken, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(look.Leases, got.Leases); d != "" {
		t.Error(d)
	}
	if _, err := Recorded(r).Observe(t.Context(), planner.Scope{Project: "p", Workspace: "other"}); err == nil || !strings.Contains(err.Error(), "the snapshot is of p/w") {
		t.Errorf("another scope: %v", err)
	}
}

// TestDecodeRecording: anything else than a whole recording of this format is an error that says so.
func TestDecodeRecording(t *testing.T) {
	whole := encoded(t, recordedLook(t))
	packed := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	for _, tt := range []struct {
		file   []byte
		says   string
		reason string
	}{
		{nil, "it is not a snapshot", "an empty file"},
		{[]byte("sandplan {}"), "it is not a snapshot", "a configuration"},
		{whole[:len(whole)/2], "it is damaged", "half of one"},
		{packed(`{"Format":"sandplan-plan-1"}`), "this sandplan reads", "another format"},
		{packed(`{"a":1}`), "it is not a snapshot", "some JSON"},
		{packed(`{"Format":"sandplan-snapshot-1","More":1}`), "it is damaged", "a member that means nothing"},
		{packed(`{"Format":"sandplan-snapshot-1","Objects":[{"Addr":"invocation.a.network","Kind":"nope","Observed":{}}]}`), `kind "nope"`, "a kind of another version"},
		{packed(`{"Format":"sandplan-snapshot-1","Objects":[{"Addr":"invocation.a.network","Kind":"network","Observed":[1]}]}`), "invocation.a.network", "an object that does not decode"},
	} {
		if _, err := DecodeRecording(bytes.NewReader(tt.file)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.reason, err, tt.says)
		}
	}
}
