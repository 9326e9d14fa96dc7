package launch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

func (c fakeCompiled) Special(context.Context, planner.Address) ([]planner.Mark, error) {
	return nil, nil
}

func (c fakeCompiled) Unmoved([]planner.Source) error { return nil }

func (c fakeCompiled) Tree(planner.Address) (func(context.Context) (planner.Tree, error), error) {
	return func(context.Context) (planner.Tree, error) {
		return planner.Tree{SHA256: "0", Marks: []planner.Mark{}}, nil
	}, nil
}

// fakeTree is a worktree whose contents tests change.
type fakeTree struct {
	fakeCompiled
	mu    sync.Mutex
	marks []planner.Mark
	err   error
	moved error
}

func (f *fakeTree) Unmoved([]planner.Source) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moved
}

func (f *fakeTree) move(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = err
}

func (f *fakeTree) set(err error, marks ...planner.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks, f.err = marks, err
}

func (f *fakeTree) Special(context.Context, planner.Address) ([]planner.Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.marks), func(m planner.Mark) bool { return !m.Kind.Special() }), f.err
}

func (f *fakeTree) Tree(planner.Address) (func(context.Context) (planner.Tree, error), error) {
	return func(context.Context) (planner.Tree, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return planner.Tree{SHA256: "0", Marks: append([]planner.Mark{}, f.marks...)}, f.err
	}, nil
}

func TestWhatIsLeftInTheWorktree(t *testing.T) {
	servers := planner.Mark{Path: "x\x1b[2J/.mcp.json", Kind: planner.MarkGuarded, ID: "1"}
	fifo := planner.Mark{Path: "f", Kind: planner.MarkFIFO}
	unseen := errors.New("one entry more than are looked at")
	for name, c := range map[string]struct {
		before, during, after []planner.Mark
		beforeErr, afterErr   error
		agent                 int // its own exit code
		code                  Code
		by                    string
		text                  string // of the decision or its findings
		reason                string
	}{
		"nothing":            {code: 0, by: ByAgent, reason: "the agent's own code"},
		"there before":       {before: []planner.Mark{servers}, during: []planner.Mark{servers}, after: []planner.Mark{servers}, by: ByAgent, reason: "the team's own settings"},
		"new":                {after: []planner.Mark{servers}, code: CodeDrift, by: BySandplan, text: `"x\x1b[2J/.mcp.json" is new`, reason: "named and quoted"},
		"of a failed agent":  {after: []planner.Mark{servers}, agent: 7, code: CodeDrift, by: BySandplan, text: `.mcp.json" is new`, reason: "whatever the agent says"},
		"unseen":             {afterErr: unseen, code: CodeDrift, by: BySandplan, text: "one entry more", reason: "an agent could hide behind a flood"},
		"special before":     {before: []planner.Mark{fifo}, code: CodeRefused, by: BySandplan, text: `"f"`, reason: "nothing is started"},
		"unseen before":      {beforeErr: unseen, code: CodeRefused, by: BySandplan, text: "one entry more", reason: "nothing is started"},
		"special in mid-run": {during: []planner.Mark{fifo}, code: CodeDrift, by: BySandplan, text: "a way out of the sandbox appeared", reason: "stopped before it ends by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newBench(t)
				tree := &fakeTree{fakeCompiled: fakeCompiled{testResources()}}
				tree.set(c.beforeErr, c.before...)
				b.Compile = func(context.Context, planner.Snapshot) (Compiled, error) { return tree, nil }
				b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, f wire.Bundle) int {
					tree.set(nil, c.during...)
					code := runFor(10*time.Second, c.agent)(ctx, p, f)
					tree.set(c.afterErr, c.after...)
					return code
				}))
				res := b.run(t.Context())
				if Code(res.Code) != c.code || res.By != c.by {
					t.Fatalf("code %d by %s, want %d by %s (%s)", res.Code, res.By, c.code, c.by, c.reason)
				}
				if c.by == ByAgent {
					return
				}
				told := res.Decision.Error()
				for _, f := range res.Decision.Findings {
					told += "\n" + f.Text
				}
				if !strings.Contains(told, c.text) {
					t.Errorf("%q does not say %q (%s)", told, c.text, c.reason)
				}
			})
		})
	}
}

// TestMovedWhileItRuns moves the worktree away at any moment: in mid-run the agent is stopped within a
// second, at its very end the run fails, because what was looked over was another tree.
func TestMovedWhileItRuns(t *testing.T) {
	for name, c := range map[string]struct{ at, most time.Duration }{
		"before the prompt": {0, 2 * time.Second},
		"in mid-run":        {5 * time.Second, 7 * time.Second},
		"at the end":        {10 * time.Second, 11 * time.Second},
	} {
		inBubble(t, func(t *testing.T) {
			b := newBench(t)
			tree := &fakeTree{fakeCompiled: fakeCompiled{testResources()}}
			b.Compile = func(context.Context, planner.Snapshot) (Compiled, error) { return tree, nil }
			moved := errors.New("/home/joe/tree is something else")
			if c.at == 0 {
				b.after = func(call string, _ int) {
					if call == "start "+string(login.With(planner.PartAgent)) {
						tree.move(moved)
					}
				}
			}
			b.agentProgram(shimProgram(goodReport, func(ctx context.Context, p *fakeProcess, f wire.Bundle) int {
				if c.at == 0 {
					t.Errorf("%s: the agent got its prompt", name)
				}
				time.AfterFunc(c.at, func() { tree.move(moved) })
				code := runFor(10*time.Second, 0)(ctx, p, f)
				tree.move(moved)
				return code
			}))
			began := time.Now()
			res := b.run(t.Context())
			if Code(res.Code) != CodeDrift || !strings.Contains(res.Decision.Error(), moved.Error()) || time.Since(began) > c.most {
				t.Errorf("%s: code %d (%v) after %s", name, res.Code, res.Decision, time.Since(began))
			}
		})
	}
}

// TestTheRecordHasTheWorktree wants both hashes and what changed in the record.
func TestTheRecordHasTheWorktree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		tree := &fakeTree{fakeCompiled: fakeCompiled{testResources()}}
		b.Compile = func(context.Context, planner.Snapshot) (Compiled, error) { return tree, nil }
		b.agentProgram(shimProgram(goodReport, func(context.Context, *fakeProcess, wire.Bundle) int {
			tree.set(nil, planner.Mark{Path: "sub/.git", Kind: planner.MarkGuarded, ID: "1"})
			return 0
		}))
		res := b.run(t.Context())
		text, err := os.ReadFile(filepath.Join(res.RecordDir, recordFile))
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Predicate struct {
				Tree recordTreeJSON `json:"worktree_contents"`
			} `json:"predicate"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		got := s.Predicate.Tree
		if got.Before.SHA256 != "0" || got.After.SHA256 != "0" || len(got.Changes) != 1 || got.Changes[0].What != "new" || got.Changes[0].Mark.Path != "sub/.git" {
			t.Errorf("%+v", got)
		}
	})
}

type recordTreeJSON struct {
	Before, After struct{ SHA256 string }
	Changes       []struct {
		What string
		Mark struct{ Path, Kind string }
	}
}
