package policy

import (
	"fmt"
	"net/netip"
)

// KindProbe is the kind of a command that tries to get out of its own sandbox.
const KindProbe = "probe"

// ProbeCommand is the name of the program within sandplan's binary that tries it.
const ProbeCommand = "probe"

// SealProbe makes the command that verifies an invocation's sandbox. It is that of the agent, with the
// probe in the place of the CLI and one canary in the place of the vendor's hosts: environment, files and
// credentials go the same ways, so that the container differs in nothing else.
func SealProbe(agent Command, canary Host) (Command, error) {
	if err := agent.check(agent.invocation, agent.vendor, agent.phase, ""); err != nil {
		return Command{}, err
	}
	if len(canary.Addresses) == 0 || !canary.TLS {
		return Command{}, fmt.Errorf("the canary of %s has no fixed address, or no TLS", agent.invocation)
	}
	for _, text := range canary.Addresses {
		// A probe reaches this machine and nobody else, whatever the caller says.
		if a, err := netip.ParseAddr(text); err != nil || !a.IsPrivate() {
			return Command{}, fmt.Errorf("the canary of %s is at %s, which is no private address", agent.invocation, text)
		}
	}
	return probeOf(agent, []Host{canary}), nil
}

// SealRunnerProbe makes the command that verifies the sandbox of an approved command. That one reaches nobody, so that
// there is no canary that it may reach.
func SealRunnerProbe(runner Command) (Command, error) {
	if err := runner.CheckRunner(runner.invocation, runner.vendor, runner.phase, runner.runner); err != nil {
		return Command{}, err
	}
	return probeOf(runner, nil), nil
}

// probeOf puts the probe in the place of a command.
func probeOf(c Command, hosts []Host) Command {
	c.kind, c.version = KindProbe, ""
	c.argv = []string{Program, ProbeCommand}
	c.stdin, c.preamble = true, ""
	c.tools, c.offered = nil, nil
	c.hosts = hosts
	c.digest = c.sum()
	return c
}
