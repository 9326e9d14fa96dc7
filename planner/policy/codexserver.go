package policy

import (
	"encoding/json"
	"fmt"
)

// Program is where sandplan's own program lies in every agent's container: the first process, and for
// Codex also the one that stands beside it.
const Program = "/.sandplan/sandplan"

// CodexCommand is the name of the program within the binary that drives Codex.
const CodexCommand = "codex"

// CodexServer says how Codex is driven. It is the one argument of the program, so that inspect shows it
// and the gate compares it.
type CodexServer struct {
	// Argv starts Codex's app server.
	Argv []string `json:"argv"`
	// Version is what the app server must say that it is.
	Version string `json:"version"`
	Dir     string `json:"dir"`
	Model   string `json:"model"`
	Sandbox string `json:"sandbox"`
	// Approval is when Codex asks before it applies a patch: "untrusted" is always, and "never" goes with a
	// sandbox that applies none.
	Approval string `json:"approval"`
	// Protected are names that no part of a patched path may have.
	Protected []string `json:"protected"`
	// Tools are sandplan's own that the model may call: read_file, list_dir, search.
	Tools []string `json:"tools"`
	// Wipe are the files with credentials: Codex has read them when it has begun, and its own patches could
	// move them into the worktree.
	Wipe []string `json:"wipe"`
	// PatienceMS is how long the vendor may be out of reach before the run has failed.
	PatienceMS int64 `json:"patience_ms"`
}

// argv is the command that drives it.
func (s CodexServer) argv() []string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("a driver of Codex without a JSON form: %v", err))
	}
	return []string{Program, CodexCommand, string(raw)}
}
