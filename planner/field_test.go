package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValueIsCanonical(t *testing.T) {
	type pair struct {
		B int    `json:"b"`
		A string `json:"a"`
	}
	for _, c := range []struct {
		in   any
		want string
		why  string
	}{
		{pair{1, "x"}, `{"a":"x","b":1}`, "keys are sorted, whatever the struct says"},
		{map[string]any{"z": nil, "a": []string{}}, `{"a":[],"z":null}`, "empty and null are told apart"},
		{"<&>", `"<&>"`, "nothing is escaped for HTML"},
		{json.Number("9007199254740993"), "9007199254740993", "numbers keep all their digits"},
		{nil, "null", "null is a value"},
	} {
		if got := JSON(c.in).Text(); got != c.want {
			t.Errorf("%s: JSON(%v) = %s, want %s", c.why, c.in, got, c.want)
		}
	}
	if (Value{}) == JSON(nil) || !(Value{}).IsZero() || JSON(nil).IsZero() {
		t.Error("no value and null are different things")
	}
	if Ref("sandplan.shim") == JSON("sandplan.shim") {
		t.Error("a reference is not the text of its address")
	}
}

func TestValueOfAnyTypeIsTheSame(t *testing.T) {
	for _, text := range []string{"null", "true", `"plain"`, `"a\"b\\c"`, `"\u2028ü\u0000"`, `"<"`, "0", "-7", "1.50", "1e3", "[]", "{}",
		`[1,{"b":[null],"a":"x"}]`} {
		var tree, loose any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &loose); err != nil {
			t.Fatal(err)
		}
		if a, b := JSON(tree), JSON(json.RawMessage(text)); a != b {
			t.Errorf("%s is %s as a tree and %s as text", text, a.Text(), b.Text())
		}
		if a, b := JSON(loose), JSON([]any{loose}); "["+a.Text()+"]" != b.Text() {
			t.Errorf("%s is %s alone and %s in a list", text, a.Text(), b.Text())
		}
	}
}

func TestValueRoundTrip(t *testing.T) {
	for _, v := range []Value{{}, Ref("sandplan.uplink"), JSON(nil), JSON("a<b"), JSON([]int{2, 1}), JSON(map[string]any{"b": 1, "a": "x"}),
		JSON(json.Number("9007199254740993")), JSON(map[string]any{"$ref": "a", "b": 1})} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Value
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if back != v {
			t.Errorf("%+v came back from %s as %+v", v, text, back)
		}
	}
}

