package hclspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Live is what an instance of an invocation is known by only after planning, or after applying. A
// field that is not known yet is "".
type Live struct {
	NetworkName  string // known at plan
	Subnet       string // known at plan
	ProxyAddress string // known at plan
	ProxyName    string // known at plan
	AgentName    string // known at plan
	NetworkID    string
	ProxyID      string
	AgentID      string
}

// Output is one evaluated output.
type Output struct {
	Name        string
	Description string
	// Sensitive values are never printed, not even as JSON. Value is there all the same.
	Sensitive bool
	// Value may be unknown, or hold unknown parts, until everything is applied.
	Value cty.Value
	Range hcl.Range
}

// EvalOutputs evaluates the output blocks. live is by the address of the instance.
func (s *Spec) EvalOutputs(live map[string]Live) (map[string]Output, hcl.Diagnostics) {
	return map[string]Output{}, nil
}

// EvalChecks evaluates the check blocks. An assertion that does not hold is a warning; one that
// depends on what is not known yet is passed over.
func (s *Spec) EvalChecks(live map[string]Live) hcl.Diagnostics {
	return nil
}
