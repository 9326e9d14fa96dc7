package hclspec

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var invocationShape = &shape{
	label:    "name",
	required: []string{"vendor", "phase", "worktree"},
	optional: []string{"for_each", "count", "prompt", "timeout", "env", "user", "git", "after_run"},
	blocks:   map[string]*shape{"limits": limitsShape},
}

var userPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,9}):(0|[1-9][0-9]{0,9})$`)

// user is numeric: a name would mean whatever the image says it means.
var user = format[string]{summary: InvalidUser, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	m := userPattern.FindStringSubmatch(s)
	if m == nil {
		return "", fmt.Errorf(`%q is not a user; write the numbers of user and group, as in "1000:1000"`, clip(s))
	}
	for _, id := range m[1:] {
		// 4294967295 is (uid_t)-1: "no change" to the kernel.
		if n, err := strconv.ParseUint(id, 10, 32); err != nil || n == 1<<32-1 {
			return "", fmt.Errorf("%q has a number above 4294967294", s)
		}
	}
	return s, nil
}}

// prompt is any text; its digest is declared, and it may be sensitive.
func prompt() format[string] {
	f := text(InvalidPrompt, 1<<20)
	f.secret = true
	return f
}

// decodeInvocation reads one instance of an invocation block.
func (ev *evaluator) decodeInvocation(s *section, f *form, key any) (Invocation, hcl.Diagnostics) {
	r := &reader{section: s, ev: ev, sc: f.scope(key)}
	i := Invocation{Address: instanceAddress(s.name, key), Name: s.name, Key: key, Range: s.block.DefRange}
	i.Files = ev.record(func() {
		ev.noteFiles(f.files...)
		i.Vendor = read(r, "vendor", blockReference(rootVendor, vendorType, ev.declared[rootVendor]), "")
		i.Phase = read(r, "phase", blockReference(rootPhase, phaseType, ev.declared[rootPhase]), "")
		i.Worktree = read(r, "worktree", path(ev.dir), "")
		i.Prompt = read(r, "prompt", prompt(), "")
		i.Timeout = read(r, "timeout", timeout, 30*time.Minute)
		i.Env = readEnv(r)
		i.User = read(r, "user", user, "")
		i.Git = read(r, "git", oneOf("read-only", "none"), "read-only")
		i.AfterRun = read(r, "after_run", oneOf("rearm", "keep", "dispose"), "rearm")
		i.Limits = decodeLimits(r)
	})
	i.PromptSensitive = i.Prompt.Sensitive
	return i, r.diags
}

// instanceAddress is the address of one instance.
func instanceAddress(name string, key any) string { return "invocation." + name + addressKey(key) }

// decodeInvocations reads all instances of a block. When their number is not known, or is zero, one
// instance is evaluated that stands for all, so that mistakes in the body show; only the first kind is
// part of the result.
func (ev *evaluator) decodeInvocations(s *section, f *form) ([]Invocation, hcl.Diagnostics) {
	if !f.known || len(f.keys) == 0 {
		i, diags := ev.decodeInvocation(s, f, nil)
		if f.known {
			return nil, diags
		}
		i.ForAll = true
		return []Invocation{i}, diags
	}
	// Five thousand instances with the same mistake are one mistake.
	const enough = 10
	var out []Invocation
	var diags hcl.Diagnostics
	failed := 0
	for _, key := range f.keys {
		i, more := ev.decodeInvocation(s, f, key)
		out = append(out, i)
		if failed < enough {
			diags = append(diags, at(i.Address, more)...)
		}
		if more.HasErrors() {
			failed++
		}
	}
	return out, diags
}

// sortInvocations puts instances in the order of addresses: by name, numbers by value.
func sortInvocations(is []Invocation) {
	sort.SliceStable(is, func(a, b int) bool {
		x, y := is[a], is[b]
		kx, okx := x.Key.(int)
		ky, oky := y.Key.(int)
		if okx && oky && x.Name == y.Name {
			return kx < ky
		}
		return x.Address < y.Address
	})
}

// UnmarshalJSON restores the type of Key, which JSON has no integers for.
func (i *Invocation) UnmarshalJSON(b []byte) error {
	type plain Invocation
	if err := json.Unmarshal(b, (*plain)(i)); err != nil {
		return err
	}
	switch k := i.Key.(type) {
	case nil, string:
	case float64:
		if k != float64(int(k)) {
			return fmt.Errorf("invocation %s: its key %v is no instance", i.Address, k)
		}
		i.Key = int(k)
	default:
		return fmt.Errorf("invocation %s: its key is neither a string nor a number", i.Address)
	}
	return nil
}
