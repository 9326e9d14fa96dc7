package hclspec

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// nasty are values at which functions and operators stumble: null, unknown, sensitive, empty, nested,
// of the wrong type, out of range.
var nasty = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e300`, `1/0`, `""`, `"a"`, `"/(/"`, `"%s"`, `"%"`, `"10.0.0.0/8"`, `"files"`, `"*"`, `"sandplan.hcl"`,
	`"2026-01-01T00:00:00Z"`, `"é\u0301\u0000"`, `[]`, `[null]`, `[1, "a", null]`, `[[1], []]`, `{}`, `{ a = null }`, `{ a = 1, b = "x" }`, `{ a = { b = [] } }`,
	`toset([])`, `toset(["a", "b"])`, `tolist([])`, `tolist(["a"])`, `tomap({})`, `tomap({ a = "b" })`, `toset([null])`, `tolist([null, "a"])`,
	`var.any`, `var.null`, `var.str`, `var.num`, `var.list`, `var.map`, `var.set`, `var.obj`, `var.secret`, `var.secretlist`, `var.secretmap`, `var.secretnull`,
	`[var.secret, var.str]`, `{ a = var.secret }`, `toset([var.secret])`, `{ (var.secret) = 1 }`, `[var.any]`, `vendor.claude`, `phase.fix`, `sensitive(null)`,
	`try(var.any, 1)`, `[for x in var.list : x]`, `{ for k, v in var.map : k => v... }`, `var.list[*]`, `var.map["a"]`, `var.obj.b`, `"${var.secret}"`,
}

const nastyVars = `
variable "any"  { default = { a = [1, null], b = "x" } }
variable "null" { default = null }
variable "str"  {
  type    = string
  default = "a"
}
variable "num" {
  type    = number
  default = 3
}
variable "list" {
  type    = list(string)
  default = ["a", "b"]
}
variable "map" {
  type    = map(string)
  default = { a = "b" }
}
variable "set" {
  type    = set(number)
  default = [1, 2]
}
variable "obj" {
  type    = object({ a = number, b = optional(list(object({ c = any }))) })
  default = { a = 1 }
}
variable "secret" {
  type      = string
  default   = "hunter2hunter2"
  sensitive = true
}
variable "secretlist" {
  default   = ["hunter2hunter2", 1]
  sensitive = true
}
variable "secretmap" {
  type      = map(string)
  default   = { hunter2hunter2 = "hunter2hunter2" }
  sensitive = true
}
variable "secretnull" {
  type      = string
  default   = null
  sensitive = true
}
`

// tryAll loads a configuration in which each expression is a local, an output and a compiled attribute,
// with known and with unknown variables.
func tryAll(t *testing.T, exprs []string) {
	t.Helper()
	for start := 0; start < len(exprs); start += 500 {
		var b strings.Builder
		b.WriteString(head + nastyVars + "locals {\n")
		part := exprs[start:min(start+500, len(exprs))]
		for i, e := range part {
			fmt.Fprintf(&b, "  e%d = %s\n", i, e)
		}
		b.WriteString("}\n")
		for i := range part {
			fmt.Fprintf(&b, "output \"o%d\" {\n value = local.e%d\n}\n", i, i)
		}
		files := map[string]string{"sandplan.hcl": b.String(), "files/a.md": "x"}
		for _, unknown := range []bool{false, true} {
			spec, diags := loadFiles(t, files, Vars{Unknown: unknown})
			checkForm(t, diags)
			for _, d := range diags {
				if strings.Contains(d.Detail, "panic") {
					t.Errorf("%s: %s\n%s", d.Subject, d.Detail, strings.Split(b.String(), "\n")[d.Subject.Start.Line-1])
				}
				if strings.Contains(d.Detail, "hunter2hunter2") {
					t.Errorf("%s: a secret is shown: %s\n%s", d.Subject, d.Detail, strings.Split(b.String(), "\n")[d.Subject.Start.Line-1])
				}
			}
			if !unknown {
				_, more := spec.EvalOutputs(nil)
				checkForm(t, more)
			}
		}
	}
}

// TestFunctionsNeverPanic calls every function with nasty values. What panics inside cty becomes an
// error there; it is a mistake of the function all the same.
func TestFunctionsNeverPanic(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var exprs []string
	for _, name := range sortedKeys(newEvaluator(newDisk(nil), "/", newMeter(allowance)).functions) {
		exprs = append(exprs, name+"()")
		for _, a := range nasty {
			exprs = append(exprs, fmt.Sprintf("%s(%s)", name, a))
			if a[0] == '[' {
				exprs = append(exprs, fmt.Sprintf("%s(%s...)", name, a))
			}
			for range 3 {
				exprs = append(exprs, fmt.Sprintf("%s(%s, %s)", name, a, nasty[random.Intn(len(nasty))]))
			}
			for range 2 {
				exprs = append(exprs, fmt.Sprintf("%s(%s, %s, %s)", name, a, nasty[random.Intn(len(nasty))], nasty[random.Intn(len(nasty))]))
			}
		}
	}
	tryAll(t, exprs)
}

// TestOperatorsNeverPanic does the same with everything else that an expression can be.
func TestOperatorsNeverPanic(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	forms := []string{
		"%s + %s", "%s - %s", "%s * %s", "%s / %s", "%s %% %s", "%s == %s", "%s != %s", "%s < %s", "%s && %s", "%s || %s", "!%s || %s",
		"(%s)[%s]", "true ? %s : %s", "%s ? 1 : %s", "[for x in %s : x if %s]", "{ for k, v in %s : k => %s }", "{ for k, v in %s : v => %s... }",
		"(%s)[*].a + %s", "(%s).*.a + %s", `"${%s}-%s"`, `"%%{ for x in %s }${x}%%{ endfor }${%s}"`, `"%%{ if %s }a%%{ else }${%s}%%{ endif }"`,
		"{ (%s) = %s }", "[%s, %s]...", "-%s + %s", "(%s).a.b.c == %s", "try((%s).a, %s)", "merge({ a = %s }, { b = %s })",
	}
	var exprs []string
	for _, f := range forms {
		for _, a := range nasty {
			for range 4 {
				exprs = append(exprs, fmt.Sprintf(f, a, nasty[random.Intn(len(nasty))]))
			}
		}
	}
	tryAll(t, exprs)
}

// TestAttributesNeverPanic puts every nasty value into every attribute of every block.
func TestAttributesNeverPanic(t *testing.T) {
	blocks := []string{
		"provider \"docker\" {\n host = %[1]s\n subnet_pool = %[1]s\n dns = %[1]s\n}\n",
		"vendor \"codex\" {\n kind = %[1]s\n image = %[1]s\n version = %[1]s\n model = %[1]s\n env = %[1]s\n hosts = %[1]s\n command = %[1]s\n" +
			" credential \"auth.json\" {\n source_env = %[1]s\n source_file = %[1]s\n }\n host \"a.b\" {\n port = %[1]s\n addresses = %[1]s\n tls = %[1]s\n }\n}\n",
		"vendor \"own\" {\n kind = \"custom\"\n image = %[1]s\n env = { A = %[1]s }\n command = [%[1]s]\n host \"a.b\" {\n port = %[1]s\n addresses = [%[1]s]\n tls = %[1]s\n }\n}\n",
		"phase \"review\" {\n base = %[1]s\n tools = %[1]s\n writable = %[1]s\n runner \"a\" {\n argv = %[1]s\n image = %[1]s\n timeout = %[1]s\n }\n}\n",
		"phase \"own\" {\n base = %[1]s\n tools = [%[1]s]\n}\n",
		"invocation \"a\" {\n for_each = %[1]s\n vendor = each.value\n phase = each.key\n worktree = each.key\n prompt = each.value\n}\n",
		"invocation \"a\" {\n count = %[1]s\n vendor = vendor.claude\n phase = phase.review\n worktree = count.index\n}\noutput \"a\" {\n value = invocation.a[0].subnet\n}\n",
		"invocation \"a\" {\n vendor = %[1]s\n phase = %[1]s\n worktree = %[1]s\n prompt = %[1]s\n timeout = %[1]s\n env = %[1]s\n user = %[1]s\n git = %[1]s\n after_run = %[1]s\n" +
			" limits {\n memory = %[1]s\n cpus = %[1]s\n pids = %[1]s\n output = %[1]s\n upload = %[1]s\n download = %[1]s\n tunnels = %[1]s\n tunnels_per_second = %[1]s\n }\n}\n",
		"output \"a\" {\n value = %[1]s\n sensitive = %[1]s\n description = %[1]s\n}\n",
		"check \"a\" {\n assert {\n condition = %[1]s\n error_message = %[1]s\n }\n}\n",
		"variable \"x\" {\n type = %[1]s\n default = %[1]s\n sensitive = %[1]s\n nullable = %[1]s\n description = %[1]s\n validation {\n condition = %[1]s == var.x\n error_message = %[1]s\n }\n}\n",
		"variable \"x\" {\n type = map(object({ a = optional(any) }))\n default = %[1]s\n nullable = false\n}\n",
	}
	for _, block := range blocks {
		for _, v := range nasty {
			text := head + nastyVars + strings.ReplaceAll(fmt.Sprintf(block, v), "%!(EXTRA", "")
			for _, unknown := range []bool{false, true} {
				spec, diags := fuzzLoad(t, map[string]string{"sandplan.hcl": text}, Vars{Unknown: unknown})
				for _, d := range diags {
					if strings.Contains(d.Detail, "panic") || strings.Contains(d.Detail, "hunter2hunter2") {
						t.Errorf("%s: %s\nwith %s", d.Subject, d.Detail, v)
					}
				}
				if !diags.HasErrors() && !unknown {
					spec.EvalOutputs(nil)
					spec.EvalChecks(nil)
				}
			}
		}
	}
}
