package docker

import (
	"bytes"
	endian "encoding/binary" // the package has a type named binary
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// decodeJSON decodes JSON as encoding/json does into an empty interface with UseNumber, and in one pass
// instead of two: decoding is the largest part of a look at many objects. Whatever is not plain is left to
// encoding/json, and a fuzz test holds both to the same results.
func decodeJSON(raw []byte) (any, error) { return (&parser{raw: raw}).document(nil) }

type parser struct {
	raw []byte
	at  int
	// known gets the literals that were met along the rows of a table.
	known []*literal
	// leave, where it is there, says of which rows a literal is not put into the tree, and left gets those.
	leave []bool
	left  []*literal
	met   []bool // rows, of an object that may leave some out
	// odd is set where a name is there twice, or stands for a row and is not written as one: which of two
	// values counts can then only be told by a tree that has all.
	odd bool
}

// maxDepth bounds the recursion; inspect output is some ten levels deep.
const maxDepth = 1000

// document reads all there is, along the rows below n if there are any.
func (p *parser) document(n *node) (any, error) {
	v, err := p.value(0, n)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.raw) {
		return nil, p.unexpected()
	}
	return v, nil
}

// value reads a value that stands at a step of the rows' paths; n is nil beside them.
func (p *parser) value(depth int, n *node) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("JSON that is nested too deeply")
	}
	p.space()
	if p.at == len(p.raw) {
		return nil, p.unexpected()
	}
	if n != nil && n.known != nil {
		return p.literal(depth, n)
	}
	switch p.raw[p.at] {
	case '{':
		return p.object(depth, n)
	case '[':
		return p.list(depth, n)
	case '"':
		return p.text()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

// literal reads the value of a row.
func (p *parser) literal(depth int, n *node) (any, error) {
	if l := n.known.at(p.raw[p.at:]); l != nil {
		p.at += len(l.text)
		p.known[n.index] = l
		return l.value, nil
	}
	start := p.at
	v, err := p.value(depth, nil)
	if err == nil {
		p.known[n.index] = n.known.learn(n.row, p.raw[start:p.at], v)
	}
	return v, err
}

func (p *parser) object(depth int, n *node) (any, error) {
	out := make(map[string]any, n.size(p.leave))
	p.at++
	if p.next('}') {
		return out, nil
	}
	for {
		if p.space(); p.at == len(p.raw) || p.raw[p.at] != '"' {
			return nil, p.unexpected()
		}
		key, child, err := p.key(n)
		if err != nil {
			return nil, err
		}
		if !p.next(':') {
			return nil, p.unexpected()
		}
		v, err := p.value(depth+1, child)
		if err != nil {
			return nil, err
		}
		if !p.leaves(child) {
			n := len(out)
			out[key] = v
			p.odd = p.odd || len(out) == n
		}
		switch {
		case p.next(','):
		case p.next('}'):
			return out, nil
		default:
			return nil, p.unexpected()
		}
	}
}

// leaves reports whether the value of a row, read just now, is left out of the tree.
func (p *parser) leaves(n *node) bool {
	if p.leave == nil || n == nil || n.row == nil {
		return false
	}
	p.odd = p.odd || p.met[n.index]
	p.met[n.index] = true
	if !p.leave[n.index] || p.known[n.index] == nil {
		return false
	}
	p.left[n.index], p.known[n.index] = p.known[n.index], nil
	return true
}

// key reads the key of an object's member, and finds the step of the rows' paths that it is.
func (p *parser) key(n *node) (string, *node, error) {
	if n != nil && n.keys != nil {
		// Escapes and what is no text at all are found below: no key of a row has one.
		if i := bytes.IndexByte(p.raw[p.at+1:], '"'); i >= 0 {
			if child := n.keys[string(p.raw[p.at+1:p.at+1+i])]; child != nil {
				p.at += i + 2
				return child.key, child, nil
			}
		}
	}
	key, err := p.text()
	if n != nil && n.keys[key] != nil {
		p.odd = true
	}
	return key, nil, err
}

func (p *parser) list(depth int, n *node) (any, error) {
	out := []any{}
	p.at++
	if p.next(']') {
		return out, nil
	}
	for {
		var child *node
		if n != nil {
			child = n.children[segment{index: len(out)}]
		}
		v, err := p.value(depth+1, child)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		switch {
		case p.next(','):
		case p.next(']'):
			return out, nil
		default:
			return nil, p.unexpected()
		}
	}
}

// text reads a string; letters beyond ASCII and their escapes are left to encoding/json.
func (p *parser) text() (string, error) {
	start := p.at
	// Nearly all end at the first quote, and are as they are written.
	if i := bytes.IndexByte(p.raw[start+1:], '"'); i >= 0 && isWritten(p.raw[start+1:start+1+i]) {
		p.at += i + 2
		return string(p.raw[start+1 : p.at-1]), nil
	}
	escapes, plain := 0, true
	for p.at++; p.at < len(p.raw); p.at++ {
		switch c := p.raw[p.at]; {
		case c == '"':
			p.at++
			inner := p.raw[start+1 : p.at-1]
			if plain {
				return unescape(inner, escapes), nil
			}
			var s string
			err := json.Unmarshal(p.raw[start:p.at], &s)
			return s, err
		case c == '\\':
			escapes++
			p.at++
			plain = plain && p.at < len(p.raw) && (p.raw[p.at] == '"' || p.raw[p.at] == '\\')
		case c < ' ' || c > '~':
			plain = false
		}
	}
	p.at = len(p.raw)
	return "", p.unexpected()
}

// isWritten reports whether bytes between quotes stand for themselves: printable ASCII without a backslash.
// It reads eight at a time: labels are some kilobytes of base64.
func isWritten(raw []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(raw) >= 8; raw = raw[8:] {
		x := endian.LittleEndian.Uint64(raw)
		slash := x ^ ones*'\\' // a byte of it is zero where there is a backslash
		// The borrow of a subtraction can only reach bytes beside one that is told already.
		if (x|(x-ones*' ')|(slash-ones)&^slash)&tops != 0 {
			return false
		}
	}
	for _, c := range raw {
		if c < ' ' || c >= 0x80 || c == '\\' {
			return false
		}
	}
	return true
}

// unescape undoes escapes of quotes and backslashes, of which a text has that many. The engine shows
// whole JSON documents as text, and they have hundreds.
func unescape(raw []byte, escapes int) string {
	var out strings.Builder
	out.Grow(len(raw) - escapes)
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' {
			i++
		}
		out.WriteByte(raw[i])
	}
	return out.String()
}

