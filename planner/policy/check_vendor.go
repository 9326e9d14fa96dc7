package policy

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// modelPattern: a model's name becomes an argument of a command line, so that it must not look like a
// flag; "[1m]" at its end is how Claude Code asks for a longer context.
var modelPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,127}$`)

// credentialPattern: a credential of a custom vendor is a file of its name.
var credentialPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// checkVendor holds a vendor against what is known of its kind, and of its image.
func checkVendor(v hclspec.Vendor, lock hclspec.Lock) hcl.Diagnostics {
	at := reporter{block: v.Range}
	if v.Kind.Unknown {
		return nil
	}
	p, builtin := profileOf(v.Kind.V)
	switch {
	case builtin:
		checkBuiltin(&at, v, p)
		checkImage(&at, v, lock)
	case v.Kind.V == KindCustom:
		checkCustom(&at, v)
	default:
		at.fail(v.Kind.Range, SummaryUnknownKind, "%q is no kind of vendor. There are: %s, %s.", v.Kind.V, strings.Join(builtinKinds(), ", "), KindCustom)
		return at.diags
	}
	for _, e := range v.Env {
		if summary, why := envMistake(v.Kind.V, e); why != "" {
			at.fail(e.Value.Range, summary, "vendor.%s: %s.", v.Name, why)
		}
	}
	return at.diags
}

func checkBuiltin(at *reporter, v hclspec.Vendor, p profile) {
	kind := v.Kind.V
	if m := v.Model.V; (m != "" || v.Model.Set) && !v.Model.Unknown {
		switch {
		case !modelPattern.MatchString(m):
			at.fail(v.Model.Range, SummaryModel, "%q cannot be a model's name: letters, digits and . _ : / @ [ ] -, at most 128, and none of the signs at the beginning.", m)
		case p.models != nil && !slices.Contains(p.models, m):
			at.fail(v.Model.Range, SummaryModelUnknown, "%q is not among the models that %s is known to work with: %s.", m, kind, strings.Join(p.models, ", "))
		}
	}
	if n := v.Version.V; n != "" && !proven(kind, n) {
		at.fail(v.Version.Range, SummaryVersion, "Version %q of %s was not proven to hold a phase's tools. Proven: %s.", n, kind, strings.Join(p.versions, ", "))
	}
	if v.Command.Set {
		at.fail(v.Command.Range, SummaryNotEnforced, "vendor.%s is of kind %s, whose command line is built in. `command` belongs to kind %s.", v.Name, kind, KindCustom)
	}
	if len(v.Hosts) == 0 {
		at.fail(v.Range, SummaryHost, "vendor.%s reaches no host. Pinned for %s: %s.", v.Name, kind, strings.Join(p.hosts, ", "))
	}
	for _, h := range v.Hosts {
		if !slices.Contains(p.hosts, h.Name) || h.Port.V != 443 || len(h.Addresses.V) > 0 || !h.TLS.V {
			at.fail(h.Range, SummaryHost, "vendor.%s is of kind %s and reaches nothing but %s, on port 443 with TLS. Other hosts belong to kind %s.", v.Name, kind, strings.Join(p.hosts, ", "), KindCustom)
		}
	}
	for _, c := range v.Credentials {
		if !slices.Contains(p.credentials, c.Name) {
			at.fail(c.Range, SummaryCredentialName, "%q is no credential of %s. There are: %s.", c.Name, kind, strings.Join(p.credentials, ", "))
		}
	}
	switch {
	case len(v.Credentials) == 0:
		at.warn(v.Range, SummaryCredentialMissing, "vendor.%s has no credential block, and %s can do nothing without one. It may be: %s.", v.Name, kind, strings.Join(p.credentials, ", "))
	case len(v.Credentials) > 1:
		at.fail(v.Credentials[1].Range, SummaryCredentialTwice, "vendor.%s has %d credentials, and which of them %s uses is not for sandplan to say. Keep one.", v.Name, len(v.Credentials), kind)
	}
}

// checkImage uses what the lock file knows of the image. An image without an entry is another's error:
// only a plan needs one.
func checkImage(at *reporter, v hclspec.Vendor, lock hclspec.Lock) {
	want := v.Version.V
	if want == "" {
		p, _ := profileOf(v.Kind.V)
		want = p.versions[0]
	}
	for _, l := range lock.Images {
		if l.Ref != v.Image.V {
			continue
		}
		if l.CLI != want {
			found := "no CLI that the project has proven"
			if l.CLI != "" {
				found = "version " + l.CLI
			}
			at.fail(v.Image.Range, SummaryImageCLI, "%s holds %s at %s, and vendor.%s needs version %s of %s. Use an image with that version, and run `sandplan init -upgrade`.", l.Ref, found, CLIPath(v.Kind.V), v.Name, want, v.Kind.V)
		}
		if l.Shell {
			at.fail(v.Image.Range, SummaryImageShell, "%s holds a shell or an interpreter. Without one, hooks and helpers that a vendor's server delivers to its CLI cannot run; use an image that holds the CLI and what it links to, nothing else.", l.Ref)
		}
	}
}

func checkCustom(at *reporter, v hclspec.Vendor) {
	if v.Model.Set {
		at.fail(v.Model.Range, SummaryNotEnforced, "`model` does nothing for kind %s. Put it into `command` or `env`.", KindCustom)
	}
	if v.Version.Set {
		at.fail(v.Version.Range, SummaryNotEnforced, "`version` does nothing for kind %s: its image is pinned as it is.", KindCustom)
	}
	if v.Command.Unknown {
		// told of when it is known
	} else if why := argvMistake(v.Command.V); why != "" {
		at.fail(v.Command.Range, SummaryCommandWords, "vendor.%s: %s.", v.Name, why)
	} else if !strings.HasPrefix(v.Command.V[0], "/") {
		at.fail(v.Command.Range, SummaryCommand, "vendor.%s: %q is not an absolute path. The program is executed as it is named, without a search.", v.Name, v.Command.V[0])
	}
	for _, h := range v.Hosts {
		if _, err := netip.ParseAddr(h.Name); err == nil {
			at.fail(h.Range, SummaryHost, "%q is an address. Name the host, and put the address into its `addresses`: the name is what TLS is held against.", h.Name)
		}
		for _, a := range h.Addresses.V {
			if why := addressMistake(a); why != "" {
				at.fail(h.Addresses.Range, SummaryHostAddress, "%s of host %q: %s.", a, h.Name, why)
			} else if a.IsLinkLocalUnicast() {
				at.fail(h.Addresses.Range, SummaryHostLinkLocal, "%s of host %q: link-local addresses hold metadata services, which hand out the machine's credentials. Give the vendor another address.", a, h.Name)
			}
		}
	}
	for _, c := range v.Credentials {
		if !credentialPattern.MatchString(c.Name) {
			at.fail(c.Range, SummaryCredentialName, "%q cannot be the name of a credential: it becomes a file in %s, so that it is letters, digits and _ . -, at most 64, and begins with none of the last two.", c.Name, CredentialDir)
		}
	}
}

// addressMistake: a fixed address may be private, that is what it is for, but it must be another
// machine's, and reachable from the uplink, which speaks IPv4.
func addressMistake(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "this is no address"
	case !a.Is4():
		return "the proxy's way out speaks IPv4 only"
	case a.IsUnspecified():
		return "it names no machine"
	case a.IsLoopback():
		return "it is the proxy itself; a server on this machine is reached at the address of one of its interfaces"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "it names no single machine"
	}
	return ""
}
