package docker

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

func testTable() *table {
	return newTable([]string{"Config", "Mounts"}, []row{
		{path: "Config.Image", norm: text, attr: "image"},
		{path: "Config.Net", norm: text, ref: true},
		{path: "Config.Opts", norm: set},
		{path: `Config["a.b"]`, norm: boolean},
		{path: "List[1].X", norm: integer},
		{path: "State", class: planner.ClassIgnored, reason: "written by the test; nothing follows from it"},
		{path: "Mac", class: planner.ClassAssigned, shape: shape{name: "a MAC address", ok: isTestMAC}},
		{path: "Mounts", members: newTable(nil, []row{{path: "Source", norm: text}, {path: "RW", norm: boolean}})},
	})
}

func isTestMAC(v any) bool { s, _ := v.(string); return strings.Count(s, ":") == 5 }

func parse(t *testing.T, s string) tree {
	t.Helper()
	v, err := decodeTree([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func values(fields []planner.Field) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		if a, ok := f.Value.Ref(); ok {
			out[f.Path] = "-> " + string(a)
		} else {
			out[f.Path] = f.Value.Text()
		}
	}
	return out
}

const testNet = planner.Address("invocation.a.network")

func TestWantedAndObservedAgree(t *testing.T) {
	want := testTable().wanted(parse(t, `{"Config":{"Image":"x","Net":"sandplan-ref:invocation.a.network","Opts":["b","a"],"a.b":true},
		"Mounts":{"/work":{"Source":"/src"}}}`), func(attr string) *hcl.Range { return &hcl.Range{Filename: "at " + attr} })
	got := testTable().observed(parse(t, `{"Config":{"Image":"x","Net":"cafe","Opts":["a","b","a"],"a.b":true,"More":0},
		"List":[null,{"X":0}],"Mac":"02:42:ac:11:00:02","State":{"Pid":7},
		"Mounts":{"/work":{"Source":"/src","RW":false}}}`), map[string]planner.Address{"cafe": testNet})
	if diff := cmp.Diff(map[string]string{
		"Config.Image": `"x"`, "Config.Net": "-> invocation.a.network", "Config.Opts": `["a","b"]`, `Config["a.b"]`: "true",
		"List[1].X": "0", "State": "", "Mac": `"a MAC address"`, `Mounts["/work"].Source`: `"/src"`, `Mounts["/work"].RW`: "false",
	}, values(want)); diff != "" {
		t.Errorf("wanted fields (-want +got):\n%s", diff)
	}
	if m := planner.Compare(want, got); len(m) != 0 {
		t.Errorf("the engine did as asked and the sides differ: %+v", m)
	}
	if want[0].Path != "Config.Image" || want[0].Decl.Filename != "at image" {
		t.Errorf("first field is %s at %q, want Config.Image at its attribute", want[0].Path, want[0].Decl.Filename)
	}
}

func TestObservedDifference(t *testing.T) {
	const same = `{"Config":{"Image":"x","Net":"cafe"},"Mac":"02:42:ac:11:00:02","Mounts":{"/work":{"Source":"/src"}}}`
	want := testTable().wanted(parse(t, `{"Config":{"Image":"x","Net":"sandplan-ref:invocation.a.network"},"Mounts":{"/work":{"Source":"/src"}}}`),
		func(string) *hcl.Range { return nil })
	for _, tc := range []struct{ reason, got, path string }{
		{"nothing differs", same, ""},
		{"an ID that is not ours stays literal", strings.Replace(same, "cafe", "beef", 1), "Config.Net"},
		{"the mark of a reference means nothing on this side", strings.Replace(same, "cafe", "sandplan-ref:invocation.a.network", 1), "Config.Net"},
		{"the name of a shape has not that shape", strings.Replace(same, "02:42:ac:11:00:02", "a MAC address", 1), "Mac"},
		{"an assigned value is missing", strings.Replace(same, `"Mac":"02:42:ac:11:00:02",`, "", 1), "Mac"},
		{"another type is no zero value", strings.Replace(same, `"x"`, "false", 1), "Config.Image"},
		{"a member more", strings.Replace(same, `"/work"`, `"/x":{"Source":""},"/work"`, 1), `Mounts["/x"].RW Mounts["/x"].Source`},
		{"a member less", strings.Replace(same, `"/work":{"Source":"/src"}`, "", 1), `Mounts["/work"].RW Mounts["/work"].Source`},
		{"a list where members are expected", strings.Replace(same, `{"/work":{"Source":"/src"}}`, `["/work"]`, 1), `Mounts Mounts["/work"].RW Mounts["/work"].Source`},
	} {
		var paths []string
		for _, m := range planner.Compare(want, testTable().observed(parse(t, tc.got), map[string]planner.Address{"cafe": testNet})) {
			paths = append(paths, m.Field.Path)
		}
		if got := strings.Join(paths, " "); got != tc.path {
			t.Errorf("%s: differs at %q, want %q", tc.reason, got, tc.path)
		}
	}
}

func TestExtras(t *testing.T) {
	for _, tc := range []struct{ reason, tree, strict, others string }{
		{"covered by rows", `{"Config":{"Image":"x"},"State":{"Pid":1},"Mounts":{"/w":{"Source":"/s","RW":true}}}`, "", ""},
		{"zero values say nothing", `{"Config":{"New":"","N":0,"L":[],"M":{"a":null},"T":"0001-01-01T00:00:00Z","B":false}}`, "", ""},
		{"unknown below a strict path", `{"Config":{"New":{"Deep":[1]}}}`, `Config.New={"Deep":[1]}`, ""},
		{"unknown elsewhere", `{"Fresh":1,"List":[{"X":1},{"X":1,"Y":2}]}`, "", "Fresh List[0] List[1].Y"},
		{"unknown in a member", `{"Mounts":{"/w":{"Source":"/s","Odd":"x"}}}`, `Mounts["/w"].Odd="x"`, ""},
		{"a member of another type", `{"Mounts":{"/w":7}}`, `Mounts["/w"]=7`, ""},
		{"a scalar where rows expect an object", `{"Config":"x"}`, `Config="x"`, ""},
		{"a list of one empty object is not zero", `{"Config":{"L":[{}]}}`, `Config.L=[{}]`, ""},
	} {
		strict, others := testTable().extras(parse(t, tc.tree))
		var got []string
		for _, x := range strict {
			got = append(got, x.Path+"="+x.Detail)
		}
		if s := strings.Join(got, " "); s != tc.strict || strings.Join(others, " ") != tc.others {
			t.Errorf("%s: strict %q others %q, want %q and %q", tc.reason, s, others, tc.strict, tc.others)
		}
	}
}

func TestDeclaredRoundTrip(t *testing.T) {
	want := testTable().wanted(parse(t, `{"Config":{"Net":"sandplan-ref:invocation.a.network"},"Mounts":{"/a.b":{"Source":"/src"},"x":{}}}`),
		func(string) *hcl.Range { return nil })
	values, err := parseDeclared(planner.Declared(want))
	if err != nil {
		t.Fatal(err)
	}
	if got := testTable().declared(values); !reflect.DeepEqual(got, want) {
		t.Errorf("a declaration read back differs:\n%s", cmp.Diff(want, got, cmp.AllowUnexported(planner.Value{})))
	}
	values["Config.Ancient"] = planner.JSON(1)
	delete(values, "Config.Image")
	got := planner.Compare(want, testTable().declared(values))
	if len(got) != 2 || got[0].Field.Path != "Config.Ancient" || got[1].Field.Path != "Config.Image" {
		t.Errorf("a path that no row has, and a missing one, must both differ: %+v", got)
	}
}

func TestNewTableRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		rows   []row
	}{
		{"ignored without a reason", []row{{path: "A", class: planner.ClassIgnored}}},
		{"a reason without being ignored", []row{{path: "A", norm: text, reason: "x"}}},
		{"assigned without a shape", []row{{path: "A", class: planner.ClassAssigned}}},
		{"compared without a normaliser", []row{{path: "A"}}},
		{"twice the same", []row{{path: "A", norm: text}, {path: "A", norm: text}}},
		{"one below the other", []row{{path: "A", norm: text}, {path: "A.B", norm: text}}},
		{"a malformed path", []row{{path: "A..B", norm: text}}},
		{"members with a normaliser", []row{{path: "A", norm: text, members: testTable()}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the table was accepted", tc.reason)
				}
			}()
			newTable(nil, tc.rows)
		}()
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"", "a", "a.b[0]", `["x.y"].z`, `a["\""]`, "[1][2]", "a[", `["a`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		segs, err := parsePath(s)
		if err != nil {
			return
		}
		again, err := parsePath(formatPath(segs))
		if err != nil || !reflect.DeepEqual(segs, again) {
			t.Errorf("%q reads as %v, written %q reads as %v, %v", s, segs, formatPath(segs), again, err)
		}
	})
}

// FuzzNorm holds every normaliser to its contract: it never panics and is idempotent.
func FuzzNorm(f *testing.F) {
	for _, s := range []string{`null`, `""`, `["b","a","a"]`, `[1]`, `{"dev.sandplan.kind":"x","y":"z"}`, `3`, `[[],null]`} {
		f.Add([]byte(s))
	}
	norms := map[string]norm{"exact": exact, "text": text, "boolean": boolean, "integer": integer, "list": list, "dict": dict,
		"set": set, "each": each(set), "foreignLabels": foreignLabels, "orElse": orElse(json.Number("7"))}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := decodeTree(append(append([]byte(`{"v":`), raw...), '}'))
		if err != nil {
			return
		}
		for name, n := range norms {
			once := n(v["v"])
			if twice := n(once); planner.JSON(once) != planner.JSON(twice) {
				t.Errorf("%s(%s) = %v, and of that %v", name, raw, once, twice)
			}
		}
	})
}
