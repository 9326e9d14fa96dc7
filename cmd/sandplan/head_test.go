package main

import (
	"strings"
	"testing"
)

// TestEngineOfAVariable: a command that takes the engine from a variable without a value for another one would
// find nothing there, and say that everything is gone.
func TestEngineOfAVariable(t *testing.T) {
	const src = `
sandplan {
  project = "p"
}
variable "socket" {}
variable "other" {}
provider "docker" {
  host = "unix://${var.socket}"
}
vendor "x" {
  image = var.gone
}
`
	const unknown, used = "Engine not known", "/nowhere.sock"
	for _, tt := range []struct {
		args   string
		env    bool
		want   string
		code   int
		reason string
	}{
		{"destroy -auto-approve", false, unknown, 1, "the worst place to be wrong"},
		{"destroy -auto-approve -project=p", false, unknown, 1, "a configuration that is there is meant"},
		{"destroy -auto-approve -var socket=/nowhere.sock", false, used, 1, "all that it needs was given; other mistakes are no matter"},
		{"destroy -auto-approve", true, used, 1, "the environment gives it, too"},
		{"plan -destroy", false, unknown, 1, "what destroy would do"},
		{"plan -destroy -var socket=/nowhere.sock", false, used, 1, "what destroy would do"},
		{"apply -destroy -auto-approve -var socket=/nowhere.sock", false, used, 1, "another name for destroy"},
		{"state list", false, unknown, 1, "an empty list would be a lie"},
		{"state list", true, used, 1, "it has a value"},
		{"state list -all", false, unknown, 1, "the scopes of another engine"},
		{"state show sandplan.uplink", true, used, 1, "it has a value"},
		{"show", false, unknown, 1, "the objects of another engine"},
		{"drift -recorded", false, unknown, 1, "the drift of another engine"},
		{"drift -recorded", true, used, 1, "it has a value"},
		{"snapshot -project=p -out=x", false, unknown, 1, "a picture of another engine"},
		{"force-unlock -force 0123456789ab", false, unknown, 1, "a lock of another engine"},
		{"version", false, unknown, 0, "no engine is no error there"},
	} {
		ta := newTestApp(t).file("sandplan.hcl", src)
		if tt.env {
			ta.env["SANDPLAN_VAR_socket"] = "/nowhere.sock"
		}
		r := ta.do(tt.args)
		if r.code != tt.code || !strings.Contains(r.stdout+r.stderr, tt.want) {
			t.Errorf("%s (%s): exit %d, %s%s", tt.args, tt.reason, r.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, "nonexistent.sock") {
			t.Errorf("%s went to the engine of the environment", tt.args)
		}
	}
}
