package hclspec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileSources holds that sources which no person writes end soon, with a diagnostic: not with a
// stack that overflows, which no recover catches.
func TestHostileSources(t *testing.T) {
	const mega = 200_000 // a file may be five times as large; that changes the time, not the outcome
	repeat := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	attr := func(expr string) string { return head + "locals {\n  a = " + expr + "\n}\n" }
	chain := func(line func(i int) string) string {
		var b strings.Builder
		for i := 1; b.Len() < mega-100; i++ {
			b.WriteString(line(i))
		}
		return head + "locals {\n" + b.String() + "}\n"
	}
	tests := []struct{ name, text string }{
		{"open brackets", attr(repeat("[", mega))},
		{"closed brackets", attr(repeat("[", mega/2) + repeat("]", mega/2))},
		{"braces", repeat("{", mega)},
		{"mismatched", attr(repeat("[)", mega))},
		{"parentheses", attr(repeat("(", mega))},
		{"blocks", repeat("a {\n", mega)},
		{"labelled blocks", repeat(`a "b" { `, mega)},
		{"calls", attr(repeat("f(", mega))},
		{"not", attr(repeat("!", mega) + "true")},
		{"minus", attr(repeat("-", mega) + "1")},
		{"minus with blanks", attr(repeat("- ", mega) + "1")},
		{"sum", attr(repeat("1+", mega) + "1")},
		{"conditions", attr(repeat("a?b:", mega) + "c")},
		{"nested conditions", attr(repeat("a?", mega) + "c")},
		{"indexes", attr("a" + repeat("[0]", mega))},
		{"steps", attr("a" + repeat(".b", mega))},
		{"splats", attr("a" + repeat("[*]", mega))},
		{"attribute splats", attr("a" + repeat(".*", mega))},
		{"templates", attr(repeat(`"${`, mega))},
		{"template ifs", attr(`"` + repeat("%{if true}", mega) + `"`)},
		{"template fors", attr(`"` + repeat("%{for x in y}", mega) + `"`)},
		{"interpolations", attr(`"` + repeat("${1}", mega) + `"`)},
		{"for expressions", attr(repeat("[for x in ", mega))},
		{"objects", attr(repeat("{a=", mega))},
		{"heredocs", attr(repeat("<<A\n", mega))},
		{"quotes", attr(repeat(`"`, mega))},
		{"one name", attr(repeat("x", mega))},
		{"one reference", attr("local." + repeat("x", mega))},
		{"one number", attr(repeat("9", mega))},
		{"small number", attr("0." + repeat("0", mega) + "1")},
		{"one string", attr(`"` + repeat("x", mega) + `"`)},
		{"one label", head + `vendor "` + repeat("x", mega) + "\" {}\n"},
		{"comments", attr(repeat("/*", mega))},
		{"NULs", repeat("\x00", mega)},
		{"no UTF-8", repeat("\xff\xfe", mega)},
		{"byte order marks", repeat("\ufeff", mega)},
		{"colons", attr(repeat("a::", mega) + "b()")},
		{"newlines", repeat("\n", mega)},
		{"wrong attributes", repeat("a=b\n", mega)},
		{"many blocks", head + repeat("vendor \"a\" {}\n", mega)},
		{"many locals", chain(func(i int) string { return fmt.Sprintf("a%d=%d\n", i, i) })},
		{"long chain of locals", chain(func(i int) string { return fmt.Sprintf("a%d=local.a%d\n", i, i+1) })},
		{"long cycle", chain(func(i int) string { return fmt.Sprintf("a%d=local.a%d\n", i, (i+1)%5_000) })},
		{"laughs", chain(func(i int) string { return fmt.Sprintf("a%d=[local.a%d,local.a%d]\n", i, i-1, i-1) })},
		{"growing texts", chain(func(i int) string { return fmt.Sprintf("a%d=\"${local.a%d}${local.a%d}\"\n", i, i-1, i-1) })},
		{"deep values", chain(func(i int) string { return fmt.Sprintf("a%d={x=local.a%d}\n", i, i-1) })},
		{"growing numbers", head + "locals {\n a0 = 1e5000\n" + strings.Join(squares(200), "") + "}\n"},
		{"one list", attr("[" + repeat("1,", mega) + "]")},
		{"one object", attr("{" + repeat("a=1,", mega) + "}")},
		{"equal lists", attr("[" + repeat("1,", mega/2-10) + "] == [" + repeat("1,", mega/2-10) + "]")},
		{"distinct", attr("distinct([" + repeat("1,", mega) + "])")},
		{"set", attr("toset([" + repeat("1,", mega) + "])")},
		{"nested sets", attr("[for a in range(100) : toset([for b in range(100) : toset([b])])]")},
		{"product", attr("[for a in setproduct(range(100), range(100)) : setproduct(range(100), range(100))]")},
		{"merge", attr("merge([for a in range(1000) : { for b in range(1000) : b => a }]...)")},
		{"regular expressions", attr(`[for a in range(200) : regexall("(a|b|ab)*c{1,1000}", join("", [for b in range(1000) : "ab"]))]`)},
		{"count", head + "invocation \"a\" {\n count = 5000\n vendor = vendor.claude\n phase = phase.review\n worktree = \"/w\"\n}\n"},
		{"wrong instances", head + "invocation \"a\" {\n count = 5000\n vendor = vendor.claude\n phase = phase.review\n worktree = \"/w\"\n timeout = \"x${count.index}\"\n user = upper(count.index)\n}\n"},
		{"deep type", head + "variable \"a\" {\n type = " + repeat("list(", mega) + "\n}\n"},
		{"wide type", head + "variable \"a\" {\n type = tuple([" + repeat("any,", mega) + "])\n}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := cpuTime(t)
			spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": test.text}, Vars{})
			took := cpuTime(t) - start
			runtime.ReadMemStats(&after)
			used := (after.TotalAlloc - before.TotalAlloc) >> 20
			if took > 15*time.Second || used > 6000 {
				t.Errorf("%s CPU time, %d MiB allocated in all", took, used)
			}
			t.Logf("%s, %d MiB, %d diagnostics", took.Round(time.Millisecond), used, len(diags))
			if len(diags) > 210 {
				t.Errorf("%d diagnostics", len(diags))
			}
			if !diags.HasErrors() {
				if _, more := spec.EvalOutputs(nil); more.HasErrors() {
					t.Error(details(more))
				}
			}
		})
	}
}

// squares are locals that square each other.
func squares(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(" a%d = local.a%d * local.a%d\n", i+1, i, i))
	}
	return out
}
