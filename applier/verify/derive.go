package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// limit bounds a probe. It needs seconds; an invocation whose own timeout is shorter keeps that.
const limit = 10 * time.Minute

// secondPhase is the phase of the second invocation: it may read.
const secondPhase = "sandplan_verify"

// derive is the declaration of what is verified: the subjects as they are declared, in a scope of their own,
// and a second invocation beside them that lies in the directory tree. A prompt is no part of a sandbox, and
// is how a probe gets its job.
func derive(s *hclspec.Spec, subjects []hclspec.Invocation, workspace, tree string) (spec *hclspec.Spec, second hclspec.Invocation) {
	out := *s
	out.Workspace = workspace
	out.Invocations, out.Phases = nil, slices.Clone(s.Phases)
	for _, inv := range subjects {
		inv.Prompt, inv.PromptSensitive = hclspec.Val[string]{}, false
		inv.AfterRun.V = "keep" // everything is removed at the end
		inv.Limits = withRoom(inv.Limits)
		out.Invocations = append(out.Invocations, inv)
	}
	first := subjects[0]
	out.Phases = append(out.Phases, hclspec.Phase{Name: secondPhase, Base: hclspec.Val[string]{V: "planning"}, Range: first.Range})
	second = hclspec.Invocation{
		Name: freeName(s.Invocations), Vendor: first.Vendor, Phase: hclspec.Val[string]{V: secondPhase, Range: first.Range},
		Worktree: hclspec.Val[string]{V: tree, Range: first.Range, Set: true}, Timeout: hclspec.Val[time.Duration]{V: limit, Range: first.Range},
		Git: hclspec.Val[string]{V: "read-only", Range: first.Range}, AfterRun: hclspec.Val[string]{V: "keep", Range: first.Range},
		Limits: withRoom(first.Limits), Range: first.Range,
	}
	second.Address = string(planner.InvocationAddress(second.Name, nil))
	out.Invocations = append(out.Invocations, second)
	slices.SortFunc(out.Invocations, func(a, b hclspec.Invocation) int {
		if planner.Address(a.Address).Less(planner.Address(b.Address)) {
			return -1
		}
		return 1
	})
	return &out, second
}

// withRoom lets the proxy hear every attempt: one that is refused for being too many shows nothing of the rule
// that it tries.
func withRoom(l hclspec.Limits) hclspec.Limits {
	const tunnels, perSecond = 256, 100
	l.Tunnels.V, l.TunnelsPerSecond.V = max(l.Tunnels.V, tunnels), max(l.TunnelsPerSecond.V, perSecond)
	l.Download.V = hclspec.NoBound
	return l
}

// freeName is a name that no invocation has.
func freeName(all []hclspec.Invocation) string {
	name := "second"
	for n := 2; slices.ContainsFunc(all, func(i hclspec.Invocation) bool { return i.Name == name }); n++ {
		name = fmt.Sprintf("second_%d", n)
	}
	return name
}

// seal seals a probe in the place of each agent, and of each runner.
func seal(canary policy.Host) func(s *hclspec.Spec, addr, runner string) (policy.Command, error) {
	return func(s *hclspec.Spec, addr, runner string) (policy.Command, error) {
		if runner != "" {
			c, err := policy.SealRunner(s, addr, runner)
			if err != nil {
				return policy.Command{}, err
			}
			return policy.SealRunnerProbe(c)
		}
		agent, err := policy.Seal(s, addr)
		if err != nil {
			return policy.Command{}, err
		}
		return policy.SealProbe(agent, canary)
	}
}

// box is one sandbox: of an invocation's agent, or of a runner where that is named.
type box struct {
	inv    hclspec.Invocation
	runner string
}

// addr is that of what is verified: the invocation itself stands for its agent.
func (b box) addr() planner.Address {
	if b.runner != "" {
		return planner.Address(b.inv.Address).Runner(b.runner)
	}
	return planner.Address(b.inv.Address)
}

// container is the address of its container.
func (b box) container() planner.Address {
	if b.runner != "" {
		return b.addr()
	}
	return b.addr().With(planner.PartAgent)
}

// boxes are all sandboxes of invocations, each agent's before those of its runners.
func boxes(s *hclspec.Spec, invocations []hclspec.Invocation) []box {
	var out []box
	for _, inv := range invocations {
		out = append(out, box{inv: inv})
		for _, p := range s.Phases {
			if p.Name != inv.Phase.V {
				continue
			}
			for _, r := range p.Runners {
				out = append(out, box{inv, r.Name})
			}
		}
	}
	return out
}

// timeout is how long the command of a box may take.
func (b box) timeout(s *hclspec.Spec) time.Duration {
	for _, p := range s.Phases {
		for _, r := range p.Runners {
			if b.runner != "" && p.Name == b.inv.Phase.V && r.Name == b.runner {
				return r.Timeout.V
			}
		}
	}
	return b.inv.Timeout.V
}
