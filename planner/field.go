package planner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Class says what a difference in a field leads to.
type Class uint8 // there are many fields

const (
	// ClassReplace: the object is deleted and created again.
	ClassReplace Class = 0
	// ClassSet: the value is put back in place. Only settings of a bridge are of this class.
	ClassSet Class = 1
	// ClassAssigned: the engine chooses the value; both sides hold the name of the shape that it must have,
	// and an observed value without that shape stands there itself, so that it differs.
	ClassAssigned Class = 2
	// ClassIgnored: never compared. Reason says who writes it, and why no value of it changes what the
	// agent can reach, read, run or outlive.
	ClassIgnored Class = 3
)

func (c Class) String() string {
	return [...]string{"replace", "set", "assigned", "ignored"}[c]
}

// Show says when a plan prints a field.
type Show uint8

const (
	// Detail fields are counted as hidden settings, and printed when they differ or with -verbose.
	Detail Show = 0
	// Headline fields are printed whenever their object is created or destroyed.
	Headline Show = 1
)

// Unit says how a number is shown to people. It never takes part in a comparison.
type Unit uint8

// The units.
const (
	UnitNone     Unit = 0
	UnitBytes    Unit = 1 // 2147483648 reads "2GiB"
	UnitNanoCPUs Unit = 2 // 1500000000 reads 1.5
	UnitDuration Unit = 3 // nanoseconds: 1800000000000 reads "30m"
	UnitMillis   Unit = 4 // 1800000 reads "30m"
	UnitBound    Unit = 5 // bytes; 0 is no bound, which the language writes as null
)

// Value is one side of a field: canonical JSON, or a reference to the object at an address, which
// stands for that object's engine ID. Values are comparable with == and may be map keys.
// The zero Value is "nothing there" and differs from JSON null.
type Value struct {
	text string // JSON, or refMark and what ref returns; there are many
}

// refMark begins what is no JSON. No JSON begins with it.
const refMark = '\x01'

// ref is the address of a reference, or unknownMark and what decides; "" for JSON and the zero Value.
func (v Value) ref() Address {
	if v.text == "" || v.text[0] != refMark {
		return ""
	}
	return Address(v.text[1:])
}

func refValue(ref string) Value {
	if ref == "" {
		return Value{}
	}
	return Value{text: string(refMark) + ref}
}

// JSON is the value v in canonical JSON: keys sorted, no white space, no HTML escapes. Order, units
// and spellings are the business of the kind that declares the field: v is already normalised.
// It panics when v has no JSON form, which only a mistake in a kind's table can cause.
func JSON(v any) Value {
	var short [64]byte // nearly all values are
	if b, ok := appendTree(short[:0], v); ok {
		return Value{text: string(b)}
	}
	// A struct's fields come in the order of their declaration: decode so that keys are sorted.
	var tree any
	dec := json.NewDecoder(bytes.NewReader(encoded(v)))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		panic(fmt.Sprintf("value that does not decode: %v", err))
	}
	b, _ := appendTree(nil, tree) // decoded JSON is such a tree
	return Value{text: string(b)}
}

// Ref is the engine ID of the object at a, whatever it is or will be.
func Ref(a Address) Value { return refValue(string(a)) }

// unknownMark begins the ref of a value that nobody knows yet. No address has it.
const unknownMark = '\x00'

// Unknown is a value that only an engine can tell. Two of them are equal when what decides them is.
func Unknown(what string) Value { return refValue(string(unknownMark) + what) }

// Unknown is what decides the value, if it is one that nobody knows yet.
func (v Value) Unknown() (string, bool) {
	ref := v.ref()
	if ref == "" || ref[0] != unknownMark {
		return "", false
	}
	return string(ref[1:]), true
}

// Ref is the address that the value refers to, if it is a reference.
func (v Value) Ref() (Address, bool) {
	ref := v.ref()
	if ref == "" || ref[0] == unknownMark {
		return "", false
	}
	return ref, true
}

// IsZero reports whether there is no value at all.
func (v Value) IsZero() bool { return v == Value{} }

