package hclspec

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var vendorShape = &shape{
	label:    "name",
	required: []string{"image"},
	optional: []string{"kind", "version", "model", "env", "hosts", "command"},
	blocks:   map[string]*shape{"host": hostShape, "credential": credentialShape},
}

// customKind is the kind of vendor that brings its own command and hosts.
const customKind = "custom"

// vendorType is what vendor.N is in expressions: the same for all, so that a condition or a map may
// hold any of them.
var vendorType = cty.Object(map[string]cty.Type{
	"name": cty.String, "kind": cty.String, "image": cty.String, "version": cty.String, "model": cty.String,
	"hosts": cty.List(cty.String),
})

var cliVersion = format[string]{summary: InvalidCLIVersion, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	if !regexp.MustCompile(`^[0-9]{1,9}(?:\.[0-9]{1,9}){2}(?:-[0-9A-Za-z.-]{1,40})?$`).MatchString(s) {
		return "", fmt.Errorf(`%q is not a version; write the whole version of the CLI, as in "2.1.332"`, clip(s))
	}
	return s, nil
}}

var modelName = format[string]{summary: InvalidModel, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	// A model that begins with a hyphen would be read as an option of the CLI.
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,127}$`).MatchString(s) {
		return "", fmt.Errorf(`%q is not the name of a model; write it as in "sonnet": letters, digits and . _ : / @ [ ] -, not first`, clip(s))
	}
	return s, nil
}}

// decodeVendor reads a vendor block.
func (ev *evaluator) decodeVendor(s *section, cat Catalog) (Vendor, hcl.Diagnostics) {
	r := &reader{section: s, ev: ev, sc: generalScope()}
	r.diags = append(r.diags, s.checkName()...)
	kinds := append(sortedKeys(cat.Vendors), customKind)
	def := ""
	if _, ok := cat.Vendors[s.name]; ok {
		def = s.name
	}
	v := Vendor{Name: s.name, Range: s.block.DefRange}
	v.Kind = read(r, "kind", oneOf(kinds...), def)
	if v.Kind.V == "" && !v.Kind.Unknown {
		r.diags = append(r.diags, problem(MissingKind, s.block.DefRange, "vendor %q is no built-in vendor, so it needs a kind: %s.%s",
			clip(s.name), orList(quoted(kinds)), suggest(s.name, kinds)))
		v.Kind.Unknown = true
	}
	builtin, isBuiltin := cat.Vendors[v.Kind.V]
	v.Image = read(r, "image", image, "")
	v.Env = readEnv(r)
	v.Version = read(r, "version", cliVersion, builtin.Version)
	v.Model = read(r, "model", modelName, "")
	v.Command = read(r, "command", argv, nil)
	var known []string
	if isBuiltin {
		known = append([]string{}, builtin.Credentials...)
		sort.Strings(known)
	}
	v.Credentials = decodeCredentials(r, known)
	declared := decodeHosts(r)
	switch {
	case v.Kind.Unknown:
	case isBuiltin:
		v.Hosts = r.pinnedHosts(v.Kind.V, builtin)
	default:
		v.Hosts = declared
		r.checkCustom()
	}
	return v, r.diags
}

// pinnedHosts are the hosts of a built-in kind, or those of them that the block chooses.
func (r *reader) pinnedHosts(kind string, builtin CatalogVendor) []Host {
	r.refuse(kind, "command")
	for _, b := range r.inner("host") {
		r.diags = append(r.diags, problem(MisplacedAttribute, b.block.DefRange, "The hosts of the kind %q are built in: %s. To allow fewer, set hosts = [%s].",
			kind, nameList(builtin.Hosts), quoted(builtin.Hosts[:1])[0]))
	}
	chosen := read(r, "hosts", words(InvalidHost, func(s string) error {
		if contains(builtin.Hosts, s) {
			return nil
		}
		return fmt.Errorf("%q is not a host of the kind %q, which may reach %s%s", clip(s), kind, nameList(builtin.Hosts), hint(s, builtin.Hosts))
	}), builtin.Hosts)
	if chosen.Set && !chosen.Unknown && len(chosen.V) == 0 {
		r.diags = append(r.diags, problem(InvalidHost, chosen.Range, "hosts is empty, and an agent that reaches no host cannot work. Name some of %s.", nameList(builtin.Hosts)))
	}
	var out []Host
	for _, name := range chosen.V {
		out = append(out, Host{
			Name:      name,
			Port:      Val[int]{V: 443, Range: chosen.Range},
			Addresses: Val[[]netip.Addr]{V: []netip.Addr{}, Range: chosen.Range},
			TLS:       Val[bool]{V: true, Range: chosen.Range},
			Range:     chosen.Range,
		})
	}
	sortHosts(out)
	return out
}

// checkCustom checks what only custom vendors need, and what they cannot have.
func (r *reader) checkCustom() {
	r.refuse(customKind, "hosts", "version", "model")
	if r.attrs["command"] == nil {
		r.diags = append(r.diags, problem(MissingCommand, r.block.DefRange, `A custom vendor needs command, as in command = ["/agent", "--json"].`))
	}
	if len(r.inner("host")) == 0 {
		r.diags = append(r.diags, problem(MissingHost, r.block.DefRange, `A custom vendor needs at least one host block, as in host "llm.example.com" {}.`))
	}
}

// refuse reports attributes that nothing would enforce for this kind of vendor.
func (r *reader) refuse(kind string, names ...string) {
	for _, n := range names {
		if attr := r.attrs[n]; attr != nil {
			r.diags = append(r.diags, problem(MisplacedAttribute, attr.NameRange, "%s has no effect for a vendor of the kind %q. Remove it%s.", n, kind, instead[n]))
		}
	}
}

// instead says what serves in place of an attribute that has no effect.
var instead = map[string]string{
	"hosts":   `, and write host blocks`,
	"version": `: the image and its pin in the lock file say what runs`,
	"model":   `, and pass it in command`,
	"command": `: the command follows from vendor and phase; for a command of your own, set kind = "custom"`,
}

// object is the vendor in expressions.
func (v *Vendor) object() cty.Value {
	var names []string
	for _, h := range v.Hosts {
		names = append(names, h.Name)
	}
	hosts := listOf(names)
	if v.Kind.Unknown {
		hosts = cty.UnknownVal(cty.List(cty.String))
	}
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(v.Name), "kind": textOrUnknown(v.Kind), "image": textOrUnknown(v.Image),
		"version": textOrUnknown(v.Version), "model": textOrUnknown(v.Model), "hosts": hosts,
	})
}

func textOrUnknown(v Val[string]) cty.Value {
	if v.Unknown {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(v.V)
}

// blockReference is an attribute that names a vendor or a phase: it is a reference, never a string.
func blockReference(kind string, ty cty.Type, names []string) format[string] {
	return format[string]{summary: NotAReference, want: cty.DynamicPseudoType, partial: true, parse: func(v cty.Value) (string, error) {
		if v.Type().Equals(ty) {
			// An object with the same attributes, written by hand, passes only with the name of a block.
			if name := v.GetAttr("name"); name.IsKnown() && !name.IsNull() && contains(names, name.AsString()) {
				return name.AsString(), nil
			}
			return "", fmt.Errorf("it is an object that only looks like a %s", kind)
		}
		best := "NAME"
		if len(names) > 0 {
			best = names[0]
		}
		if v.Type() != cty.String {
			return "", fmt.Errorf("it is %s, and must be a %s, as in %s.%s", describeType(v), kind, kind, best)
		}
		if s := v.AsString(); contains(names, s) {
			return "", fmt.Errorf("%q is a string, and must be a reference; write %s.%s", s, kind, s)
		} else if n := nearest(s, names); n != "" {
			best = n
		}
		return "", errors.New("a string is no reference; did you mean " + kind + "." + best + "?")
	}}
}