// An image may have one label of any name, and it stands in a declaration as an object with this one key.
func TestWhatLooksLikeAMarkIsNone(t *testing.T) {
	for _, text := range []string{`{"$ref":"sandplan.uplink"}`, `{"$ref":""}`, `{"$ref":null}`, `{"$ref":{}}`, `{"$unknown":"the image x"}`, `{"$unknown":1}`,
		`{"$json":"x"}`, `{"$json":null}`, `{"$json":{"$ref":"a"}}`, `{"$ref":"a","b":1}`, `{"$ref":"a","$unknown":"b"}`, `{"$reference":"a"}`, `{"\"$ref":"a"}`} {
		v := JSON(json.RawMessage(text))
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Value
		if err := json.Unmarshal(raw, &back); err != nil || back != v {
			t.Errorf("%s came back from %s as %+v (%v)", text, raw, back, err)
		}
		field := []Field{{Path: "Config.Labels", Value: v}}
		var declared map[string]Value
		if err := json.Unmarshal(Declared(field), &declared); err != nil || declared["Config.Labels"] != v {
			t.Errorf("%s came back from the declaration %s as %+v (%v)", text, Declared(field), declared, err)
		}
		for _, mark := range []Value{Ref("sandplan.uplink"), Ref("a"), Unknown("the image x"), {}} {
			if Digest(field) == Digest([]Field{{Path: "Config.Labels", Value: mark}}) {
				t.Errorf("%s has the digest of %+v", text, mark)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	text := func(path, v string) Field { return Field{Path: path, Value: JSON(v)} }
	ignored := func(path, v string) Field {
		return Field{Path: path, Value: JSON(v), Class: ClassIgnored, Reason: "a test"}
	}
	for _, c := range []struct {
		name, reason string
		want, got    []Field
		differ       []string
	}{
		{name: "equal", reason: "order does not matter",
			want: []Field{text("b", "1"), text("a", "1")}, got: []Field{text("a", "1"), text("b", "1")}},
		{name: "changed", reason: "sorted by path, whatever the input's order",
			want: []Field{text("c", "1"), text("a", "1")}, got: []Field{text("a", "2"), text("c", "2")}, differ: []string{"a", "c"}},
		{name: "missing", reason: "a row that the engine does not show differs",
			want: []Field{text("a", "1")}, differ: []string{"a"}},
		{name: "unknown", reason: "a row that nobody wants differs",
			got: []Field{text("a", "1")}, differ: []string{"a"}},
		{name: "empty against none", reason: "even a row without a value is more than no row",
			want: []Field{{Path: "a"}}, differ: []string{"a"}},
		{name: "twice", reason: "a second row of one path must not hide behind the first",
			want: []Field{text("a", "1")}, got: []Field{text("a", "1"), text("a", "2")}, differ: []string{"a"}},
		{name: "twice, right one last", reason: "nor before it",
			want: []Field{text("a", "1")}, got: []Field{text("a", "2"), text("a", "1")}, differ: []string{"a", "a"}},
		{name: "ignored", reason: "ignored on both sides",
			want: []Field{ignored("a", "1")}, got: []Field{ignored("a", "2")}},
		{name: "ignored alone", reason: "ignored rows may be absent",
			want: []Field{ignored("a", "1")}, got: []Field{ignored("b", "1")}},
		{name: "ignored on one side", reason: "one side alone cannot talk a difference away",
			want: []Field{text("a", "1")}, got: []Field{ignored("a", "2")}, differ: []string{"a"}},
		{name: "ignored by the wanted side alone", reason: "nor the other",
			want: []Field{ignored("a", "1")}, got: []Field{text("a", "2")}, differ: []string{"a"}},
		{name: "null", reason: "null is not nothing, and not an empty text",
			want: []Field{{Path: "a", Value: JSON(nil)}, {Path: "b", Value: JSON(nil)}}, got: []Field{{Path: "a"}, text("b", "")}, differ: []string{"a", "b"}},
		{name: "reference", reason: "an ID that is not ours stays literal, and differs from the reference",
			want: []Field{{Path: "a", Value: Ref("sandplan.uplink")}}, got: []Field{text("a", "sandplan.uplink")}, differ: []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var paths []string
			for _, m := range Compare(c.want, c.got) {
				paths = append(paths, m.Field.Path)
				if !m.Field.Value.IsZero() {
					t.Errorf("the field of a mismatch carries a value: %+v", m)
				}
			}
			if d := cmp.Diff(c.differ, paths); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
		})
	}
}

// Sides that are equal as they stand are not sorted. That must not hide anything.
func TestEqualSidesHaveNoMismatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	side := func() []Field {
		out := make([]Field, random.IntN(4))
		for i := range out {
			out[i] = Field{Path: string(rune('a' + random.IntN(3))), Value: []Value{{}, JSON(1), Ref("sandplan.shim")}[random.IntN(3)], Class: []Class{ClassReplace, ClassIgnored}[random.IntN(2)]}
		}
		return out
	}
	same := 0
	for range 200_000 {
		want, got := side(), side()
		if !equal(want, got) {
			continue
		}
		same++
		if m := mismatches(byPath(want), byPath(got)); len(m) != 0 {
			t.Fatalf("%+v and %+v pass for equal and differ: %+v", want, got, m)
		}
	}
	if same < 1000 {
		t.Errorf("only %d pairs were equal", same)
	}
}

func TestCompareLeavesItsInputAlone(t *testing.T) {
	in := []Field{{Path: "b"}, {Path: "a"}}
	Compare(in, in)
	Declared(in)
	if in[0].Path != "b" {
		t.Error("the caller's slice was sorted")
	}
}

func TestDeclared(t *testing.T) {
	fields := []Field{
		{Path: "b", Value: Ref("sandplan.uplink")},
		{Path: `a["x"]`, Value: JSON("<v>")},
		{Path: "c", Value: JSON(1), Class: ClassIgnored},
		{Path: "d"},
	}
	const want = `{"a[\"x\"]":"<v>","b":{"$ref":"sandplan.uplink"},"d":{"$ref":""}}`
	if got := string(Declared(fields)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back map[string]Value
	if err := json.Unmarshal([]byte(want), &back); err != nil || back["b"] != Ref("sandplan.uplink") || !back["d"].IsZero() {
		t.Errorf("what Declared writes must read back: %v, %+v", err, back)
	}
	changed := []Field{fields[0], fields[1], fields[2], {Path: "d", Value: JSON(nil)}}
	if Digest(fields) == Digest(changed) {
		t.Error("nothing and null have the same digest")
	}
	ignored := []Field{fields[0], fields[1], {Path: "c", Value: JSON(2), Class: ClassIgnored}, fields[3]}
	if Digest(fields) != Digest(ignored) {
		t.Error("an ignored row changes the digest")
	}
}

// TestUnknown: what nobody knows yet is neither a reference nor a value, and survives a file.
func TestUnknown(t *testing.T) {
	a, b := Unknown("the image x"), Unknown("the image y")
	if a == b || a != Unknown("the image x") || a.IsZero() {
		t.Error("two unknown values are equal if, and only if, the same decides them")
	}
	if _, isRef := a.Ref(); isRef || a.Text() != "" {
		t.Errorf("%v reads as a reference or a value", a)
	}
	if _, unknown := Ref(AddrShim).Unknown(); unknown {
		t.Error("a reference is not unknown")
	}
	for _, v := range []Value{a, Unknown(""), Ref(AddrShim), {}, JSON(map[string]any{"$unknown": 1, "x": 2})} {
		raw, err := v.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back Value
		if err := back.UnmarshalJSON(raw); err != nil || back != v {
			t.Errorf("%s became %v (%v)", raw, back, err)
		}
	}
	if Digest([]Field{{Path: "p", Value: a}}) == Digest([]Field{{Path: "p", Value: b}}) {
		t.Error("a digest does not tell unknown values apart")
	}
}

func TestDigestIsOfTheDeclaration(t *testing.T) {
	var fields []Field
	for i := range 300 { // more than is hashed at once
		fields = append(fields, Field{Path: "a." + JSON(1000+i).Text(), Value: JSON(strings.Repeat("x", i))},
			Field{Path: "b." + JSON(1000+i).Text(), Value: Ref("sandplan.shim")}, Field{Path: "c", Class: ClassIgnored, Reason: "a test"})
		sum := sha256.Sum256(Declared(fields))
		if got := Digest(fields); got != hex.EncodeToString(sum[:]) {
			t.Fatalf("the digest of %d fields is %s, that of their declaration %x", len(fields), got, sum)
		}
	}
}
