package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testApp is sandplan in an empty directory, without an engine and without an environment.
type testApp struct {
	*app
	t      *testing.T
	dir    string
	env    map[string]string
	signal chan os.Signal
	out    bytes.Buffer
	err    bytes.Buffer
}

func newTestApp(t *testing.T) *testApp {
	t.Helper()
	ta := &testApp{t: t, dir: t.TempDir(), env: map[string]string{"DOCKER_HOST": "unix:///nonexistent.sock"}, signal: make(chan os.Signal, 2)}
	ta.app = &app{
		version: "0.1.0-test", self: "/nonexistent", home: ta.dir, host: "testhost", who: "tester@testhost",
		getenv: func(name string) string { return ta.env[name] },
		stdin:  strings.NewReader(""), stdout: stream{&ta.out, 0}, stderr: stream{&ta.err, 0},
		chdir: func(string) error { return nil }, getwd: func() (string, error) { return ta.dir, nil },
		now: func() time.Time { return time.Unix(0, 0) }, listen: func() (<-chan os.Signal, func()) { return ta.signal, func() {} },
	}
	ta.log = slog.New(slog.DiscardHandler)
	return ta
}

// file writes a file into the directory.
func (ta *testApp) file(name, text string) *testApp {
	ta.t.Helper()
	if err := os.WriteFile(filepath.Join(ta.dir, name), []byte(text), 0o644); err != nil {
		ta.t.Fatal(err)
	}
	return ta
}

type result struct {
	code           int
	stdout, stderr string
}

func (ta *testApp) do(line string) result {
	for name, value := range ta.env {
		ta.environ = append(ta.environ, name+"="+value)
	}
	code := ta.main(strings.Fields(line))
	return result{code, ta.out.String(), ta.err.String()}
}

func (ta *testApp) stdin(r io.Reader) *testApp {
	ta.app.stdin = r
	return ta
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestValidate(t *testing.T) {
	const valid = `sandplan {
  project = "p"
}
`
	for _, tt := range []struct {
		src    string
		code   int
		stdout string
		stderr string
		reason string
	}{
		{valid, 0, "The configuration of project p is valid.", "", "a result goes to stdout"},
		{valid + "vendr \"x\" {}\n", 1, "", `Did you mean "vendor"?`, "errors go to stderr"},
		{valid + "variable \"x\" {}\n", 0, "is valid", "", "values are not needed"},
		{valid + "vendor \"a\" {\n}\nvendor \"b\" {\n}\n", 1, "", "errors.", "all of them in one run"},
	} {
		r := newTestApp(t).file("sandplan.hcl", tt.src).do("validate")
		if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s:\nexit %d\nstdout %q\nstderr %q", tt.reason, r.code, r.stdout, r.stderr)
		}
		if tt.code == 0 != (r.stderr == "") {
			t.Errorf("%s: exit %d with stderr %q", tt.reason, r.code, r.stderr)
		}
	}
}

