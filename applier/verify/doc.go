// Package verify tries out whether a sandbox holds. It makes the objects of an invocation once more, in a
// scope of its own, with a probe in the place of the agent's command and a canary in the place of the
// vendor, runs it by launch as any agent is run, and judges each attempt by what was seen outside.
//
// It must never call a boundary held that it has not seen give way elsewhere: every attempt has a control,
// and without that its result is "not proven". Nothing that it makes stays. Start with verify.go; judge.go
// says what counts as an escape.
package verify
