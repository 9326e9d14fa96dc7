package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Codex's own sandbox cannot start in the container, so that it applies patches without one. But it asks
// for each first, and this program says yes to those of the worktree alone. Which files a patch is about
// Codex says beforehand, with the same identifier.

// patch is what is known of the patches of one identifier. The model chooses it, and may choose it twice:
// then what is known of all of them counts for each, and each needs an agreement of its own.
type patch struct {
	paths   []string
	granted []string // the paths that the last agreement was about
	agreed  int      // agreements that no patch has used
}

// fileChange is an item about files, or a notification of what became of one.
type fileChange struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Status  string `json:"status"`
	Changes []struct {
		Path string `json:"path"`
		Kind struct {
			Move *string `json:"move_path"`
		} `json:"kind"`
	} `json:"changes"`
}

func (c fileChange) paths() []string {
	var out []string
	for _, ch := range c.Changes {
		out = append(out, ch.Path)
		if m := ch.Kind.Move; m != nil && *m != "" {
			out = append(out, *m)
		}
	}
	return out
}

// learn remembers which files an item is about, and sees that no patch was applied that nobody has agreed
// to.
func (t *turn) learn(method string, params json.RawMessage) error {
	var p struct {
		Item fileChange `json:"item"`
	}
	if err := json.Unmarshal(params, &p); err != nil || p.Item.Type != "fileChange" {
		return nil // other items have other forms
	}
	if t.patches == nil {
		t.patches = map[string]*patch{}
	}
	known := t.patches[p.Item.ID]
	if known == nil {
		known = &patch{}
		t.patches[p.Item.ID] = known
	}
	if method == "item/completed" && p.Item.Status == "completed" {
		if known.agreed == 0 {
			return fmt.Errorf("a patch of %s was applied without asking", quoted(p.Item.paths()))
		}
		for _, path := range p.Item.paths() {
			if !slices.Contains(known.granted, path) {
				return fmt.Errorf("a patch was applied to %s, and asked for was %s", strconv.Quote(path), quoted(known.granted))
			}
		}
		known.agreed--
	}
	known.paths = append(known.paths, p.Item.paths()...)
	return nil
}

// approve answers the question whether a patch may be applied.
func (t *turn) approve(m message) error {
	var p struct {
		Item  string  `json:"itemId"`
		Grant *string `json:"grantRoot"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return err
	}
	known := t.patches[p.Item]
	if err := t.judge(known, p.Grant); err != nil {
		t.events.put(event{"type": "error", "message": "sandplan refuses a patch: " + err.Error()})
		return t.conn.answer(m.ID, event{"decision": "decline"})
	}
	known.granted = slices.Clone(known.paths)
	known.agreed++
	return t.conn.answer(m.ID, event{"decision": "accept"})
}

func (t *turn) judge(known *patch, grant *string) error {
	switch {
	case t.cfg.Approval != "untrusted":
		return fmt.Errorf("this phase changes nothing")
	case grant != nil:
		return fmt.Errorf("it wants leave to write below %s", strconv.Quote(*grant))
	case known == nil || len(known.paths) == 0:
		return fmt.Errorf("it does not say which files it is about")
	}
	for _, path := range known.paths {
		if err := t.reader.MayChange(path, t.cfg.Protected); err != nil {
			return err
		}
	}
	return nil
}

func quoted(paths []string) string { return fmt.Sprintf("%q", paths) }
