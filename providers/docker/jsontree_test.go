package docker

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

// standard is what encoding/json makes of a text.
func standard(raw []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return v, nil
}

// samples are texts in which a parser can go wrong.
var samples = []string{
	`{"a":1,"b":[true,false,null,"x"],"c":{"d":{}}}`, ` [ ] `, `{"a":1,"a":2}`, `"\u00e9\ud83d\ude00\n"`, "\"\xff\"", "\"ü\"", `"\ud800"`, `"a\"b\\"`,
	`-0`, `1.5e+3`, `01`, `1.`, `.5`, `+1`, `--1`, `1e`, `-`, `12345678901234567890`,
	``, ` `, `{`, `[`, `"`, `"\`, `"\"`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{1:2}`, `tru`, `nulll`, `[1 2]`, `{} {}`, "\"\t\"", "\"\x00\"",
	"\u00a01", `["a"`, `{"":""}`, `{"\u0061":1,"a":2}`, "\ufeff1",
}

func TestDecodeJSON(t *testing.T) {
	for _, s := range samples {
		sameAsReference(t, []byte(s))
	}
	deep := strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)
	if _, err := decodeJSON([]byte(deep)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("deep nesting: %v", err)
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"Config":{"Image":"x","Opts":["b"],"a.b":true},"List":[null,{"X":1}],"State":{"Pid":7},"Mac":""}`))
	tab := testTable()
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameAsReference(t, raw)
		sameAlongRows(t, tab, raw)
	})
}

func sameAsReference(t *testing.T, raw []byte) {
	want, wantErr := standard(raw)
	got, err := decodeJSON(raw)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, encoding/json says %v", raw, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is %#v, encoding/json says %#v", raw, got, want)
	}
}
