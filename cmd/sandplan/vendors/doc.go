// Package vendors runs the real CLIs of Claude Code and Codex in their sandboxes on the real engine,
// against a mock of both vendors, and holds sandplan to what goes over the wire: which tools the model is
// offered, what becomes of the calls that it makes, and what a hostile worktree can add to either.
//
// It needs the agent images, so that its tests have the build tag vendors, and run as `make test-vendors`.
// Start with proof_test.go.
package vendors
