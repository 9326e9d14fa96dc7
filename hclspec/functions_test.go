package hclspec

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFunctionsAreDocumented compares the functions with their list in the manual.
func TestFunctionsAreDocumented(t *testing.T) {
	manual, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "<!-- functions")
	list, _, _ := strings.Cut(rest, "<!-- end of functions")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(list, -1) {
		if documented[m[1]] {
			t.Errorf("%s is in the list twice", m[1])
		}
		documented[m[1]] = true
	}
	table := newEvaluator(newDisk(nil), "/", newMeter(allowance)).functions
	if diff := cmp.Diff(sortedKeys(table), sortedKeys(documented)); diff != "" {
		t.Errorf("functions (-) and manual (+) differ:\n%s", diff)
	}
}

// eval evaluates an expression as a local and returns it as JSON, or the detail of the error.
func eval(t *testing.T, expr string) string {
	t.Helper()
	files := map[string]string{
		"sandplan.hcl": "sandplan {\n project = \"p\"\n}\nlocals {\n e = " + expr + "\n}\noutput \"o\" {\n value = jsonencode(local.e)\n}\n",
		"a.txt":        "text\n", "bin": "\xff\xfe", "d/x.md": "1", "d/e/y.md": "2", "d/z.txt": "3", "t.tpl": "Hello ${name}%{ for x in list } ${x}%{ endfor }!",
		"rec.tpl": "${templatefile(\"rec.tpl\", {})}", "bad.tpl": "${", "log.tpl": "${log(-1, 10)}", "big.txt": strings.Repeat("x", maxDataFile+1),
	}
	spec, diags := loadFiles(t, files, Vars{})
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	out, diags := spec.EvalOutputs(nil)
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	return out["o"].Value.AsString()
}

