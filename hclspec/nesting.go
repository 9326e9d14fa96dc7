package hclspec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// HCL's parser and evaluator recurse: once per bracket, and once per operator of a chain. A stack that
// overflows ends a Go program without recovery, so the tokens are counted before they are parsed.
const (
	maxNesting   = 64  // brackets within brackets
	maxOperators = 400 // operators, indexes and calls in one chain
	// The parser joins the lines of a template in a time that grows with their square.
	maxParts = 20_000
)

// nestFrame is one open bracket, or the ground below all of them.
type nestFrame struct {
	open      hclsyntax.TokenType
	operators int
	controls  int // open %{ if } and %{ for } of a template
	parts     int // lines and sequences of a template
}

// closers are the brackets that open, with what closes each.
var closers = map[hclsyntax.TokenType]hclsyntax.TokenType{
	hclsyntax.TokenOBrace:          hclsyntax.TokenCBrace,
	hclsyntax.TokenOBrack:          hclsyntax.TokenCBrack,
	hclsyntax.TokenOParen:          hclsyntax.TokenCParen,
	hclsyntax.TokenOQuote:          hclsyntax.TokenCQuote,
	hclsyntax.TokenOHeredoc:        hclsyntax.TokenCHeredoc,
	hclsyntax.TokenTemplateInterp:  hclsyntax.TokenTemplateSeqEnd,
	hclsyntax.TokenTemplateControl: hclsyntax.TokenTemplateSeqEnd,
}

// harmless tokens neither nest nor chain.
var harmless = map[hclsyntax.TokenType]bool{
	hclsyntax.TokenIdent: true, hclsyntax.TokenNumberLit: true, hclsyntax.TokenQuotedLit: true,
	hclsyntax.TokenStringLit: true, hclsyntax.TokenComment: true, hclsyntax.TokenEOF: true,
	hclsyntax.TokenEqual: true,
}

// templatePart are the tokens that a template is made of; they stand nowhere else.
var templatePart = map[hclsyntax.TokenType]bool{
	hclsyntax.TokenStringLit: true, hclsyntax.TokenQuotedLit: true,
	hclsyntax.TokenTemplateInterp: true, hclsyntax.TokenTemplateControl: true,
}

// nesting refuses source that is nested deeper than any honest configuration. A bracket that is closed
// by another kind of bracket stays open, so that broken source is counted too.
func nesting(tokens hclsyntax.Tokens) hcl.Diagnostics {
	stack := []nestFrame{{}}
	for i, tok := range tokens {
		top := &stack[len(stack)-1]
		if templatePart[tok.Type] {
			if top.parts++; top.parts > maxParts {
				return fail(TooLarge, tok.Range, "A template may have at most %d lines and sequences. Longer text can be read with file().", maxParts)
			}
		}
		switch {
		case harmless[tok.Type]:
		case tok.Type == hclsyntax.TokenComma:
			top.operators = 0
		case tok.Type == hclsyntax.TokenNewline:
			// Within parentheses and square brackets a line break ends nothing.
			if top.open == 0 || top.open == hclsyntax.TokenOBrace {
				top.operators = 0
			}
		case closers[tok.Type] != 0:
			top.operators++
			if tok.Type == hclsyntax.TokenTemplateInterp || tok.Type == hclsyntax.TokenTemplateControl {
				top.operators-- // the parts of a template stand side by side
				top.controls += control(tokens, i)
			}
			stack = append(stack, nestFrame{open: tok.Type})
		case len(stack) > 1 && tok.Type == closers[top.open]:
			stack = stack[:len(stack)-1]
		default:
			top.operators++
		}
		top = &stack[len(stack)-1]
		below := &stack[max(0, len(stack)-2)]
		if len(stack) > maxNesting || top.operators > maxOperators || below.operators > maxOperators ||
			below.controls > maxNesting {
			return fail(TooDeep, tok.Range, "At most %d brackets may stand within each other, and at most %d operators in one chain. "+
				"Name parts of the expression in locals.", maxNesting, maxOperators)
		}
	}
	return nil
}

// control says whether the template control that starts at token i opens a nested part or closes one.
func control(tokens hclsyntax.Tokens, i int) int {
	if tokens[i].Type != hclsyntax.TokenTemplateControl || i+1 >= len(tokens) {
		return 0
	}
	switch string(tokens[i+1].Bytes) {
	case "if", "for":
		return 1
	case "endif", "endfor":
		return -1
	}
	return 0
}

// parseConfig parses one file of blocks.
func parseConfig(src []byte, name string, m *meter) (*hclsyntax.Body, hcl.Diagnostics) {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	if diags := nesting(tokens); diags.HasErrors() {
		return &hclsyntax.Body{}, diags
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	body := f.Body.(*hclsyntax.Body)
	diags = append(diags, m.watch(body)...)
	return body, diags
}

// parseExpression parses one expression, as the value of a variable is.
func parseExpression(src []byte, name string, m *meter) (hclsyntax.Expression, hcl.Diagnostics) {
	tokens, _ := hclsyntax.LexExpression(src, name, hcl.InitialPos)
	return parseCounted(tokens, src, name, m, hclsyntax.ParseExpression)
}

// parseTemplate parses the text of a template.
func parseTemplate(src []byte, name string, m *meter) (hclsyntax.Expression, hcl.Diagnostics) {
	tokens, _ := hclsyntax.LexTemplate(src, name, hcl.InitialPos)
	return parseCounted(tokens, src, name, m, hclsyntax.ParseTemplate)
}

type parseFunc func(src []byte, name string, start hcl.Pos) (hclsyntax.Expression, hcl.Diagnostics)

func parseCounted(tokens hclsyntax.Tokens, src []byte, name string, m *meter, parse parseFunc) (hclsyntax.Expression, hcl.Diagnostics) {
	if diags := nesting(tokens); diags.HasErrors() {
		return &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: *diags[0].Subject}, diags
	}
	expr, diags := parse(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return expr, diags
	}
	return expr, append(diags, m.watch(expr)...)
}
