package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestShown(t *testing.T) {
	for _, tt := range []struct {
		v      any
		unit   planner.Unit
		want   string
		reason string
	}{
		{"a\"b\\c", planner.UnitNone, `"a\"b\\c"`, "HCL's notation"},
		{"${x}\u202e\n", planner.UnitNone, `"${x}\u202e\n"`, "what would steer a terminal is visible"},
		{nil, planner.UnitNone, "null", "null is said"},
		{true, planner.UnitNone, "true", "a word"},
		{2 << 30, planner.UnitBytes, `"2GiB"`, "the largest unit that divides it"},
		{2<<30 + 1, planner.UnitBytes, "2147483649", "never rounded: two sizes must not read the same"},
		{1536 << 20, planner.UnitBytes, `"1536MiB"`, "exact before short"},
		{0, planner.UnitBytes, "0", "no unit for nothing"},
		{-1, planner.UnitBytes, "-1", "the engine's word for unlimited"},
		{0, planner.UnitBound, "null", "no bound, as one writes it"},
		{1 << 30, planner.UnitBound, `"1GiB"`, "a bound, as one writes it"},
		{int64(1.5e9), planner.UnitNanoCPUs, "1.5", "whole or part CPUs"},
		{int64(2e9), planner.UnitNanoCPUs, "2", "no trailing point"},
		{int64(1e8), planner.UnitNanoCPUs, "0.1", "exact"},
		{int64(10e9), planner.UnitNanoCPUs, "10", "no zero is lost"},
		{0, planner.UnitNanoCPUs, "0", "zero stays zero"},
		{int64(30 * 60e9), planner.UnitDuration, `"30m"`, "as it is written"},
		{int64(5400e9), planner.UnitDuration, `"1h30m"`, "two units"},
		{int64(90e9), planner.UnitDuration, `"1m30s"`, "the canonical form"},
		{1800000, planner.UnitMillis, `"30m"`, "another base"},
		{[]any{1, "x"}, planner.UnitNone, `[1, "x"]`, "lists"},
		{map[string]any{"b": 1, "a.b": 2}, planner.UnitNone, `{ "a.b" = 2, b = 1 }`, "maps, sorted, quoted where needed"},
		{12345678901234567, planner.UnitNone, "12345678901234567", "no digit is lost"},
	} {
		f := planner.Field{Unit: tt.unit}
		if got := inline(shown(planner.JSON(tt.v), f)); got != tt.want {
			t.Errorf("%v: %s, want %s: %s", tt.v, got, tt.want, tt.reason)
		}
	}
	if got := inline(shown(planner.Ref("sandplan.uplink"), planner.Field{})); got != "sandplan.uplink" {
		t.Errorf("a reference reads %s", got)
	}
}

func TestFlow(t *testing.T) {
	list := []any{"aaaa", "bbbb", "cccc"}
	for _, tt := range []struct {
		v            any
		n            int
		want, reason string
	}{
		{list, 80, `["aaaa", "bbbb", "cccc"]`, "what fits stays on one line"},
		{list, 18, "[\"aaaa\", \"bbbb\",\n \"cccc\"]", "elements go on below the first"},
		{list, 3, "[\"aaaa\",\n \"bbbb\",\n \"cccc\"]", "an element is never broken"},
		{map[string]any{"a": 1, "b": 2}, 8, "{ a = 1,\n  b = 2 }", "maps as well"},
		{strings.Repeat("x", 20), 8, `"` + strings.Repeat("x", 20) + `"`, "a string stays whole"},
	} {
		if got := strings.Join(flow(tt.v, tt.n), "\n"); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.reason, got, tt.want)
		}
	}
}

// diffText is a difference as lines of "symbol text", indented by depth.
func diffText(ns []node) string {
	var b strings.Builder
	for _, n := range ns {
		b.WriteString(strings.Repeat("  ", n.depth) + string(n.sym) + "|" + n.text + "\n")
	}
	return b.String()
}

