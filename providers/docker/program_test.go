package docker

import (
	"testing"

	"github.com/sandplan/sandplan/planner/policy"
)

// TestProgramIsWhereCommandsExpectIt: the sealed command of Codex starts sandplan's own program.
func TestProgramIsWhereCommandsExpectIt(t *testing.T) {
	if toolBinary != policy.Program {
		t.Errorf("the program lies at %s, and commands start %s", toolBinary, policy.Program)
	}
}
