package docker

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

var update = flag.Bool("update", false, "write docs/fields.md anew")

// docs/fields.md is the list of all rows: what -ignore and JSON call them, and why some are ignored.
func TestFieldsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Fields\n\n<!-- Written by `go test ./providers/docker -run FieldsAreDocumented -update` from the rows themselves. -->\n\n" +
		"Everything that sandplan compares of an object, by the path in the engine's inspect output. Plans, JSON, `drift` and\n" +
		"`-ignore ADDRESS.FIELD` use these paths. *replace*: a difference means that the object is made again. *set*: the value is put back\n" +
		"in place. *assigned*: chosen by the engine, and checked for its shape. *ignored*: not compared, for the reason given.\n" +
		"A property that is in none of these lists and not zero is a difference too.\n")
	for _, k := range kinds() {
		if len(k.table.rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| field | from | class |\n|---|---|---|\n", k.name)
		writeRows(&b, "", k.table)
	}
	path := filepath.Join("..", "..", "docs", "fields.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the rows say (%v); run this test with -update", path, err)
	}
}

// mayIgnore are how many rows of each kind are not compared. A new one needs more than a reason: it needs
// this number changed, under the eyes of whoever reads the change.
var mayIgnore = map[planner.Kind]int{
	planner.KindImage: 21, planner.KindPinned: 21, planner.KindShim: 3, planner.KindUplink: 2, planner.KindNetwork: 2, planner.KindProxy: 36, planner.KindAgent: 33, planner.KindRunner: 33,
}

func TestNoMoreFieldsAreIgnored(t *testing.T) {
	for _, k := range kinds() {
		n := 0
		for _, r := range k.table.rows {
			if r.class == planner.ClassIgnored {
				n++
			}
		}
		if n != mayIgnore[k.name] {
			t.Errorf("%d rows of %s are ignored, and there may be %d", n, k.name, mayIgnore[k.name])
		}
	}
}

func writeRows(b *strings.Builder, prefix string, tab *table) {
	for _, r := range tab.rows {
		path := joinPath(prefix, r.path)
		if r.members != nil {
			writeRows(b, path+"[…]", r.members)
			continue
		}
		from := "built in"
		if r.attr != "" {
			from = "`" + r.attr + "`"
		}
		class := r.class.String()
		switch {
		case r.class == planner.ClassAssigned:
			class += ": " + r.shape.name
		case r.reason != "":
			class += ": " + r.reason
		case r.ref:
			class += ", by ID"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, from, class)
	}
}

// An attribute in a row is one that the language has: plans show it as the user's own.
func TestAttributesOfRowsAreTheUsers(t *testing.T) {
	known := []string{"image", "user", "env", "worktree", "git", "prompt", "timeout", "credential", "argv", "command", "hosts", "dns", "subnet_pool",
		"limits.memory", "limits.cpus", "limits.pids", "limits.output", "limits.upload",
		"limits.download", "limits.tunnels", "limits.tunnels_per_second"}
	for _, k := range kinds() {
		for _, r := range k.table.rows {
			if r.attr != "" && !slices.Contains(known, r.attr) {
				t.Errorf("%s of %s comes from %q, which is no attribute of the language", r.path, k.name, r.attr)
			}
		}
	}
}