func tree(t *testing.T, s string) any {
	t.Helper()
	v, ok := jsonTree(s)
	if !ok {
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return v
}

func TestDifference(t *testing.T) {
	for _, tt := range []struct{ old, new, want, reason string }{
		{`1`, `2`, "~|1 -> 2\n", "two numbers"},
		{`"a"`, `null`, "~|\"a\" -> null\n", "nothing"},
		{`["a","b","c","d","e"]`, `["a","b","x","d","e"]`,
			"~|[\n  |\"a\",\n  |\"b\",\n  -|\"c\",\n  +|\"x\",\n  |\"d\",\n  |\"e\",\n|]\n", "one of a few: its neighbours help"},
		{`["a","b","c","d","e","f","g"]`, `["a","b","c","d","e","f","g","h"]`,
			"~|[\n  |# (6 unchanged elements hidden)\n  |\"g\",\n  +|\"h\",\n|]\n", "far from the change they are counted"},
		{`{"a":1,"b":2,"c":3}`, `{"a":1,"b":5,"d":4}`,
			"~|{\n  ~|b = 2 -> 5\n  -|c = 3 -> null\n  +|d = 4\n  |# (1 unchanged element hidden)\n|}\n", "maps by key"},
		{`["egress","{\"hosts\":[\"a\"],\"x\":1}"]`, `["egress","{\"hosts\":[\"a\",\"b\"],\"x\":1}"]`,
			"~|[\n  |\"egress\",\n  ~|jsonencode({\n    ~|hosts = [\n      |\"a\",\n      +|\"b\",\n    |]\n    |# (1 unchanged element hidden)\n  |}),\n|]\n",
			"JSON in a string is opened"},
		{`"one\ntwo\nthree"`, `"one\n2\nthree"`,
			"~|<<EOT\n  |# (1 unchanged line hidden)\n  -|two\n  +|2\n  |# (1 unchanged line hidden)\n|EOT\n", "texts by line"},
		{`[]`, `["a"]`, "~|[] -> [\"a\"]\n", "an empty side has nothing to open"},
		{`["a"]`, `{"a":1}`, "~|[\"a\"] -> { a = 1 }\n", "two shapes"},
	} {
		if got := diffText(difference(tree(t, tt.old), tree(t, tt.new), 70)); got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.reason, got, tt.want)
		}
	}
}

// TestLongValuesStandBelowEachOther: two digests are compared with the eye.
func TestLongValuesStandBelowEachOther(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	p := &page{r: &Renderer{}}
	p.rows(changed([]planner.Mismatch{
		{Field: planner.Field{Path: "Image"}, Want: planner.JSON(b), Got: planner.JSON(a)},
		{Field: planner.Field{Path: "Labels"}, Want: planner.JSON(map[string]string{"k": b, "z": ""}), Got: planner.JSON(map[string]string{"k": a, "z": ""})},
	}, false), 1)
	want := `      ~ Image  = "` + a + `"
              -> "` + b + `"
      ~ Labels = {
          ~ k = "` + a + `"
             -> "` + b + `"
            # (1 unchanged element hidden)
        }
`
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestDifferenceOfHugeLists: a list that only a hostile engine has costs no quadratic table.
func TestDifferenceOfHugeLists(t *testing.T) {
	huge := make([]any, 100_000)
	for i := range huge {
		huge[i] = "x"
	}
	got := diffText(difference(huge, []any{"y"}, 70))
	if !strings.Contains(got, "100000 elements") {
		t.Errorf("got %.200s", got)
	}
}

// FuzzClean: nothing that Clean returns can steer a terminal, and cleaning twice changes nothing.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "\r\n\t", "\u202e", "\xff\xfe", "é日本", "\u009b", `\x1b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !isClean(got) {
			t.Fatalf("%q became %q", s, got)
		}
		if Clean(got) != got {
			t.Fatalf("%q is not stable", got)
		}
	})
}
