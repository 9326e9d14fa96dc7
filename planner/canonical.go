package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// The canonical JSON of values. A plan writes some hundred thousand of them, so what JSON decodes to is
// written here; everything else is left to encoding/json, and a test holds the two to the same texts.

// appendTree appends what JSON decodes to (with json.Number for numbers). It reports false, and b is of no
// use then, for a value of another type.
func appendTree(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, v), true
	case string:
		return appendText(b, v), true
	case json.Number:
		return appendNumber(b, v)
	case []any:
		return appendList(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	return b, false
}

func appendList(b []byte, list []any) ([]byte, bool) {
	if list == nil {
		return append(b, "null"...), true
	}
	ok := true
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = appendTree(b, item); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

func appendObject(b []byte, object map[string]any) ([]byte, bool) {
	if object == nil {
		return append(b, "null"...), true
	}
	var few [16]string
	keys := few[:0]
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	ok := true
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, key), ':')
		if b, ok = appendTree(b, object[key]); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

// appendNumber keeps the digits of a whole number; what is no number is encoding/json's to refuse.
func appendNumber(b []byte, n json.Number) ([]byte, bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil && strconv.FormatInt(i, 10) == string(n) {
		return append(b, n...), true
	}
	return append(b, encoded(n)...), true
}

// appendText appends s as JSON.
func appendText(b []byte, s string) []byte {
	from := len(b)
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(append(b, s[start:i]...), '\\', c)
			start = i + 1
		case c < ' ' || c > '~':
			return append(b[:from], encoded(s)...)
		}
	}
	return append(append(b, s[start:]...), '"')
}

// encoded is what encoding/json writes of v, without escapes for HTML.
func encoded(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("value without a JSON form: %v", err))
	}
	return bytes.TrimSpace(buf.Bytes())
}
