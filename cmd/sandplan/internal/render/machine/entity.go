package machine

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// resource names one object as tools know it.
type resource struct {
	Addr            string `json:"addr"`
	Resource        string `json:"resource"`
	ImpliedProvider string `json:"implied_provider"`
	ResourceType    string `json:"resource_type"`
	ResourceName    string `json:"resource_name"`
	ResourceKey     any    `json:"resource_key"`
}

// provider is the name of the only one.
const provider = "docker"

func newResource(a planner.Address, k planner.Kind) resource {
	name, key := nameAndKey(a)
	return resource{Addr: string(a), Resource: string(a), ImpliedProvider: provider, ResourceType: string(k), ResourceName: name, ResourceKey: key}
}

// nameAndKey are the name of the block that an address comes from, and the key of its instance or nil.
func nameAndKey(a planner.Address) (string, any) {
	if inv := a.Invocation(); inv != "" {
		block := a.Block()
		name := strings.TrimPrefix(string(block), "invocation.")
		text := strings.Trim(strings.TrimPrefix(string(inv), string(block)), "[]")
		if text == "" {
			return name, nil
		}
		if n, err := strconv.Atoi(text); err == nil {
			return name, n
		}
		key, err := strconv.Unquote(text)
		if err != nil {
			key = text
		}
		return name, key
	}
	parts := strings.SplitN(string(a), ".", 3) // sandplan.uplink, vendor.claude.image
	if len(parts) == 3 {
		return parts[1], nil
	}
	return parts[0], nil
}

// Diagnostic is an error or a warning.
type Diagnostic struct {
	Severity string   `json:"severity"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail"`
	Address  string   `json:"address,omitempty"`
	Range    *Range   `json:"range,omitempty"`
	Snippet  *snippet `json:"snippet,omitempty"`
}

// Range is a place in a source.
type Range struct {
	Filename string `json:"filename"`
	Start    pos    `json:"start"`
	End      pos    `json:"end"`
}

type pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// snippet is the source at a range. Offsets are in bytes of code.
type snippet struct {
	Context   *string `json:"context"`
	Code      string  `json:"code"`
	StartLine int     `json:"start_line"`
	From      int     `json:"highlight_start_offset"`
	To        int     `json:"highlight_end_offset"`
	Values    []value `json:"values"`
}

type value struct {
	Traversal string `json:"traversal"`
	Statement string `json:"statement"`
}

// NewDiagnostic is the JSON of a diagnostic, with its place in sources.
func NewDiagnostic(d *hcl.Diagnostic, sources map[string][]byte) Diagnostic {
	out := Diagnostic{Severity: "error", Summary: d.Summary, Detail: d.Detail}
	if d.Severity == hcl.DiagWarning {
		out.Severity = "warning"
	}
	if about, ok := hcl.DiagnosticExtra[render.Located](d); ok {
		out.Address = about.DiagnosticAddress()
	}
	out.Range = newRange(d.Subject)
	if d.Subject == nil {
		return out
	}
	if src, known := sources[d.Subject.Filename]; known && d.Subject.Start.Line > 0 {
		out.Snippet = newSnippet(src, *d.Subject)
		for _, v := range render.Values(d) {
			out.Snippet.Values = append(out.Snippet.Values, value{Traversal: v.Name, Statement: v.Text})
		}
	}
	return out
}

func newRange(r *hcl.Range) *Range {
	if r == nil || r.Filename == "" {
		return nil
	}
	return &Range{Filename: r.Filename, Start: pos(r.Start), End: pos(r.End)}
}

func newSnippet(src []byte, r hcl.Range) *snippet {
	from := min(max(r.Start.Byte, 0), len(src))
	to := min(max(r.End.Byte, from), len(src))
	start := bytes.LastIndexByte(src[:from], '\n') + 1
	end := len(src)
	if i := bytes.IndexByte(src[to:], '\n'); i >= 0 {
		end = to + i
	}
	s := &snippet{Code: string(src[start:end]), StartLine: r.Start.Line, From: from - start, To: to - start, Values: []value{}}
	if c := render.ContextOf(src, r); c != "" {
		s.Context = &c
	}
	return s
}
