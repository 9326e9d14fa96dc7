package hclspec

import (
	"regexp"

	"github.com/hashicorp/hcl/v2"
)

// shape is what may stand in one type of block. Each block type's file has one.
type shape struct {
	label    string // what the label is called in messages; "" for a block without
	required []string
	optional []string
	blocks   map[string]*shape
	once     bool // at most one such block in its parent
}

// section is one block, taken apart by its shape and not evaluated.
type section struct {
	name   string // the label, "" where the shape has none
	shape  *shape
	block  *hcl.Block
	attrs  hcl.Attributes
	blocks []*section // in the order of the source
}

// schema is the shape in HCL's terms.
func (sh *shape) schema() *hcl.BodySchema {
	s := &hcl.BodySchema{}
	for _, n := range sh.required {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: n, Required: true})
	}
	for _, n := range sh.optional {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: n})
	}
	for _, typ := range sortedKeys(sh.blocks) {
		b := hcl.BlockHeaderSchema{Type: typ}
		if l := sh.blocks[typ].label; l != "" {
			b.LabelNames = []string{l}
		}
		s.Blocks = append(s.Blocks, b)
	}
	return s
}

// open takes a block apart. What does not fit is reported and left out.
func (sh *shape) open(block *hcl.Block) (*section, hcl.Diagnostics) {
	content, diags := block.Body.Content(sh.schema())
	s := &section{shape: sh, block: block, attrs: content.Attributes}
	if sh.label != "" {
		s.name = block.Labels[0]
	}
	seen := map[string]hcl.Range{}
	for _, b := range content.Blocks {
		inner := sh.blocks[b.Type]
		if first, ok := seen[b.Type]; ok && inner.once {
			diags = append(diags, problem(DuplicateBlock, b.DefRange, "%s block has at most one %s block; the first is at %s.",
				capital(article(block.Type)), b.Type, first))
			continue
		}
		seen[b.Type] = b.DefRange
		sub, more := inner.open(b)
		diags = append(diags, more...)
		s.blocks = append(s.blocks, sub)
	}
	return s, diags
}

// inner are the blocks of one type within a section.
func (s *section) inner(typ string) []*section {
	var out []*section
	for _, b := range s.blocks {
		if b.block.Type == typ {
			out = append(out, b)
		}
	}
	return out
}

// expressions are all expressions of a section and of the blocks within it, in a fixed order.
func (s *section) expressions() []hcl.Expression {
	var out []hcl.Expression
	for _, n := range sortedKeys(s.attrs) {
		out = append(out, s.attrs[n].Expr)
	}
	for _, b := range s.blocks {
		out = append(out, b.expressions()...)
	}
	return out
}

// namePattern is what a block's label may be: it becomes part of addresses and of engine names.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// checkName refuses a label that no address could hold.
func (s *section) checkName() hcl.Diagnostics {
	if namePattern.MatchString(s.name) {
		return nil
	}
	return fail(InvalidName, s.block.LabelRanges[0], "%q cannot name %s: a name is a letter or _, and then up to 62 letters, digits, _ and -.",
		clip(s.name), article(s.block.Type))
}

// unique refuses a second section of the same name, and returns those that remain.
func unique(sections []*section, what string) ([]*section, hcl.Diagnostics) {
	var out []*section
	var diags hcl.Diagnostics
	first := map[string]hcl.Range{}
	for _, s := range sections {
		at, ok := first[s.name]
		if ok && s.shape.label == "" {
			diags = append(diags, problem(DuplicateBlock, s.block.DefRange, "A configuration has one %s block; the first is at %s.", what, at))
			continue
		}
		if ok {
			diags = append(diags, problem(DuplicateName, s.block.DefRange, "%s named %q is already declared at %s. Give one of the two another name.",
				capital(article(what)), clip(s.name), at))
			continue
		}
		first[s.name] = s.block.DefRange
		out = append(out, s)
	}
	return out, diags
}
