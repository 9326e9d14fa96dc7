package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// The mistakes that policy tells of, as the summaries of its diagnostics.
const (
	SummaryUnknownBase       = "Unknown built-in phase"
	SummaryToolsWiden        = "Tools beyond the phase's ceiling"
	SummaryWritableWiden     = "Phase cannot be writable"
	SummaryToolsReadOnly     = "Changing tools on a read-only worktree"
	SummaryRunnersForbidden  = "Phase has no runners"
	SummaryRunnerArgv        = "Invalid runner command"
	SummaryUnknownKind       = "Unknown kind of vendor"
	SummaryModel             = "Invalid model"
	SummaryModelUnknown      = "Unknown model"
	SummaryVersion           = "CLI version not proven"
	SummaryNotEnforced       = "Attribute without effect"
	SummaryCommandWords      = "Invalid command"
	SummaryCommand           = "Command is not an absolute path"
	SummaryHost              = "Host not allowed"
	SummaryHostAddress       = "Address cannot be a vendor"
	SummaryHostLinkLocal     = "Link-local address"
	SummaryEnv               = "Environment variable not allowed"
	SummaryEnvReserved       = "Reserved environment variable"
	SummaryCredentialName    = "Unknown credential"
	SummaryCredentialMissing = "No credential"
	SummaryCredentialTwice   = "Two credentials"
	SummaryCredentialShared  = "Login shared by several invocations"
	SummaryImageCLI          = "Image holds another CLI"
	SummaryImageShell        = "Image holds a shell"
	SummaryUser              = "Invalid user"
	SummaryUserRoot          = "User 0 in a writable phase"
	SummaryToolsCustom       = "Tools cannot be enforced"
	SummaryToolsCodex        = "Tools cannot be told apart"
	SummaryPrompt            = "Invalid prompt"
	SummaryTunnels           = "Too few tunnels for the proof"
)

// MaxPrompt is the size of the largest prompt, in bytes.
const MaxPrompt = 1 << 20

// toldOnLoading are mistakes that reading a configuration with the Catalog finds by itself, at the
// same places. Check passes over them so that nobody is told twice; Seal does not, because a spec may
// come from a file that nobody read with this Catalog.
var toldOnLoading = []string{
	SummaryUnknownBase, SummaryToolsWiden, SummaryWritableWiden, SummaryRunnersForbidden, SummaryUnknownKind,
	SummaryNotEnforced, SummaryHost, SummaryHostAddress, SummaryCredentialName, SummaryModel, SummaryCommandWords,
	SummaryRunnerArgv, SummaryEnvReserved, SummaryUser, SummaryPrompt,
}

// Check reports what policy forbids in a configuration that was loaded with the Catalog, in the order
// of its blocks, as far as loading has not told of it already.
func Check(s *hclspec.Spec) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, d := range checkAll(s) {
		if !slices.Contains(toldOnLoading, d.Summary) {
			out = append(out, d)
		}
	}
	return out
}

// checkAll reports everything that policy forbids.
func checkAll(s *hclspec.Spec) hcl.Diagnostics {
	var diags hcl.Diagnostics
	vendors := map[string]hclspec.Vendor{}
	for _, v := range s.Vendors {
		vendors[v.Name] = v
		diags = append(diags, checkVendor(v, s.Lock)...)
	}
	phases := map[string]hclspec.Phase{}
	for _, p := range s.Phases {
		phases[p.Name] = p
		diags = append(diags, checkPhase(p)...)
	}
	for _, i := range s.Invocations {
		v, okv := vendors[i.Vendor.V]
		p, okp := phases[i.Phase.V]
		if okv && okp { // what refers to nothing is told of by whoever resolves references
			diags = append(diags, checkInvocation(parts{invocation: i, vendor: v, phase: p})...)
		}
	}
	return once(append(diags, checkShared(s)...))
}