func TestFunctions(t *testing.T) {
	tests := []struct{ expr, want, reason string }{
		{`abspath("x")`, `"/conf/x"`, "paths start at the configuration"},
		{`file("a.txt")`, `"text\n"`, ""},
		{`file("/conf/a.txt")`, `"text\n"`, "absolute paths too"},
		{`filebase64("bin")`, `"//4="`, "what is no text"},
		{`filesha256("a.txt")`, `"f0a05def3f6ff4eb9ef8c4b1d63f0f2f3b9b2a1a0a3ad6f0d9b5aa1e08d2a1f0"`, ""},
		{`fileexists("a.txt")`, `true`, ""},
		{`fileexists("no.txt")`, `false`, ""},
		{`fileset("d", "*.md")`, `["x.md"]`, ""},
		{`fileset("d", "**/*.md")`, `["e/y.md","x.md"]`, ""},
		{`fileset("d", "*.go")`, `[]`, ""},
		{`templatefile("t.tpl", { name = "W", list = [1, 2] })`, `"Hello W 1 2!"`, ""},
		{`basename("/a/b.c")`, `"b.c"`, ""},
		{`dirname("/a/b.c")`, `"/a"`, ""},
		{`cidrsubnet("10.0.0.0/8", 8, 213)`, `"10.213.0.0/16"`, ""},
		{`cidrsubnet("10.213.0.0/16", 13, -1)`, `"10.213.255.248/29"`, "negative numbers count from the end"},
		{`cidrsubnet("fd00::/48", 16, 4660)`, `"fd00:0:0:1234::/64"`, ""},
		{`cidrhost("10.1.2.9/24", 3)`, `"10.1.2.3"`, ""},
		{`cidrhost("10.1.2.0/24", -1)`, `"10.1.2.255"`, ""},
		{`cidrnetmask("172.16.0.0/12")`, `"255.240.0.0"`, ""},
		{`cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`, `["10.1.0.0/20","10.1.16.0/20","10.1.32.0/24","10.1.48.0/20"]`, "each is aligned to its own size"},
		{`length("a👩‍👩‍👧b")`, `3`, "characters as people count them"},
		{`length([1, 2])`, `2`, ""},
		{`length({ a = 1 })`, `1`, ""},
		{`one([])`, `null`, ""},
		{`one(["x"])`, `"x"`, ""},
		{`index(["a", "b"], "b")`, `1`, ""},
		{`sum([1, 2.5])`, `3.5`, ""},
		{`alltrue([true, "true"])`, `true`, ""},
		{`alltrue([])`, `true`, ""},
		{`anytrue([false])`, `false`, ""},
		{`anytrue([false, true])`, `true`, ""},
		{`matchkeys(["a", "b", "c"], [1, 2, 1], [1])`, `["a","c"]`, ""},
		{`transpose({ a = ["1", "2"], b = ["2"] })`, `{"1":["a"],"2":["a","b"]}`, ""},
		{`replace("a.b.c", ".", "-")`, `"a-b-c"`, ""},
		{`replace("abc", "/([a-c])/", "<$1>")`, "\"\\u003ca\\u003e\\u003cb\\u003e\\u003cc\\u003e\"", "a pattern between slashes"},
		{`startswith("abc", "ab")`, `true`, ""},
		{`endswith("abc", "ab")`, `false`, ""},
		{`strcontains("abc", "b")`, `true`, ""},
		{`sha256("x")`, `"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"`, ""},
		{`base64decode(base64encode("é"))`, `"é"`, ""},
		{`urlencode("a b/c")`, `"a+b%2Fc"`, ""},
		{`yamldecode("a: [1, 2]")`, `{"a":[1,2]}`, ""},
		{`jsondecode("{\"a\": [1]}")`, `{"a":[1]}`, ""},
		{`try(local.nothing_like_it.x, 1)`, "error: No locals block defines \"nothing_like_it\".", "try is no way round names"},
		{`try({ a = 1 }.b, 2)`, `2`, ""},
		{`can(tonumber("x"))`, `false`, ""},
		{`setproduct(["a"], ["b", "c"])`, `[["a","b"],["a","c"]]`, ""},
		{`distinct(["a", "b", "a"])`, `["a","b"]`, ""},
		{`join("-", ["a"], ["b", "c"])`, `"a-b-c"`, ""},
		{`indent(2, "a\nb")`, `"a\n  b"`, ""},
		{`trim("xxaxx", "x")`, `"a"`, ""},
		{`format("%05.1f|%-4s|%q", 3.14, "a", "b")`, `"003.1|a   |\"b\""`, ""},
		{`formatlist("%s!", ["a", "b"])`, `["a!","b!"]`, ""},
		{`timeadd("2026-01-01T00:00:00Z", "1h")`, `"2026-01-01T01:00:00Z"`, "times are text"},
	}
	for _, test := range tests {
		if test.expr == `filesha256("a.txt")` {
			test.want = `"` + hexSHA256([]byte("text\n")) + `"`
		}
		if got := eval(t, test.expr); got != test.want {
			t.Errorf("%s: got %s, want %s %s", test.expr, got, test.want, test.reason)
		}
	}
}

