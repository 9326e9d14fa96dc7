package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
)

// sameAlongRows holds decoding along the rows of a table, which remembers, to decoding without.
func sameAlongRows(t *testing.T, tab *table, raw []byte) {
	t.Helper()
	want, wantErr := decodeTree(raw)
	for _, time := range []string{"first", "second"} {
		got, err := tab.decode(raw)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q the %s time: error %v, without rows %v", raw, time, err, wantErr)
		}
		if err != nil {
			continue
		}
		if !reflect.DeepEqual(got.tree, want) {
			t.Fatalf("%q the %s time is %#v, without rows %#v", raw, time, got.tree, want)
		}
		if diff := cmp.Diff(tab.observed(want, nil), tab.observedOf(got, nil), cmp.AllowUnexported(planner.Value{})); diff != "" {
			t.Fatalf("%q the %s time has other fields (-without rows +along them):\n%s", raw, time, diff)
		}
	}
}

func TestDecodingAlongRowsRemembersOnlyWholeValues(t *testing.T) {
	tab := testTable()
	for _, raw := range []string{
		`{"Config":{"Image":"x","Net":"cafe","Opts":["b","a"],"a.b":true},"List":[null,{"X":1}],"Mac":"02:42:ac:11:00:02","State":{"Pid":7},"Mounts":{"/w":{"RW":true}}}`,
		`{"Config":{"Image":"x","Opts":["b","a"]},"List":[null,{"X":12}]}`, // a number that begins like the one before
		`{"Config":{"Image":"x","Opts":["b","a","c"]},"List":[null,{"X":1.5}]}`,
		`{"Config":{"Image":"xy"},"List":[{"X":1},{"X":1}]}`,
		`{"Config":{"Image":"x" },"List":[null,{"X":1 }]}`,
		`{"Config":{"a.b":true,"a.b":false}}`, `{"Config":{"a.b":tru}}`, `{"Config":{"a.b":truex}}`, `{"List":[null,{"X":1e}]}`, `{"List":[null,{"X":1`,
		`{"Config":{"\u0049mage":"y"}}`, `{"Config":{"Image":"y","\u0049mage":"x"}}`, `{"Config":{"Image":"x","Image":"y"}}`, `{"Config":{"Image":null}}`,
		`{"Config":"x"}`, `{"Config":[{"Image":"x"}]}`, `{"List":{"X":1}}`, `{"Config":{"Image`, `{"Config":{"Image"`, `{"Config":{"Image":`, `[]`, `{} {}`,
	} {
		sameAlongRows(t, tab, []byte(raw))
	}
}

func TestRowsThatDifferEverywhereAreNotRemembered(t *testing.T) {
	tab := testTable()
	for i := range 100 {
		raw := []byte(strings.Repeat(" ", i) + `{"State":{"Pid":` + planner.JSON(i).Text() + `}}`)
		sameAlongRows(t, tab, raw)
	}
	if n := len(*tab.root.keys["State"].known.all.Load()); n != maxLiterals {
		t.Errorf("%d values of one row are remembered, want %d", n, maxLiterals)
	}
}

// A literal is only as good as nobody writing into what it was decoded to.
func TestNobodyChangesWhatIsRemembered(t *testing.T) {
	k := agentKind()
	l := &look{engine: &Engine{}, scope: planner.Scope{Project: "p", Workspace: "w"}, refs: map[string]planner.Address{"id-of-network": "invocation.one.network"}}
	shown := testSpec(t)
	shown.host.NetworkMode = "id-of-network"
	v := asShown(t, shown)
	v["State"] = map[string]any{"Status": "created"}
	v["Config"].(map[string]any)["Labels"] = map[string]any{labelAddress: "invocation.one.agent", labelProject: "p", labelWorkspace: "w"}
	v["NetworkSettings"].(map[string]any)["Networks"].(map[string]any)[roleNone] = map[string]any{"IPAddress": "", "Aliases": []any{"x"}}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var first []planner.Field
	for range 3 {
		r, err := k.table.decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		o, err := l.objectOf(t.Context(), &k, r)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = o.Observed
		}
		if diff := cmp.Diff(first, o.Observed, cmp.AllowUnexported(planner.Value{})); diff != "" {
			t.Errorf("the same reply shows something else the next time (-first +now):\n%s", diff)
		}
	}
	remembered := 0
	var visit func(n *node)
	visit = func(n *node) {
		for _, child := range n.children {
			visit(child)
		}
		if n.known == nil || n.known.all.Load() == nil {
			return
		}
		for _, known := range *n.known.all.Load() {
			remembered++
			again, err := decodeJSON([]byte(known.text))
			if err != nil || !reflect.DeepEqual(again, known.value) {
				t.Errorf("%s: %s was changed to %#v (%v)", n.row.path, known.text, known.value, err)
			}
		}
	}
	visit(k.table.root)
	if remembered < 100 {
		t.Errorf("%d values are remembered of a whole container", remembered)
	}
}

