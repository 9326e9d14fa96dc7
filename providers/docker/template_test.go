package docker

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
)

// mutator changes one of all the places of a value, those of a type that nothing is known of included.
type mutator struct {
	which, seen int
	where       string
}

func (m *mutator) here(path string) bool {
	m.seen++
	if m.seen-1 != m.which {
		return false
	}
	m.where = path
	return true
}

func (m *mutator) visit(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if m.here(path) {
			v.SetString(v.String() + "x")
		}
	case reflect.Bool:
		if m.here(path) {
			v.SetBool(!v.Bool())
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if m.here(path) {
			v.SetInt(v.Int() + 1)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if m.here(path) {
			v.SetUint(v.Uint() + 1)
		}
	case reflect.Float64:
		if m.here(path) {
			v.SetFloat(v.Float() + 1)
		}
	case reflect.Pointer:
		if v.IsNil() {
			if m.here(path + " made") {
				v.Set(reflect.New(v.Type().Elem()))
			}
			return
		}
		if m.here(path + " taken away") {
			v.SetZero()
			return
		}
		m.visit(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				m.visit(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			m.visit(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
		if v.Kind() == reflect.Slice && m.here(path+" longer") {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String && m.here(path+" larger") {
			more := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				more.SetMapIndex(k, v.MapIndex(k))
			}
			more.SetMapIndex(reflect.ValueOf("new").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			v.Set(more)
		}
	}
}

// testProxySpec is a request such as desiredProxy makes.
func testProxySpec(t *testing.T) containerSpec {
	t.Helper()
	s := testSpec(t)
	arg, err := (&egress.Config{Invocation: "invocation.one", Declaration: "vendor.v", Listen: "10.0.0.2:3128", Agent: "10.0.0.3", DNS: []string{"1.1.1.1"},
		Hosts: []egress.Host{{Name: "a.example", Port: 443, TLS: true, Decl: "vendor.v.host"}}, Sysctls: proxySysctls(), Limits: egress.DefaultLimits(1)}).Arg()
	if err != nil {
		t.Fatal(err)
	}
	s.config.Cmd = []string{commandEgress, arg}
	s.endpoints[0].role, s.host.Mounts = roleUplink, nil
	return s
}

// Whatever differs between two requests, taking over the fields of one must not be noticed in those of the other.
func TestATemplateIsNotNoticed(t *testing.T) {
	at := func(attr string) *hcl.Range { return &hcl.Range{Filename: "at " + attr} }
	for _, kind := range []struct {
		k    kind
		make func(*testing.T) containerSpec
	}{{agentKind(), testSpec}, {proxyKind(), testProxySpec}} {
		var buf bytes.Buffer
		taken := map[string]bool{}
		for which := 0; ; which++ {
			m := mutator{which: which}
			s := kind.make(t)
			for _, part := range []struct {
				name string
				of   any
			}{{"name", &s.name}, {"config", &s.config}, {"host", &s.host}, {"own", &s.own}, {"settings", &s.endpoints[0].settings}} {
				m.visit(reflect.ValueOf(part.of).Elem(), part.name)
			}
			if m.where == "" {
				break
			}
			var like templates
			like.fields(&buf, kind.k.table, kind.make(t), at)
			fast := like.fields(&buf, kind.k.table, s, at)
			slow := kind.k.table.wanted(s.tree(), at)
			if diff := cmp.Diff(slow, fast, cmp.AllowUnexported(planner.Value{})); diff != "" {
				t.Errorf("%s, %s: other fields like another request's (-alone +like it):\n%s", kind.k.name, m.where, diff)
			}
			if len(like.all) == 1 {
				taken[m.where] = true
			}
		}
		for _, own := range []string{"name", "config.Cmd[1]", "host.NetworkMode", "settings.IPAMConfig.IPv4Address"} {
			if !taken[own] {
				t.Errorf("%s: %s makes another template, which containers have of their own", kind.k.name, own)
			}
		}
		if taken["host.Resources.Memory"] || len(taken) < 20 {
			t.Errorf("%s: %d parts are a container's own, or one too many: %v", kind.k.name, len(taken), sortedKeys(taken))
		}
	}
}

func TestTemplatesMakeRoom(t *testing.T) {
	var (
		like templates
		buf  bytes.Buffer
		k    = agentKind()
	)
	for i := range 3 * maxTemplates {
		s := testSpec(t)
		s.host.Memory = int64(i)
		like.fields(&buf, k.table, s, func(string) *hcl.Range { return nil })
	}
	if len(like.all) != maxTemplates {
		t.Errorf("%d requests are remembered, want %d", len(like.all), maxTemplates)
	}
	if m := like.all[0].request.host.Memory; m < maxTemplates {
		t.Errorf("the oldest request is still remembered, with %d bytes of memory", m)
	}
}