// Text is the canonical JSON, or "" for a reference and for the zero Value.
func (v Value) Text() string {
	if v.ref() != "" {
		return ""
	}
	return v.text
}

// Decode reads the JSON of the value into p.
func (v Value) Decode(p any) error {
	text := v.Text()
	if text == "" {
		return fmt.Errorf("a value without JSON")
	}
	return json.Unmarshal([]byte(text), p)
}

// refKey marks a reference among JSON values, and unknownKey what nobody knows yet. Around an object that begins
// with one of these keys stands one with jsonKey: an image may have a label of any name, and no other.
const (
	refKey     = "$ref"
	unknownKey = "$unknown"
	jsonKey    = "$json"
)

// appendPlain appends canonical JSON so that it reads as nothing else.
func appendPlain(b []byte, text string) []byte {
	if inner, ok := strings.CutPrefix(text, `{"`); ok {
		switch key, _, _ := strings.Cut(inner, `"`); key {
		case refKey, unknownKey, jsonKey:
			return append(append(append(b, `{"`+jsonKey+`":`...), text...), '}')
		}
	}
	return append(b, text...)
}

// MarshalJSON writes a reference as {"$ref": address}, the zero Value as {"$ref": ""}, and an unknown one as
// {"$unknown": what}.
func (v Value) MarshalJSON() ([]byte, error) {
	if text := v.Text(); text != "" {
		return appendPlain(nil, text), nil
	}
	if what, ok := v.Unknown(); ok {
		return json.Marshal(map[string]string{unknownKey: what})
	}
	return json.Marshal(map[string]string{refKey: string(v.ref())})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	var ref map[string]json.RawMessage
	if json.Unmarshal(b, &ref) == nil && len(ref) == 1 && ref[refKey] != nil {
		var a string
		if err := json.Unmarshal(ref[refKey], &a); err != nil {
			return err
		}
		*v = refValue(a)
		return nil
	}
	if len(ref) == 1 && ref[unknownKey] != nil {
		var what string
		if err := json.Unmarshal(ref[unknownKey], &what); err != nil {
			return err
		}
		*v = Unknown(what)
		return nil
	}
	if len(ref) == 1 && ref[jsonKey] != nil {
		b = ref[jsonKey]
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	*v = JSON(tree)
	return nil
}

// Field is one row of an object: where the engine shows it, where the user declares it, and its
// value on one side. A plan of 200 invocations holds a quarter of a million, so it is kept small.
type Field struct {
	// Path is the path in the engine's inspect output, for example HostConfig.Memory. It is stable:
	// JSON output, -ignore and docs/fields.md use it.
	Path string
	// Attr is the user's attribute, for example limits.memory; "" means that the field is built in
	// and no attribute changes it.
	Attr string
	// Decl is where Attr is written, or where the object itself is declared; see At. It is shared, and nobody
	// changes it.
	Decl *hcl.Range
	// Label is what people read where Attr is "": one or two words such as "subnet" or "command".
	// "" means that they read the path.
	Label string
	// Value is empty on the observed side when the engine shows nothing there.
	Value Value
	Class Class
	Show  Show
	// Unit is how people read a number; values are always in the unit's base (bytes, nanoseconds, …).
	Unit Unit
	// Sensitive values are compared and never printed.
	Sensitive bool
	// Reason says why a field of ClassIgnored is ignored, and what usually makes one of ClassSet differ.
	Reason string
}

// At is where the field is declared; the zero Range where nothing declares it.
func (f *Field) At() hcl.Range {
	if f.Decl == nil {
		return hcl.Range{}
	}
	return *f.Decl
}

// Mismatch is one field whose two sides differ.
type Mismatch struct {
	// Field is the wanted row, or the observed one when nothing like it is wanted. Its Value is unset.
	Field Field
	Want  Value
	Got   Value
}

// Compare is the one comparer: it returns every field of want or got that is not equal on both
// sides, in the order of their paths. A field that stands on one side only differs, and so does one that
// stands twice on a side. Fields of ClassIgnored never differ, if all sides that have them say so.
func Compare(want, got []Field) []Mismatch {
	if len(want) == len(got) && (len(want) == 0 || &want[0] == &got[0]) {
		return nil // the same rows: an object that is as its label says shares them
	}
	if equal(want, got) {
		return nil
	}
	return mismatches(byPath(want), byPath(got))
}

// mismatches compares sides that are in the order of their paths.
func mismatches(want, got []Field) []Mismatch {
	var out []Mismatch
	for len(want) > 0 || len(got) > 0 {
		switch n := firstPath(want, got); {
		case n == 0:
			out = mismatch(out, &want[0], &got[0])
			want, got = want[1:], got[1:]
		case n < 0:
			out = mismatch(out, &want[0], nil)
			want = want[1:]
		default:
			out = mismatch(out, nil, &got[0])
			got = got[1:]
		}
	}
	return out
}

// equal reports whether two sides have the same paths in the same order, and nothing to tell of any. Nearly all
// have, and then the order itself need not be looked at.
func equal(want, got []Field) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		w, g := &want[i], &got[i]
		if w.Path != g.Path || w.Value != g.Value && (w.Class != ClassIgnored || g.Class != ClassIgnored) {
			return false
		}
	}
	return true
}

