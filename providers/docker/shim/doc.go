// Package shim is the first process of an agent's or a runner's container.
//
// It proves the sandbox from the inside, says on standard output what it found, and waits. Only when
// sandplan has judged that report, has looked at the running containers once more and has sent the
// prompt and the credentials does it execute the command, as its child, and watch over it: the lease
// on standard input, the declared time, the output bound, the proxy, the mounts. When one of them
// ends, so does every process in the container.
//
// A proof that fails is final: the report says what is wrong, and no message from outside makes the
// shim execute anything after it. The shim trusts neither the engine nor its own container's
// environment; all that it expects stands in its Config, which is its whole command line.
//
// The command runs as the same user as the shim. The shim is therefore not dumpable (so that
// /proc/1/mem and ptrace fail) and catches every signal that can be caught (the kernel protects
// process 1 from the others); the seccomp profile denies the rest.
//
// It knows nothing of Docker's API and of sandplan's other packages but wire. Start with Main, then
// prove.go (which checks there are), then guard.go (what ends a run).
package shim
