package hclspec

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var providerShape = &shape{label: "name", optional: []string{"host", "subnet_pool", "dns"}}

// defaultPool is where networks come from unless the configuration says otherwise.
var defaultPool = netip.MustParsePrefix("10.213.0.0/16")

// engineHost is the address of a local engine.
var engineHost = format[string]{summary: InvalidEngineHost, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	socket, ok := strings.CutPrefix(s, "unix://")
	if !ok || !filepath.IsAbs(socket) || strings.ContainsRune(s, 0) {
		return "", fmt.Errorf(`%q is not a local engine; write the path of its socket, as in "unix:///var/run/docker.sock"`, clip(s))
	}
	return s, nil
}}

// decodeProvider reads provider "docker", or its defaults when s is nil.
func (ev *evaluator) decodeProvider(s *section, where hcl.Range) (Provider, hcl.Diagnostics) {
	if s == nil {
		return Provider{
			Host:       Val[string]{Range: where},
			SubnetPool: Val[netip.Prefix]{V: defaultPool, Range: where},
			DNS:        Val[[]netip.Addr]{Range: where},
			Range:      where,
		}, nil
	}
	r := &reader{section: s, ev: ev, sc: generalScope()}
	p := Provider{
		Host:       read(r, "host", engineHost, ""),
		SubnetPool: read(r, "subnet_pool", pool, defaultPool),
		DNS:        read(r, "dns", addresses, nil),
		Range:      s.block.DefRange,
	}
	return p, r.diags
}

// checkProviderName refuses providers that do not exist.
func (s *section) checkProviderName() hcl.Diagnostics {
	if s.name == "docker" {
		return nil
	}
	return fail(UnknownProvider, s.block.LabelRanges[0], `The only provider is "docker", and this is %q.`, clip(s.name))
}