// nobody answers no request.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody there")
}

// What nothing but fields reads is left out of the tree. An object must look the same as with all in it,
// whatever is changed of the reply.
func TestLeavingOutIsNotNoticed(t *testing.T) {
	k, full := agentKind(), agentKind()
	full.table.leave = nil
	l := &look{engine: &Engine{http: &http.Client{Transport: nobody{}}}, scope: planner.Scope{Project: "p", Workspace: "w"}, refs: map[string]planner.Address{"id-of-network": "invocation.one.network"}}
	reply := func() tree {
		shown := testSpec(t)
		shown.host.NetworkMode = "id-of-network"
		v := asShown(t, shown)
		v["State"] = map[string]any{"Status": "created"}
		v["Driver"], v["RestartCount"], v["GraphDriver"] = "overlay2", 0, map[string]any{"Data": map[string]any{}}
		v["Config"].(map[string]any)["Labels"] = map[string]any{labelAddress: "invocation.one.agent", labelProject: "p", labelWorkspace: "w"}
		return v
	}
	compare := func(reason string, raw []byte) {
		t.Helper()
		look := func(k *kind) (planner.Object, bool, error) {
			r, err := k.table.decode(raw)
			if err != nil {
				return planner.Object{}, false, err
			}
			o, err := l.objectOf(t.Context(), k, r)
			return o, r.left != nil, err
		}
		for _, time := range []string{"first", "second"} { // now it is remembered
			want, _, wantErr := look(&full)
			got, left, err := look(&k)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%s, the %s time: error %v, with all %v", reason, time, err, wantErr)
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s, the %s time: it is another object (-with all +without):\n%s", reason, time, cmp.Diff(want, got, cmp.AllowUnexported(planner.Value{})))
			}
			if reason == "as it is" && !left {
				t.Errorf("%s: nothing is left out", reason)
			}
		}
	}
	raw := must(json.Marshal(reply()))
	compare("as it is", raw)
	for _, change := range []any{nil, "x", 7, []any{"x"}, map[string]any{"x": "y"}, "gone", "twice"} {
		for i, segs := range k.table.segs {
			v := reply()
			if len(segs) == 0 || k.table.rows[i].members != nil || strings.HasPrefix(k.table.rows[i].path, pathArgument) {
				continue
			}
			if holder, last := lookup(v, parent(segs)), segs[len(segs)-1]; last.index < 0 {
				h, ok := holder.(map[string]any)
				switch {
				case !ok:
				case change == "gone":
					delete(h, last.key)
				case change != "twice":
					h[last.key] = change
				}
			}
			raw := must(json.Marshal(v))
			if last := segs[len(segs)-1].key; change == "twice" {
				raw = []byte(strings.Replace(string(raw), `"`+last+`":`, `"`+last+`":{"a":1},"`+last+`":`, 1))
			}
			compare(fmt.Sprintf("%s is %v", k.table.rows[i].path, change), raw)
		}
	}
	text := string(raw)
	for _, tc := range []struct{ reason, was, is string }{
		{"a name twice, the other value last", `"Privileged":false`, `"Privileged":false,"Privileged":true`},
		{"a name twice, the same value", `"Privileged":false`, `"Privileged":false,"Privileged":false`},
		{"a name twice, the other value first", `"Privileged":false`, `"Privileged":true,"Privileged":false`},
		{"a name that is spelled another way", `"Privileged":false`, `"\u0050rivileged":true`},
		{"a name that is spelled both ways", `"Privileged":false`, `"Privileged":false,"\u0050rivileged":true`},
		{"a name that is spelled both ways, and then as ever", `"Privileged":false`, `"\u0050rivileged":true,"Privileged":false`},
		{"a part twice, the second empty", `"HostConfig":`, `"HostConfig":{"Memory":1,"Privileged":true},"HostConfig":`},
		{"a part twice, the first as it should be", `"Image":`, `"HostConfig":{"Memory":1},"Image":`},
		{"a name that nobody knows", `"Privileged":false`, `"Privileged":false,"Unheard":"x"`},
		{"a name in other letters", `"Privileged":false`, `"privileged":true`},
		{"a part that is none", `"HostConfig":{`, `"HostConfig":[],"Was":{`},
		{"nothing of what it should be", text, `{}`},
		{"half of it", text, text[:len(text)/2]},
	} {
		if !strings.Contains(text, tc.was) {
			t.Fatalf("%s: no %s in the reply", tc.reason, tc.was)
		}
		compare(tc.reason, []byte(strings.Replace(text, tc.was, tc.is, 1)))
	}
}
