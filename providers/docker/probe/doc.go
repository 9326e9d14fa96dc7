// Package probe is the program that `sandplan verify` runs in the place of an agent's command: it tries to
// get out of the sandbox, in every way that is listed in Attempts, and says how far it came. The same
// program runs without the boundary, where every attempt has to succeed: what fails there too proves
// nothing. And it is the canary, which sees from the host's network what got out.
//
// It must not harm where it succeeds: nothing is written that is not removed, no setting of the kernel is
// changed, and what would be the end of a machine is only opened. What came of an attempt is judged
// elsewhere, from what was seen outside as much as from what stands here. Start with attempts.go.
package probe

// Command is the name of the program within sandplan's binary.
const Command = "probe"