// TestInitWritesAStarter: it validates as it stands, the last three lines are commands, and what is there
// is never overwritten.
func TestInitWritesAStarter(t *testing.T) {
	ta := newTestApp(t)
	r := ta.do("init")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	lines := strings.Split(strings.TrimRight(r.stdout, "\n"), "\n")
	for i, want := range []string{"  sandplan init", "  sandplan plan", "  sandplan apply"} {
		if got := lines[len(lines)-3+i]; got != want {
			t.Errorf("line %d from the end is %q, want %q", 3-i, got, want)
		}
	}
	src, err := os.ReadFile(filepath.Join(ta.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	again := newTestApp(t).file("sandplan.hcl", string(src))
	if v := again.do("validate"); v.code != 0 {
		t.Errorf("the starter does not validate:\n%s", v.stderr)
	}
	other := newTestApp(t).file("main.hcl", "")
	if r := other.do("init"); r.code != 1 || !strings.Contains(r.stderr, "main.hcl") {
		t.Errorf("beside another .hcl: exit %d, stderr %q; want a suggestion", r.code, r.stderr)
	}
}

func TestFmt(t *testing.T) {
	const ugly, tidy = "a=1\n", "a = 1\n"
	for _, tt := range []struct {
		args, src, stdin string
		code             int
		stdout, after    string
		reason           string
	}{
		{"fmt", ugly, "", 0, "sandplan.hcl", tidy, "it writes and lists"},
		{"fmt", tidy, "", 0, "", tidy, "nothing to do, nothing to say"},
		{"fmt -check", ugly, "", 3, "sandplan.hcl", ugly, "check changes nothing"},
		{"fmt -check", tidy, "", 0, "", tidy, "check of a tidy file"},
		{"fmt -check", "a = {", "", 2, "", "a = {", "a file that does not parse"},
		{"fmt -diff -write=false -list=false", ugly, "", 0, "+ a = 1", ugly, "diff alone"},
		{"fmt -", "", ugly, 0, tidy, "", "standard input"},
		{"fmt -check -", "", ugly, 3, "", "", "standard input, checked"},
		{"fmt absent.hcl", "", "", 2, "", "", "a file that is not there"},
	} {
		ta := newTestApp(t).file("sandplan.hcl", tt.src).stdin(strings.NewReader(tt.stdin))
		t.Chdir(ta.dir)
		r := ta.do(tt.args)
		after, err := os.ReadFile("sandplan.hcl")
		if err != nil {
			t.Fatal(err)
		}
		if r.code != tt.code || !strings.Contains(r.stdout, tt.stdout) || tt.stdout == "" && r.stdout != "" || string(after) != tt.after {
			t.Errorf("%s (%s): exit %d, stdout %q, file %q, stderr %q", tt.args, tt.reason, r.code, r.stdout, after, r.stderr)
		}
	}
}

// TestFmtFailures: what is wrong is said of the file, and one that could not be written is not listed.
func TestFmtFailures(t *testing.T) {
	ta := newTestApp(t)
	t.Chdir(ta.dir)
	if r := ta.do("fmt absent.hcl"); r.stderr != "Error: Cannot read absent.hcl: no such file or directory\n" {
		t.Errorf("a file that is not there: %q", r.stderr)
	}
	ta = newTestApp(t)
	t.Chdir(ta.dir)
	// A directory in the place of the file is what root cannot write either.
	if err := replaceContent(ta.dir, nil); err == nil {
		t.Error("a directory was written")
	}
	ta.chdir = os.Chdir
	if r := ta.do("-chdir=/nonexistent plan"); r.code != 1 || !strings.Contains(r.stderr, "Error: -chdir=/nonexistent leads nowhere: no such file or directory") {
		t.Errorf("exit %d, stderr %q", r.code, r.stderr)
	}
}

// TestDataDirectory: an apply that could not keep anything is told before it asks an engine, and what to do.
func TestDataDirectory(t *testing.T) {
	const src = "sandplan {\n  project = \"p\"\n}\n"
	ta := newTestApp(t).file("sandplan.hcl", src).file("taken", "a file")
	ta.env["SANDPLAN_DATA_DIR"] = filepath.Join(ta.dir, "taken", "data")
	r := ta.do("apply -auto-approve")
	if r.code != 1 || !strings.HasPrefix(r.stderr, "Error: Data directory not usable") || !strings.Contains(r.stderr, "SANDPLAN_DATA_DIR to a directory") {
		t.Errorf("exit %d, stderr %q", r.code, r.stderr)
	}
	ta = newTestApp(t).file("sandplan.hcl", src)
	if r := ta.do("apply -auto-approve"); strings.Contains(r.stderr, "Data directory") {
		t.Errorf("one that can be made is no obstacle: %q", r.stderr)
	}
	if err := ta.keeps("/proc/self"); err == nil {
		t.Error("/proc was taken for a place to keep something in")
	}
}

// TestNoEngine: an engine that is not there is one clear error, and none for what needs no engine.
func TestNoEngine(t *testing.T) {
	const src = `sandplan {
  project = "p"
}
`
	for _, args := range []string{"plan", "drift", "destroy -auto-approve", "apply -auto-approve", "state list", "show", "output"} {
		r := newTestApp(t).file("sandplan.hcl", src).do(args)
		if r.code != 1 || !strings.Contains(r.stderr, "/nonexistent.sock") || strings.Count(r.stderr, "Error:") != 1 {
			t.Errorf("%s: exit %d, stderr %q; want one error that names the socket", args, r.code, r.stderr)
		}
	}
	r := newTestApp(t).file("sandplan.hcl", src).do("version")
	if r.code != 0 || !strings.Contains(r.stdout, "sandplan 0.1.0-test") {
		t.Errorf("version: exit %d, stdout %q", r.code, r.stdout)
	}
}
