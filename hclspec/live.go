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

// attributes are the fields by their names in the language.
func (l Live) attributes() map[string]string {
	return map[string]string{
		"network_name": l.NetworkName, "subnet": l.Subnet, "proxy_address": l.ProxyAddress, "proxy_name": l.ProxyName,
		"agent_name": l.AgentName, "network_id": l.NetworkID, "proxy_id": l.ProxyID, "agent_id": l.AgentID,
	}
}

// liveType is what one instance of invocation.N is in outputs and checks.
var liveType = func() cty.Type {
	attrs := map[string]cty.Type{"address": cty.String}
	for name := range (Live{}).attributes() {
		attrs[name] = cty.String
	}
	return cty.Object(attrs)
}()

func (l Live) object(address string) cty.Value {
	attrs := map[string]cty.Value{"address": cty.StringVal(address)}
	for name, v := range l.attributes() {
		attrs[name] = cty.StringVal(v)
		if v == "" {
			attrs[name] = cty.UnknownVal(cty.String)
		}
	}
	return cty.ObjectVal(attrs)
}

// liveValue is invocation.N: one object, a map of them (for_each) or a list (count).
func (f *form) liveValue(name string, live map[string]Live) cty.Value {
	if !f.known {
		switch f.repeat {
		case "for_each":
			return cty.UnknownVal(cty.Map(liveType))
		case "count":
			return cty.UnknownVal(cty.List(liveType))
		}
		return cty.UnknownVal(liveType)
	}
	byKey := map[string]cty.Value{}
	var list []cty.Value
	for _, key := range f.keys {
		address := instanceAddress(name, key)
		v := live[address].object(address)
		list = append(list, v)
		if s, ok := key.(string); ok {
			byKey[s] = v
		}
	}
	switch {
	case f.repeat == "":
		return list[0]
	case f.repeat == "for_each" && len(byKey) > 0:
		return cty.MapVal(byKey)
	case f.repeat == "for_each":
		return cty.MapValEmpty(liveType)
	case len(list) > 0:
		return cty.ListVal(list)
	}
	return cty.ListValEmpty(liveType)
}

// lateBlocks are outputs and checks, with an evaluator that knows what they may refer to.
type lateBlocks struct {
	ev      *evaluator
	outputs []*section
	checks  []*section
}

// late reads the output and check blocks from the sources again, and restores what they refer to from
// the Scope: the same way for a Spec of this process and for one from a plan file.
func (s *Spec) late(live map[string]Live) (lateBlocks, hcl.Diagnostics) {
	ev := newEvaluator(newDisk(s.FS), s.Dir, newMeter(allowance))
	late := lateBlocks{ev: ev}
	diags := s.Scope.restore(ev)
	for _, name := range s.Scope.Configs {
		// Load has reported what is wrong with the rest of these files.
		body, more := parseConfig(s.Sources[name], name, ev.meter)
		if more.HasErrors() {
			diags = append(diags, more...)
			continue
		}
		content, _ := body.Content(configShape.schema())
		for _, b := range content.Blocks {
			switch b.Type {
			case "output":
				o, more := outputShape.open(b)
				late.outputs, diags = append(late.outputs, o), append(diags, more...)
			case "check":
				c, more := checkShape.open(b)
				late.checks, diags = append(late.checks, c), append(diags, more...)
			}
		}
	}
	sortSections(late.outputs)
	sortSections(late.checks)
	for _, name := range sortedKeys(s.Scope.Invocations) {
		ev.forms[name] = s.Scope.Invocations[name].form()
		ev.declared[rootInvocation] = append(ev.declared[rootInvocation], name)
		ev.values[rootInvocation+"."+name] = ev.forms[name].liveValue(name, live)
	}
	return late, diags
}
