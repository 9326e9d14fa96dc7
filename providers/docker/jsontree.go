package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// decodeJSON decodes JSON as encoding/json does into an empty interface with UseNumber, and in one pass
// instead of two: decoding is the largest part of a look at many objects. Whatever is not plain is left to
// encoding/json, and a fuzz test holds both to the same results.
func decodeJSON(raw []byte) (any, error) {
	p := parser{raw: raw}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(raw) {
		return nil, p.unexpected()
	}
	return v, nil
}

type parser struct {
	raw []byte
	at  int
}

// maxDepth bounds the recursion; inspect output is some ten levels deep.
const maxDepth = 1000

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("JSON that is nested too deeply")
	}
	p.space()
	if p.at == len(p.raw) {
		return nil, p.unexpected()
	}
	switch p.raw[p.at] {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
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

func (p *parser) object(depth int) (any, error) {
	out := map[string]any{}
	p.at++
	if p.next('}') {
		return out, nil
	}
	for {
		if p.space(); p.at == len(p.raw) || p.raw[p.at] != '"' {
			return nil, p.unexpected()
		}
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		if !p.next(':') {
			return nil, p.unexpected()
		}
		if out[key], err = p.value(depth + 1); err != nil {
			return nil, err
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

func (p *parser) list(depth int) (any, error) {
	out := []any{}
	p.at++
	if p.next(']') {
		return out, nil
	}
	for {
		v, err := p.value(depth + 1)
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
	start, escapes, plain := p.at, 0, true
	for p.at++; p.at < len(p.raw); p.at++ {
		switch c := p.raw[p.at]; {
		case c == '"':
			p.at++
			inner := p.raw[start+1 : p.at-1]
			switch {
			case plain && escapes == 0:
				return string(inner), nil
			case plain:
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