func TestFunctionsRefuse(t *testing.T) {
	tests := []struct{ expr, part, reason string }{
		{`file("no.txt")`, "/conf/no.txt cannot be read: file does not exist", "the absolute path is named"},
		{`file("d")`, "it is a directory, not a regular file", ""},
		{`file("bin")`, "not UTF-8 text; read it with filebase64", ""},
		{`file("big.txt")`, "larger than 4 MiB", "reading is bounded"},
		{`file("a\u0000b")`, "NUL", ""},
		{`file("~/x")`, "nothing here expands ~", ""},
		{`fileexists("d")`, "a directory, not a regular file", ""},
		{`fileset("d", "../*")`, "not a pattern below the directory", "it stays inside"},
		{`fileset("d", "e/../../*")`, "not a pattern below the directory", "however it is written"},
		{`fileset("d", "/etc/*")`, "not a pattern below the directory", ""},
		{`fileset("d", "[")`, "not a pattern", ""},
		{`fileset("a.txt", "*")`, "a regular file, not a directory", ""},
		{`templatefile("rec.tpl", {})`, "a template cannot call templatefile", "it would never end"},
		{`templatefile("bad.tpl", {})`, "is not a template", ""},
		{`templatefile("t.tpl", { nam = "x", list = [] })`, `uses "name", which is not among the variables; did you mean "nam"`, ""},
		{`templatefile("t.tpl", ["x"])`, "must be a map or an object", ""},
		{`cidrsubnet("10.0.0.0", 1, 1)`, "is not a network", ""},
		{`cidrsubnet("10.0.0.0/30", 3, 1)`, "no room for 3 bits more", ""},
		{`cidrsubnet("10.0.0.0/30", 1, 2)`, "does not fit into the 1 bits", ""},
		{`cidrsubnet("10.0.0.0/8", 1e30, 1)`, "a whole number from 0 to 128", ""},
		{`cidrhost("10.0.0.0/8", 1e30)`, "does not fit", ""},
		{`cidrhost("10.0.0.0/8", 1.5)`, "a whole number is needed", ""},
		{`cidrsubnets("10.0.0.0/30", 1, 1, 1)`, "no room left", ""},
		{`cidrnetmask("fd00::/8")`, "only IPv4", ""},
		{`one(tolist(["a", "b"]))`, "has 2", ""},
		{`index(["a"], "b")`, "does not hold", ""},
		{`sum([])`, "no sum", ""},
		{`sum(["x"])`, "must be numbers", ""},
		{`length(5)`, "must be a list", ""},
		{`base64decode("%")`, "not base64", ""},
		{`base64decode("//4=")`, "not UTF-8", ""},
		{`replace("a", "/(/", "b")`, "not a regular expression", ""},
		{`matchkeys(["a"], [], [])`, "same length", ""},
		{`log(-1, 10)`, "log has no result for these arguments", "a panic of cty is no message"},
		{`templatefile("log.tpl", {})`, "log has no result for these arguments", "in a template neither"},
		{`timestamp()`, "no function named", "there is no clock"},
		{`nonsensitive("x")`, "no function named", "there is no way back"},
		{`env("HOME")`, "no function named", "there is no environment"},
	}
	for _, test := range tests {
		if got := eval(t, test.expr); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, test.part) {
			t.Errorf("%s: got %s, want an error with %q %s", test.expr, got, test.part, test.reason)
		}
	}
}

// TestNothingIsTooMuch holds that what would fill memory or never end is an error, and soon.
func TestNothingIsTooMuch(t *testing.T) {
	tests := []struct{ expr, part string }{
		{`[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : [for d in range(1000) : d]]]]`, "too large"},
		{`try([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]], 1)`, "too large"},
		{`setproduct(range(1000), range(1000), range(1000), range(1000))`, "too large"},
		{`format("%999999999d", 1)`, "too large"},
		{`formatlist("%99999d", range(1000))`, "too large"},
		{`indent(1000000000, "a\nb")`, "too large"},
		{`replace(join("", [for i in range(1000) : "aaaaaaaaaaaaaaaaaaaa"]), "a", join("", [for i in range(1000) : "0123456789012345678901234567890123456789"]))`, "too large"},
		{`replace(join("", [for i in range(1000) : "aaaaaaaaaaaaaaaaaaaa"]), "/a/", join("", [for i in range(1000) : "0123456789012345678901234567890123456789"]))`, "too large"},
		{`jsondecode(join("", [for i in range(1000) : "["]))`, "levels deep"},
		{`yamldecode(join("", [for i in range(1000) : "- - - - "]))`, "levels deep"},
		{`yamldecode(join("", [for i in range(1000) : "[[[[["]))`, "levels deep"},
		{`"${1e6000 * 1e6000 * 1e6000}"`, "too big to print"},
		{`distinct(flatten([for a in range(1000) : [for b in range(1000) : "${a}-${b}"]]))`, "too large"},
	}
	for _, test := range tests {
		start := cpuTime(t)
		if got := eval(t, test.expr); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, test.part) {
			t.Errorf("%s: got %.200s, want an error with %q", test.expr, got, test.part)
		}
		if d := cpuTime(t) - start; d > 20*time.Second {
			t.Errorf("%s took %s", test.expr, d)
		}
	}
}

// cpuTime is what this process has worked so far; the clock would measure the machine's other work too.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
