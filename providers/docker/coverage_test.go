package docker

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// requireCovered fails for every property that the SDK knows of an object and that no row covers: a
// new version of the SDK must not bring one that goes unnoticed. prefix is where the struct stands in
// the tree; skip are paths that are no property of the object, each with a reason.
func requireCovered(t *testing.T, tab *table, prefix string, of any, skip map[string]string) {
	t.Helper()
	for _, path := range uncovered(tab, prefix, reflect.TypeOf(of)) {
		if skip[path] == "" {
			t.Errorf("%T has %s and no row covers it: add one, compared or ignored with a reason", of, path)
		}
	}
}

// uncovered walks the fields of a struct as encoding/json does, down to where rows begin.
func uncovered(tab *table, prefix string, of reflect.Type) []string {
	var out []string
	for i := range of.NumField() {
		f := of.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
			continue
		case f.Anonymous && tag == "":
			out = append(out, uncovered(tab, prefix, deref(f.Type))...)
			continue
		case tag == "":
			tag = f.Name
		}
		path := joinPath(prefix, tag)
		n := tab.root
		for _, s := range mustParsePath(path) {
			if n != nil && n.row == nil {
				n = n.children[s]
			}
		}
		inner := deref(f.Type)
		switch {
		case n != nil && n.row != nil:
		case n != nil && inner.Kind() == reflect.Slice && deref(inner.Elem()).Kind() == reflect.Struct:
			out = append(out, uncovered(tab, path+"[0]", deref(inner.Elem()))...)
		case n != nil && inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]():
			out = append(out, uncovered(tab, path, inner)...)
		case n != nil && inner.Kind() == reflect.Map && inner.Key().Kind() == reflect.String:
			// Rows for some keys; any other key is an unknown property when the engine shows it.
		default:
			out = append(out, path)
		}
	}
	return out
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func TestUncovered(t *testing.T) {
	type inner struct {
		Known, New string
		At         time.Time
	}
	type Embedded struct{ Flat bool }
	type object struct {
		Embedded
		Name    string `json:"name,omitempty"`
		Inner   *inner
		List    []inner
		Options map[string]string
		Whole   inner
		Hidden  string `json:"-"`
	}
	tab := newTable(nil, []row{{path: "name", norm: text}, {path: "Inner.Known", norm: text}, {path: "List[0].Known", norm: text},
		{path: `Options["x"]`, norm: text}, {path: "Whole", norm: exact}})
	got := strings.Join(uncovered(tab, "", reflect.TypeFor[object]()), " ")
	if want := "Flat Inner.New Inner.At List[0].New List[0].At"; got != want {
		t.Errorf("uncovered fields %q, want %q", got, want)
	}
}
