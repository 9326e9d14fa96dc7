package docker

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestDeclaredLabel(t *testing.T) {
	fields := []planner.Field{{Path: "A", Value: planner.JSON("ü\x00\n<&>\u2028")}, {Path: "B", Value: planner.Ref("sandplan.uplink")},
		{Path: "I", Value: planner.JSON(1), Class: planner.ClassIgnored}}
	labels := labelsFor(planner.Scope{Project: "p", Workspace: "w"}, "host:/dir", planner.Resource{Addr: "sandplan.shim", Kind: planner.KindShim,
		Fields: fields, Digest: planner.Digest(fields)})
	raw, err := decodeDeclared(labels)
	if err != nil || !bytes.Equal(raw, planner.Declared(fields)) {
		t.Fatalf("%s (%v), want %s", raw, err, planner.Declared(fields))
	}
	values, err := parseDeclared(raw)
	if err != nil || len(values) != 2 || values["A"] != fields[0].Value || values["B"] != fields[1].Value {
		t.Errorf("%v, %v", values, err)
	}
	id, ok := readIdentity(labels)
	if want := (identity{schema: planner.Schema, scope: planner.Scope{Project: "p", Workspace: "w"}, address: "sandplan.shim", kind: planner.KindShim,
		digest: planner.Digest(fields), origin: "host:/dir"}); !ok || id != want {
		t.Errorf("%+v, want %+v", id, want)
	}
}

func TestDeclaredLabelOfOthers(t *testing.T) {
	pack := func(s string) string {
		var b bytes.Buffer
		w, _ := flate.NewWriter(&b, flate.BestSpeed)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	for _, tc := range []struct{ reason, declared, want string }{
		{"no label", "", "is missing"},
		{"no base64", "%%", "is not base64"},
		{"base64 of something else", "aGVsbG8=", "does not unpack"},
		{"packed and cut short", pack(strings.Repeat("x", 1000))[:8], "does not unpack"},
		{"ten megabytes in a few kilobytes", pack(strings.Repeat("0", 10<<20)), "more than 1048576 bytes"},
		{"another declaration than the digest's", pack(`{}`), "does not match label dev.sandplan.digest"},
	} {
		_, err := decodeDeclared(map[string]string{labelDeclared: tc.declared, labelDigest: "00"})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	for _, raw := range []string{`null`, `[]`, `{"a":`, `7`} {
		if _, err := parseDeclared([]byte(raw)); err == nil {
			t.Errorf("%s was read as a declaration", raw)
		}
	}
}

// TestOddLabels puts labels of odd content on a network of the scope: none may hide the object, pass
// for a declaration, or end the look.
func TestOddLabels(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 48)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	for _, tc := range []struct {
		reason, label, value string
		declared             bool
		extra                string
	}{
		{"as it should be", labelOrigin, "test:/ünï\tcode\"'\\ \x7f", true, ""},
		{"a declaration that is none, of an object that is what its digest says", labelDeclared, "AAAA", true, ""},
		{"another digest", labelDigest, strings.Repeat("0", 64), false, ""},
		{"another schema", labelSchema, "0", false, ""},
		{"a label that we would never write", "dev.sandplan.extra", "1", true, "Labels"},
		{"20 kB of somebody's own", "somebody", strings.Repeat("x", 20_000), true, "Labels"},
	} {
		r := d.request()
		r.Labels = labelsFor(s, "test:/here", want)
		r.Labels[tc.label] = tc.value
		made, err := e.cli.NetworkCreate(t.Context(), d.Name, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.setBridge(t.Context(), d.Bridge, identity{scope: s, address: a}); err != nil {
			t.Fatal(err)
		}
		if got := differsAt(t, e, s, want); got != tc.extra {
			t.Errorf("%s: differs at %q, want %q", tc.reason, got, tc.extra)
		}
		snap, err := e.Observe(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		o, _ := snap.Object(a)
		if (o.Declared != nil) != tc.declared {
			t.Errorf("%s: its declaration was read as %v", tc.reason, o.Declared)
		}
		if err := e.Delete(t.Context(), planner.Object{Kind: planner.KindNetwork, ID: made.ID}); err != nil {
			t.Fatal(err)
		}
	}
}
