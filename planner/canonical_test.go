package planner

import (
	"bytes"
	"encoding/json"
	"testing"
)

// reference is the canonical text as encoding/json writes it.
func reference(t *testing.T, raw []byte) (any, string, bool) {
	t.Helper()
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return nil, "", false
	}
	return tree, string(encoded(tree)), true
}

func FuzzValueIsWhatTheStandardLibraryWrites(f *testing.F) {
	for _, text := range []string{`null`, `[true,false,null]`, `{"b":[],"a":{}}`, `"<&>\u2028é\u0000\n\t\"\\\u007f"`, `[-0,0,-1,1.50,1e400,9007199254740993,12345678901234567890]`,
		`{"":1,"\u00e9":2,"z":{"y":[{"x":"w"}]}}`, "\"\xff\"",
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"r":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, want, ok := reference(t, raw)
		if !ok {
			return
		}
		if got := JSON(tree).Text(); got != want {
			t.Errorf("%q is written as %s, encoding/json writes %s", raw, got, want)
		}
	})
}

func TestValueOfWhatIsNotThereIsNull(t *testing.T) {
	for _, v := range []any{nil, []any(nil), map[string]any(nil), []string(nil), map[string]int(nil), (*int)(nil)} {
		if got := JSON(v).Text(); got != "null" {
			t.Errorf("%#v is %s", v, got)
		}
	}
}
