package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealCodesOfTheStart are the ends of runs whose command cannot begin: nothing to execute, nothing
// executable, and a sandbox that is not what it should be.
func TestRealCodesOfTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10, map[string][]string{"none": {"say=x"}, "text": {"say=x"}, "mute": {"say=x"}}, nil)
	config, err := os.ReadFile(filepath.Join(w.dir, "sandplan.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(config), "\nvendor ")
	for i, b := range blocks {
		switch {
		case strings.HasPrefix(b, `"none"`):
			b = strings.Replace(b, `["/agent"`, `["/nowhere"`, 1)
		case strings.HasPrefix(b, `"text"`):
			b = strings.Replace(b, `["/agent"`, `["/work/text"`, 1)
		case strings.HasPrefix(b, `"mute"`):
			b = strings.Replace(b, "port      = 8443", "port      = 8444", 1) // where nobody listens
		}
		blocks[i] = b
	}
	w.write("sandplan.hcl", strings.Join(blocks, "\nvendor "))
	if err := os.WriteFile(filepath.Join(w.tree, "text"), []byte("no program\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.apply()
	for _, c := range []struct {
		name   string
		code   int
		reason string
	}{
		{"none", 127, "the command does not exist"},
		{"text", 126, "the command cannot be executed"},
		{"mute", 121, "the vendor cannot be reached: the sandbox is not proven"},
	} {
		e := w.sandplan("run", "invocation."+c.name)
		if e.code != c.code || !strings.HasPrefix(e.last(), "sandplan:") || e.stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q, want %d (%s)\n%s", c.name, e.code, e.stdout, c.code, c.reason, e.stderr)
		}
	}
}
