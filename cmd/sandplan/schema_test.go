package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are docs/schema, compiled.
type schemas map[string]*jsonschema.Schema

// schemaOf says which schema a command's -json output has to hold to.
func schemaOf(command string, plan bool) string {
	switch command {
	case "show":
		if plan {
			return "plan"
		}
		return "state"
	case "validate", "output", "version":
		return command
	}
	return "events"
}

func readSchemas(t *testing.T) schemas {
	t.Helper()
	out := schemas{}
	files, err := filepath.Glob("../../docs/schema/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("found the schemas %q (%v)", files, err)
	}
	for _, f := range files {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		s, err := c.Compile(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = s
	}
	return out
}

// check holds the output of a command to its schema, if it asked for JSON.
func (s schemas) check(args []string, stdout string) error {
	formatted := slices.Contains(args, "-format=json")
	if !formatted && !slices.Contains(args, "-json") || !strings.HasSuffix(args[0], "sandplan") || len(args) < 2 || slices.Contains(args, "-help") {
		return nil
	}
	var words []string
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			words = append(words, a)
		}
	}
	name := schemaOf(words[0], len(words) > 1)
	if formatted {
		name = words[0] // its report, which is one document
	}
	if slices.Contains(args, "-permissions") {
		name = "permissions"
	}
	if name == "output" && len(words) > 1 {
		return nil // a value by itself
	}
	if name != "events" {
		if stdout == "" {
			return nil // it failed, and said so on stderr
		}
		return s.one(name, stdout)
	}
	for i, l := range strings.Split(strings.TrimSuffix(stdout, "\n"), "\n") {
		if i == 0 && !strings.Contains(l, `"type":"version"`) {
			return fmt.Errorf("the first line is not the version: %s", l)
		}
		if err := s.one(name, l); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

func (s schemas) one(name, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("not JSON: %w\n%s", err, text)
	}
	if err := s[name].Validate(v); err != nil {
		return fmt.Errorf("not as docs/schema/%s.json says: %w\n%s", name, err, text)
	}
	return nil
}

// conform fails a script whose command printed JSON that its schema does not allow.
func conform(ts *testscript.TestScript, args []string, stdout string) {
	if err := jobs(ts).schemas.check(args, stdout); err != nil {
		ts.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// TestSchemasRefuse: a schema that lets everything pass would prove nothing.
func TestSchemasRefuse(t *testing.T) {
	s := readSchemas(t)
	const head = `{"@level":"info","@message":"m","@module":"sandplan.ui","@timestamp":"2026-11-29T18:00:00.000000Z",`
	for _, tt := range []struct {
		line, reason string
		ok           bool
	}{
		{head + `"type":"log"}`, "a plain line", true},
		{head + `"type":"log","more":1}`, "a key that nothing describes", false},
		{head + `"type":"nope"}`, "a type that nothing describes", false},
		{head + `"type":"diagnostic","diagnostic":{"severity":"bad","summary":"s","detail":""}}`, "an unknown severity", false},
		{head + `"type":"outputs","outputs":{"x":{"sensitive":true,"type":"string","value":"secret"}}}`, "a sensitive value", false},
		{head + `"type":"outputs","outputs":{"x":{"sensitive":false,"type":"string","value":"open"}}}`, "an open value", true},
		{`{"type":"log"}`, "a line without a time", false},
	} {
		if err := s.one("events", tt.line); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
}
