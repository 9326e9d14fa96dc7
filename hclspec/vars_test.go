package hclspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func TestTypedText(t *testing.T) {
	tests := []struct{ typ, text, want, reason string }{
		{"string", "[1]", `"[1]"`, "a string is taken as it is"},
		{"number", "5", "5", "numbers are converted"},
		{"bool", "true", "true", "so are truth values"},
		{"list(string)", `["a", "b"]`, `["a","b"]`, "other types are HCL"},
		{"map(number)", `{ a = 1 }`, `{"a":1}`, "other types are HCL"},
		{"object({ a = string, b = optional(number, 7) })", `{ a = 1 }`, `{"a":"1","b":7}`, "optional attributes get their defaults"},
		{"any", `{ a = [1] }`, `{"a":[1]}`, "any is HCL"},
	}
	for _, test := range tests {
		spec := mustLoad(t, "variable \"v\" {\n type = "+test.typ+"\n}\noutput \"v\" {\n value = jsonencode(var.v)\n}\n", args("v="+test.text))
		out, diags := spec.EvalOutputs(nil)
		if diags.HasErrors() {
			t.Fatal(details(diags))
		}
		if got := out["v"].Value.AsString(); got != test.want {
			t.Errorf("%s %s: got %s, want %s (%s)", test.typ, test.text, got, test.want, test.reason)
		}
	}
}

func TestAskIsTheLastResort(t *testing.T) {
	var asked []string
	vars := args("b=given")
	vars.Ask = func(v Variable) (string, bool) {
		asked = append(asked, v.Name+": "+v.Description)
		return "[\"answer\"]", v.Name != "d"
	}
	_, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + `
variable "c" {
  type        = list(string)
  description = "which"
}
variable "b" {}
variable "a" { default = 1 }
variable "d" {}
`}, vars)
	if diff := cmp.Diff([]string{"c: which", "d: "}, asked); diff != "" {
		t.Error(diff)
	}
	if got := only(t, diags); got != MissingVariable {
		t.Errorf("got %s", got)
	}
}

// TestAnswersHaveTheirOwnPlace: what somebody typed stands in no file, and a secret in no message.
func TestAnswersHaveTheirOwnPlace(t *testing.T) {
	vars := Vars{Ask: func(v Variable) (string, bool) {
		return map[string]string{"open": "word", "secret": "[hunter2]"}[v.Name], true
	}}
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + `
variable "open" {
  type = list(string)
}
variable "secret" {
  type      = list(string)
  sensitive = true
}
`}, vars)
	if len(diags) != 2 {
		t.Fatalf("both answers are references, and nothing else is wrong: %s", details(diags))
	}
	for i, name := range []string{"open", "secret"} {
		d, file := diags[i], "<answer for var."+name+">"
		if d.Subject.Filename != file || !strings.Contains(d.Detail, "var."+name+" is list(string), so its value is read as HCL, as in [\"one\", \"two\"].") {
			t.Errorf("%s: %s: %s", name, d.Subject, d.Detail)
		}
		if src, shown := spec.Sources[file]; shown != (name == "open") || shown && string(src) != "word" {
			t.Errorf("the source of %s: %q", name, src)
		}
	}
}

// TestPartial: what has a value has it, and the rest is no error.
func TestPartial(t *testing.T) {
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + `
variable "given" {}
variable "needed" {}
variable "trees" { type = set(string) }
provider "docker" { host = "unix:///run/${var.given}.sock" }
invocation "one" {
  vendor   = vendor.claude
  phase    = phase.review
  worktree = "/w/${var.needed}"
}
invocation "each" {
  for_each = var.trees
  vendor   = vendor.claude
  phase    = phase.review
  worktree = each.key
}
`}, Vars{Partial: true, Args: args("given=x").Args})
	if len(diags) > 0 {
		t.Fatal(details(diags))
	}
	if h := spec.Provider.Host; h.V != "unix:///run/x.sock" || h.Unknown {
		t.Errorf("a value that was given is used: %+v", h)
	}
	if len(spec.Invocations) != 2 || spec.Invocations[0].Address != "invocation.each" || !spec.Invocations[1].Worktree.Unknown {
		t.Errorf("one stands for all, and what depends on a missing value is unknown: %+v", spec.Invocations)
	}
}

// TestValidationShowsValues: what a condition was about is shown, unless it is a secret.
func TestValidationShowsValues(t *testing.T) {
	const body = `
variable "port" {
  type = number
  validation {
    condition     = var.port < 65536
    error_message = "Too large."
  }
}
variable "token" {
  sensitive = true
  validation {
    condition     = length(var.token) > 20
    error_message = "Too short."
  }
}
`
	_, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + body}, args("port=70000", "token=hunter2"))
	if len(diags) != 2 {
		t.Fatal(details(diags))
	}
	port := diags[0]
	if v, more := port.Expression.Variables()[0].TraverseAbs(port.EvalContext); more.HasErrors() || !v.RawEquals(cty.NumberIntVal(70000)) {
		t.Errorf("the value of var.port is %#v", v)
	}
	if diags[1].Expression != nil || diags[1].EvalContext != nil {
		t.Error("a secret goes along with the diagnostic")
	}
}