func (p *parser) number() (any, error) {
	start := p.at
	for p.at < len(p.raw) {
		c := p.raw[p.at]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		p.at++
	}
	n := p.raw[start:p.at]
	if len(n) == 0 || !json.Valid(n) {
		p.at = start
		return nil, p.unexpected()
	}
	return json.Number(n), nil
}

func (p *parser) word(w string) error {
	if len(p.raw)-p.at < len(w) || string(p.raw[p.at:p.at+len(w)]) != w {
		return p.unexpected()
	}
	p.at += len(w)
	return nil
}

// next skips one character, and the space before it, if it is the next.
func (p *parser) next(c byte) bool {
	p.space()
	if p.at < len(p.raw) && p.raw[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) space() {
	for p.at < len(p.raw) {
		switch p.raw[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) unexpected() error {
	if p.at >= len(p.raw) {
		return errors.New("JSON that ends too early")
	}
	return fmt.Errorf("JSON with an unexpected %q at byte %d", p.raw[p.at], p.at)
}

// decodeTree reads one JSON object, or fails: a reply that is none must never look like an empty object.
func decodeTree(raw []byte) (tree, error) {
	return asTree(decodeJSON(raw))
}

func asTree(v any, err error) (tree, error) {
	if err != nil {
		return nil, fmt.Errorf("the engine's reply: %w", err)
	}
	t, ok := v.(tree)
	if !ok {
		return nil, fmt.Errorf("the engine's reply is %s and not a JSON object", excerpt(v))
	}
	return t, nil
}

// treeOf is a request as the tree that inspect shows of it. It panics on a value without a JSON form,
// which no request type of the SDK has.
func treeOf(request any) tree {
	raw, err := json.Marshal(request)
	if err != nil {
		panic(fmt.Sprintf("request without a JSON form: %v", err))
	}
	t, err := decodeTree(raw)
	if err != nil {
		panic(fmt.Sprintf("request %T: %v", request, err))
	}
	return t
}

// decodeTrees reads a list of JSON objects; null is the empty list.
func decodeTrees(raw []byte) ([]tree, error) {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("the engine's reply: %w", err)
	}
	items, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("the engine's reply is %s and not a list", excerpt(v))
	}
	out := make([]tree, len(items))
	for i, item := range items {
		if out[i], ok = item.(tree); !ok {
			return nil, fmt.Errorf("the engine's reply has %s in a list of objects", excerpt(item))
		}
	}
	return out, nil
}
