package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// TestBegun: from the gate on a run says whose it is and that it goes on, and it is let go when its record is there.
func TestBegun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		asked := b.Now()
		compile, looks := b.Compile, 0
		b.Compile = func(ctx context.Context, s planner.Snapshot) (Compiled, error) {
			ids, err := RunIDs(b.DataDir)
			if err != nil || len(ids) != 1 {
				t.Fatalf("runs %q, %v", ids, err)
			}
			got, err := ReadBegun(b.DataDir, ids[0])
			if err != nil || !got.Held || got.Invocation != login || got.Runner != "" || got.At.Before(asked) {
				t.Errorf("while it runs: %+v, %v", got, err)
			}
			if _, err := ReadRecord(b.DataDir, ids[0]); looks > 0 && !errors.Is(err, ErrNoRecord) {
				t.Errorf("at look %d it has a record already: %v", looks, err)
			}
			looks++
			return compile(ctx, s)
		}
		res := b.run(t.Context())
		if res.Code != 0 || res.Unsettled != nil || looks < 2 {
			t.Fatalf("code %d, unsettled %v, %d looks", res.Code, res.Unsettled, looks)
		}
		if got, err := ReadBegun(b.DataDir, res.RunID); err != nil || got.Held || got.Invocation != login {
			t.Errorf("when it has ended: %+v, %v", got, err)
		}
	})
}

// TestBegunIsForgotten: a run that is refused before anything was compared leaves nothing.
func TestBegunIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(t)
		seen := 0
		b.Compile = func(context.Context, planner.Snapshot) (Compiled, error) {
			ids, _ := RunIDs(b.DataDir)
			seen = len(ids)
			return nil, errors.New("no such configuration")
		}
		res := b.run(t.Context())
		ids, err := RunIDs(b.DataDir)
		if res.Code != int(CodeRefused) || res.Unsettled != nil || seen != 1 || err != nil || len(ids) != 0 {
			t.Errorf("code %d, unsettled %v, %d runs before, %q after, %v", res.Code, res.Unsettled, seen, ids, err)
		}
	})
}

// TestReadBegun: what cannot be read is empty, what is not held is over.
func TestReadBegun(t *testing.T) {
	const id = "20260102T150405Z-0a1b2c3d"
	whole, err := json.Marshal(Begun{Invocation: login, Runner: "r", At: time.Unix(1, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text, reason string
		want         Begun
	}{
		{string(whole), "one of a sandplan that was killed", Begun{Invocation: login, Runner: "r", At: time.Unix(1, 0).UTC()}},
		{"", "one of a machine that lost its power", Begun{}},
		{`{"invocation":"invocation.x","at":1}`, "no half of one", Begun{}},
	} {
		data := t.TempDir()
		if _, err := ReadBegun(data, id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no file: %v", err)
		}
		if err := os.MkdirAll(filepath.Join(data, "runs", id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, "runs", id, begunFile), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadBegun(data, id); err != nil || got != tt.want {
			t.Errorf("%+v, %v, want %+v (%s)", got, err, tt.want, tt.reason)
		}
	}
}
