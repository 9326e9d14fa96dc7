package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// TestRecordsHoldToTheirSchema validates records of runs that ended in different ways, and reads them
// back; and wants the schema to refuse what is none.
func TestRecordsHoldToTheirSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/schema/run.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(b []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	for name, c := range map[string]struct {
		set    func(*bench, *fakeTree)
		code   int
		reason string
	}{
		"good": {func(*bench, *fakeTree) {}, 0, "a run that went well"},
		"drift": {func(b *bench, _ *fakeTree) {
			b.object(login.With(planner.PartAgent)).Observed[0].Value = planner.JSON(2)
		}, 125, "findings with values"},
		"proof": {func(b *bench, _ *fakeTree) {
			b.agentProgram(shimProgram(func(ch wire.Challenge) wire.Report {
				return wire.Report{Nonce: ch.Nonce, Checks: []wire.Check{{Name: "net.vendor", Detail: "no answer"}}}
			}, sayHello))
		}, 121, "failed checks"},
		"left": {func(b *bench, tree *fakeTree) {
			b.agentProgram(shimProgram(goodReport, func(context.Context, *fakeProcess, wire.Bundle) int {
				tree.set(nil, planner.Mark{Path: "a\xff/.git", Kind: planner.MarkGuarded, ID: "1"})
				return 0
			}))
		}, 120, "a name that is no text"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b, tree := newBench(t), &fakeTree{fakeCompiled: fakeCompiled{testResources()}}
				b.Compile = func(context.Context, planner.Snapshot) (Compiled, error) { return tree, nil }
				c.set(b, tree)
				res := b.run(t.Context())
				if res.Code != c.code {
					t.Fatalf("code %d, want %d: %v", res.Code, c.code, res.Decision)
				}
				text, err := os.ReadFile(filepath.Join(res.RecordDir, recordFile))
				if err != nil {
					t.Fatal(err)
				}
				if err := valid(text); err != nil {
					t.Errorf("%v (%s)\n%s", err, c.reason, text)
				}
				rec, err := ReadRecord(b.DataDir, res.RunID)
				if err != nil || rec.Exit.Code != c.code || len(rec.Files()) == 0 {
					t.Errorf("read back: %+v, %v", rec, err)
				}
				if ids, err := RunIDs(b.DataDir); err != nil || len(ids) != 1 || ids[0] != res.RunID {
					t.Errorf("runs %q, %v", ids, err)
				}
				for _, wrong := range []string{`"exit": {`, `"scope": `, `"by": "`} {
					if valid(bytes.Replace(text, []byte(wrong), []byte(strings.Replace(wrong, `": `, `_": `, 1)), 1)) == nil {
						t.Errorf("a record with a wrong %s is let pass", wrong)
					}
				}
			})
		})
	}
}

func TestRunsWithoutARecord(t *testing.T) {
	dir := t.TempDir()
	const id = "20260102T150405Z-0a1b2c3d"
	if err := os.MkdirAll(filepath.Join(dir, "runs", id), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runs", "..x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if ids, err := RunIDs(dir); err != nil || len(ids) != 1 {
		t.Errorf("%q, %v", ids, err)
	}
	if _, err := ReadRecord(dir, id); !errors.Is(err, ErrNoRecord) {
		t.Errorf("%v, want that it has none", err)
	}
	if _, err := ReadRecord(dir, "../../etc"); err == nil || !strings.Contains(err.Error(), "not the ID of a run") {
		t.Errorf("a path passed for an ID: %v", err)
	}
}
