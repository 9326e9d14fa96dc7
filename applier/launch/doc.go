// Package launch runs an agent, or a runner, in the containers that apply armed: it refuses unless the
// engine has exactly what is declared, starts the proxy and the agent's first process, believes nothing
// before that process has proven the sandbox from the inside, and only then hands over the prompt and
// the credentials. It watches while the agent runs, stops it when something changes, and settles.
//
// It knows no engine but through the interfaces of engine.go, prints nothing and never exits. Start
// with launch.go, which has the steps in their order; each step has a file of its own.
package launch
