package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSealProbe(t *testing.T) {
	s := fullSpec()
	addr := s.Invocations[0].Address
	agent, err := Seal(s, addr)
	if err != nil {
		t.Fatal(err)
	}
	canary := Host{Name: "canary.test", Port: 4711, TLS: true, Addresses: []string{"10.1.0.1"}, Decl: "verify"}
	probe, err := SealProbe(agent, canary)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Check(agent.Invocation(), agent.Vendor(), agent.Phase()); err != nil {
		t.Errorf("the probe cannot take the agent's place: %v", err)
	}
	if !slices.Equal(probe.Argv(), []string{Program, ProbeCommand}) || probe.Preamble() != "" || probe.Transcript() != nil {
		t.Errorf("argv %q, preamble %q", probe.Argv(), probe.Preamble())
	}
	// What the container is made of but for command and hosts is the agent's.
	for _, same := range []struct{ what, diff string }{
		{"environment", cmp.Diff(agent.Env(), probe.Env())},
		{"files", cmp.Diff(agent.Files(), probe.Files())},
		{"credentials", cmp.Diff(agent.Credentials(), probe.Credentials())},
	} {
		if same.diff != "" {
			t.Errorf("the %s differ (-agent +probe):\n%s", same.what, same.diff)
		}
	}
	if probe.Writable() != agent.Writable() || probe.Digest() == agent.Digest() {
		t.Errorf("writable %v and %v, digests %s and %s", agent.Writable(), probe.Writable(), agent.Digest(), probe.Digest())
	}
	if d := cmp.Diff([]Host{canary}, probe.Hosts()); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
}

// A probe in a runner's place reaches nobody, and has what the runner has.
func TestSealRunnerProbe(t *testing.T) {
	s := fullSpec()
	addr, name := "", ""
	for _, inv := range s.Invocations {
		for _, p := range s.Phases {
			if p.Name == inv.Phase.V && len(p.Runners) > 0 {
				addr, name = inv.Address, p.Runners[0].Name
			}
		}
	}
	runner, err := SealRunner(s, addr, name)
	if err != nil {
		t.Fatal(err)
	}
	probe, err := SealRunnerProbe(runner)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.CheckRunner(runner.Invocation(), runner.Vendor(), runner.Phase(), name); err != nil {
		t.Errorf("the probe cannot take the runner's place: %v", err)
	}
	if err := probe.Check(runner.Invocation(), runner.Vendor(), runner.Phase()); err == nil {
		t.Error("the probe of a runner passes for an agent's")
	}
	if !slices.Equal(probe.Argv(), []string{Program, ProbeCommand}) || len(probe.Hosts()) > 0 || len(probe.Credentials()) > 0 || probe.Digest() == runner.Digest() {
		t.Errorf("argv %q, hosts %v, credentials %v", probe.Argv(), probe.Hosts(), probe.Credentials())
	}
	if d := cmp.Diff(runner.Env(), probe.Env()); d != "" {
		t.Errorf("the environment differs (-runner +probe):\n%s", d)
	}
	agent, err := Seal(s, addr)
	if err != nil {
		t.Fatal(err)
	}
	forged := runner
	forged.writable = !forged.writable
	for what, c := range map[string]Command{"an agent's command": agent, "an edited one": forged} {
		if _, err := SealRunnerProbe(c); err == nil {
			t.Errorf("%s is sealed as a runner's probe", what)
		}
	}
}

func TestSealProbeRefuses(t *testing.T) {
	s := fullSpec()
	agent, err := Seal(s, s.Invocations[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	forged := agent
	forged.writable = !forged.writable
	for _, tc := range []struct {
		name, reason, want string
		agent              Command
		canary             Host
	}{
		{"public address", "a probe must not reach anybody but the canary", "no private address", agent, Host{Name: "c.test", Port: 1, TLS: true, Addresses: []string{"1.1.1.1"}}},
		{"no address", "a name would be looked up, and verify is offline", "no fixed address", agent, Host{Name: "c.test", Port: 1, TLS: true}},
		{"no TLS", "the hello could not be checked", "no TLS", agent, Host{Name: "c.test", Port: 1, Addresses: []string{"10.1.0.1"}}},
		{"forged", "only what policy has sealed", "nothing has sealed", forged, Host{Name: "c.test", Port: 1, TLS: true, Addresses: []string{"10.1.0.1"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := SealProbe(tc.agent, tc.canary); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error is %v, want one with %q", tc.reason, err, tc.want)
			}
		})
	}
}
