package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

var apiVersion = regexp.MustCompile(`/v1\.[0-9]+/`)

// TestLog: the log tells the calls to the engine where SANDPLAN_LOG says, and no value of an option.
func TestLog(t *testing.T) {
	socket := dockertest.Socket(t)
	file := filepath.Join(t.TempDir(), "log")
	for _, tt := range []struct {
		value  string
		stderr []string // what is on stderr; nothing when empty
		lacks  string
		file   bool
		reason string
	}{
		{"", nil, "", false, "nobody asked"},
		{"debug", []string{`msg=command name="state list" options=project`, "method=GET path=/info status=200 took="}, "hunter2", false, "everything"},
		{"INFO", []string{"msg=command"}, "path=/info", false, "commands only"},
		{file, nil, "", true, "a file, and nothing on stderr"},
	} {
		ta := newTestApp(t)
		ta.env["SANDPLAN_LOG"], ta.env["DOCKER_HOST"] = tt.value, "unix://"+socket
		r := ta.do("state list -project=hunter2")
		if r.code != exitOK || r.stdout != "" {
			t.Errorf("%s: %+v", tt.reason, r)
		}
		if len(tt.stderr) == 0 && r.stderr != "" {
			t.Errorf("%s: stderr holds\n%s", tt.reason, r.stderr)
		}
		for _, want := range tt.stderr {
			if !strings.Contains(apiVersion.ReplaceAllString(r.stderr, "/"), want) {
				t.Errorf("%s: no %q in\n%s", tt.reason, want, r.stderr)
			}
		}
		if tt.lacks == "path=/info" && strings.Contains(r.stderr, "path=") {
			t.Errorf("%s: calls are told:\n%s", tt.reason, r.stderr)
		}
		text, err := os.ReadFile(tt.value)
		if (err == nil) != tt.file || tt.file && !strings.Contains(string(text), "method=GET") {
			t.Errorf("%s: the file holds %q, %v", tt.reason, text, err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log's mode: %v, %v", info, err)
	}
}

func TestLogNowhere(t *testing.T) {
	for value, want := range map[string]string{
		"verbose":           "SANDPLAN_LOG=verbose: it is to be info or debug",
		"/nonexistent/file": "open the log that SANDPLAN_LOG names",
	} {
		ta := newTestApp(t)
		ta.env["SANDPLAN_LOG"] = value
		if r := ta.do("version"); r.code != exitError || !strings.Contains(strings.ToLower(r.stderr), strings.ToLower(want)) {
			t.Errorf("SANDPLAN_LOG=%s: %+v", value, r)
		}
	}
}