// once drops diagnostics that say the same of the same place: every instance of a block repeats its
// block's mistakes.
func once(diags hcl.Diagnostics) hcl.Diagnostics {
	type key struct {
		summary, detail string
		subject         hcl.Range
	}
	seen := map[key]bool{}
	var out hcl.Diagnostics
	for _, d := range diags {
		k := key{summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			k.subject = *d.Subject
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return out
}

// CheckPrompt says whether a text can be a prompt, from whichever source it comes.
func CheckPrompt(text string) error {
	switch {
	case len(text) > MaxPrompt:
		return fmt.Errorf("the prompt has more than %d bytes, which is the most: name files of the worktree in it instead of quoting them", MaxPrompt)
	case !utf8.ValidString(text):
		return fmt.Errorf("the prompt is not UTF-8 text")
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("the prompt holds a NUL byte")
	}
	return nil
}

func checkInvocation(p parts) hcl.Diagnostics {
	inv := p.invocation
	at := reporter{block: inv.Range}
	for _, v := range inv.Env {
		if summary, why := envMistake(p.vendor.Kind.V, v); why != "" {
			at.fail(v.Value.Range, summary, "vendor.%s: %s.", p.vendor.Name, why)
		}
	}
	if inv.User.Set && !inv.User.Unknown {
		u, err := ParseUser(inv.User.V)
		if err != nil {
			at.fail(inv.User.Range, SummaryUser, "%s.", sentence(err.Error()))
		} else if err := CheckUser(u, isWritable(p.phase)); err != nil {
			summary := SummaryUserRoot
			if u.UID == ProxyUID {
				summary = SummaryUser
			}
			at.fail(inv.User.Range, summary, "phase.%s: %s.", p.phase.Name, err)
		}
	}
	if inv.Prompt.Set && !inv.Prompt.Unknown {
		if err := CheckPrompt(inv.Prompt.V); err != nil {
			at.fail(inv.Prompt.Range, SummaryPrompt, "%s.", sentence(err.Error()))
		}
	}
	p.checkTools(&at)
	p.checkTunnels(&at)
	return at.diags
}

// checkTunnels: the proof that begins every run asks the proxy for all hosts at once, and for one that it must
// refuse. A bound below that would refuse the run itself.
func (p parts) checkTunnels(at *reporter) {
	need := int64(len(p.vendor.Hosts) + 1)
	for _, l := range []struct {
		name  string
		limit hclspec.Val[int64]
	}{{"tunnels", p.invocation.Limits.Tunnels}, {"tunnels_per_second", p.invocation.Limits.TunnelsPerSecond}} {
		if !l.limit.Unknown && l.limit.V > 0 && l.limit.V < need {
			at.fail(l.limit.Range, SummaryTunnels, "limits.%s is %d, and must be at least %d: the proof that begins each run asks for %s of vendor.%s and for one that is refused, all at once.",
				l.name, l.limit.V, need, hostCount(len(p.vendor.Hosts)), p.vendor.Name)
		}
	}
}

func hostCount(n int) string {
	if n == 1 {
		return "the host"
	}
	return fmt.Sprintf("the %d hosts", n)
}

// checkTools: a phase that cannot be held with a vendor is an error of the invocation that joins them.
func (p parts) checkTools(at *reporter) {
	if p.phase.Tools.Unknown || p.phase.Writable.Unknown {
		return
	}
	tools := effectiveTools(p.phase)
	where := p.invocation.Vendor.Range
	switch p.vendor.Kind.V {
	case KindCustom:
		if p.phase.Tools.Set {
			at.fail(where, SummaryToolsCustom, "phase.%s names tools, and nothing can hold a vendor of kind custom to them: its command does what it likes within the sandbox. Use a phase without `tools`.", p.phase.Name)
		}
	case KindCodex:
		edit, write := slices.Contains(tools, ToolEdit), slices.Contains(tools, ToolWrite)
		if edit != write {
			at.fail(where, SummaryToolsCodex, "Codex changes files with one tool that both edits and writes: phase.%s must have both or neither.", p.phase.Name)
		}
	}
}

// reporter gathers the diagnostics of one block.
type reporter struct {
	block hcl.Range
	diags hcl.Diagnostics
}

func (r *reporter) fail(at hcl.Range, summary, format string, args ...any) {
	r.add(hcl.DiagError, at, summary, fmt.Sprintf(format, args...))
}

func (r *reporter) warn(at hcl.Range, summary, format string, args ...any) {
	r.add(hcl.DiagWarning, at, summary, fmt.Sprintf(format, args...))
}

func (r *reporter) add(sev hcl.DiagnosticSeverity, at hcl.Range, summary, detail string) {
	if at == (hcl.Range{}) {
		at = r.block
	}
	d := &hcl.Diagnostic{Severity: sev, Summary: summary, Detail: detail}
	if at != (hcl.Range{}) {
		d.Subject = &at
	}
	if block := r.block; block != (hcl.Range{}) && block.Filename == at.Filename {
		d.Context = &block
	}
	r.diags = append(r.diags, d)
}

func sentence(s string) string {
	return strings.ToUpper(s[:1]) + s[1:]
}
