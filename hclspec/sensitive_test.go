package hclspec

import (
	"strings"
	"testing"
)

// TestSecretsStayOutOfDiagnostics puts a secret into everything that can fail and looks for it in all
// that is said of it.
func TestSecretsStayOutOfDiagnostics(t *testing.T) {
	const secret = "hunter2hunter2"
	body := `
variable "s" { sensitive = true }
variable "n" {
  type      = number
  sensitive = true
}
variable "o" {
  type      = object({ a = number })
  sensitive = true
}
variable "v" {
  sensitive = true
  validation {
    condition     = var.v == "x"
    error_message = "It is ${var.v}."
  }
}
locals {
  a = tonumber(var.s)
  b = file(var.s)
  c = { a = 1 }[var.s]
  d = var.s + 1
  e = regex("(", var.s)
  f = regex("x+", "${var.s}")
  g = templatefile("t.tpl", { s = var.s })
  h = [for x in [var.s] : tonumber(x)]
  i = cidrsubnet(var.s, 1, 1)
  j = parseint(var.s, 10)
  k = jsondecode(var.s)
  l = formatdate("YYYY", var.s)
  m = fileset(var.s, "*")
  n = base64decode(var.s)
  o = var.s.attribute
  p = lookup({}, var.s)
}
vendor "other" {
  kind  = var.s
  image = var.s
  model = "x${var.s}"
  credential "OPENAI_API_KEY" { source_env = "A ${var.s}" }
}
invocation "a" {
  vendor   = var.s
  phase    = phase.review
  worktree = local.g
  timeout  = var.s
  env      = { (var.s) = "x" }
  prompt   = "a\u0000${var.s}"
  user     = var.s
}
check "c" {
  assert {
    condition     = var.s == ""
    error_message = "It is ${var.s}."
  }
}
`
	files := map[string]string{
		"sandplan.hcl": head + body, "t.tpl": "${tonumber(s)}",
		"sandplan.spvars.hcl": "s = \"" + secret + "\"\no = { a = \"" + secret + "\" }\nwrong wrong",
	}
	vars := args("n="+secret, "v="+secret)
	vars.Env = []string{"SANDPLAN_VAR_s=" + secret}
	for _, unknown := range []bool{false, true} {
		vars.Unknown = unknown
		spec, diags := loadFiles(t, files, vars)
		if !diags.HasErrors() {
			t.Fatal("nothing failed")
		}
		if s := details(diags); strings.Contains(s, secret) {
			t.Errorf("a diagnostic shows the secret:\n%s", s)
		}
		for name, src := range spec.Sources {
			if strings.Contains(string(src), secret) {
				t.Errorf("the source %s would be shown, and holds the secret", name)
			}
		}
		for _, d := range diags {
			if d.EvalContext == nil || d.Expression == nil {
				continue
			}
			for _, tr := range d.Expression.Variables() {
				if v, more := tr.TraverseAbs(d.EvalContext); !more.HasErrors() && !v.ContainsMarked() && strings.Contains(v.GoString(), secret) {
					t.Errorf("%s: its context shows the secret", d.Summary)
				}
			}
		}
	}
}

func TestSensitivePromptAndCredential(t *testing.T) {
	spec, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + `
variable "s" { sensitive = true }
vendor "codex" {
  image = "agent:1"
  credential "auth.json" { source_file = "secrets/${var.s}" }
}
invocation "a" {
  vendor   = vendor.codex
  phase    = phase.review
  worktree = "/w"
  prompt   = "p ${var.s}"
}
invocation "b" {
  vendor   = vendor.codex
  phase    = phase.review
  worktree = "/w"
  prompt   = "p"
}
`}, args("s=x"))
	if len(diags) > 0 {
		t.Fatal(details(diags))
	}
	a, b := spec.Invocations[0], spec.Invocations[1]
	if a.Prompt.V != "p x" || !a.PromptSensitive || b.PromptSensitive {
		t.Errorf("prompts: %+v %+v", a.Prompt, b.Prompt)
	}
	c := spec.Vendors[1].Credentials[0]
	if c.SourceFile.V != "/conf/secrets/x" || !c.SourceFile.Sensitive {
		t.Errorf("credential: %+v", c)
	}
}

// TestSecretInPlaceOfItsName holds that a token which somebody takes for a name is not repeated.
func TestSecretInPlaceOfItsName(t *testing.T) {
	_, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + `
vendor "codex" {
  image = "agent:1"
  credential "OPENAI_API_KEY" { source_env = "sk-abc123" }
}
`}, Vars{})
	if only(t, diags) != InvalidEnvName || strings.Contains(details(diags), "sk-abc123") {
		t.Error(details(diags))
	}
}