// firstPath tells on which side the next path stands: -1 for want, 1 for got, 0 for both.
func firstPath(want, got []Field) int {
	switch {
	case len(got) == 0:
		return -1
	case len(want) == 0:
		return 1
	}
	return strings.Compare(want[0].Path, got[0].Path)
}

// mismatch appends what differs between the two sides, one of which may be nil.
func mismatch(out []Mismatch, want, got *Field) []Mismatch {
	var m Mismatch
	switch {
	case want == nil:
		m.Field, m.Got = *got, got.Value
	case got == nil:
		m.Field, m.Want = *want, want.Value
	case want.Value == got.Value || want.Class == ClassIgnored && got.Class == ClassIgnored:
		return out
	default:
		m.Field, m.Want, m.Got = *want, want.Value, got.Value
	}
	if (want == nil || got == nil) && m.Field.Class == ClassIgnored {
		return out
	}
	m.Field.Value = Value{}
	return append(out, m)
}

// byPath is the fields in the order of their paths. Providers keep rows sorted, so it seldom copies.
func byPath(fields []Field) []Field {
	for i := 1; i < len(fields); i++ {
		if fields[i-1].Path > fields[i].Path {
			fields = slices.Clone(fields)
			slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
			return fields
		}
	}
	return fields
}

// Declared is what the label "declared" of an object holds: its comparable values by path, in
// canonical JSON. Ignored rows are not part of a declaration.
func Declared(fields []Field) []byte {
	size := 2
	for i := range fields {
		size += len(fields[i].Path) + len(fields[i].Value.text) + len(`"":{"$ref":""},`)
	}
	return appendDeclared(make([]byte, 0, size), fields, func(b []byte) []byte { return b })
}

// appendDeclared appends a declaration. After each field it hands over what it has so far, and goes on with
// what it gets back.
func appendDeclared(b []byte, fields []Field, pass func([]byte) []byte) []byte {
	b = append(b, '{')
	fields, first := byPath(fields), true
	for i := range fields {
		f := &fields[i] // a Field is large, and there are many
		if f.Class == ClassIgnored {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, f.Path), ':')
		if text := f.Value.Text(); text != "" {
			b = appendPlain(b, text)
		} else {
			b = append(b, `{"`+refKey+`":`...)
			b = append(appendText(b, string(f.Value.ref())), '}')
		}
		b = pass(b)
	}
	return append(b, '}')
}

// Digest is the SHA-256 of Declared(fields), in hex.
func Digest(fields []Field) string {
	const piece = 2 << 10
	h := sha256.New()
	rest := appendDeclared(make([]byte, 0, 2*piece), fields, func(b []byte) []byte {
		if len(b) < piece {
			return b
		}
		h.Write(b)
		return b[:0]
	})
	h.Write(rest)
	return hex.EncodeToString(h.Sum(nil))
}
