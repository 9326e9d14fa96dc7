package docker

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// testArgument is an argument with everything that is read in a way of its own: bytes, what is left away when
// it is empty, escapes.
func testArgument(t testing.TB, change func(*shim.Config)) string {
	t.Helper()
	c := shim.Config{Invocation: "invocation.one", Argv: []string{"/agent", `{"a":"b"}`, "\\"}, Env: []string{"A=1", "B="}, Dir: "/work",
		PromptSHA256: "ab", Files: []shim.File{{Path: "/run/sandplan/f", Mode: 0o600, Content: []byte("x")}}, Credentials: []shim.Credential{{Name: "n", Env: "E"}},
		Mounts:  []shim.Mount{{Path: "/work", Type: shim.MountBind, ReadOnly: true}, {Path: "/run/sandplan", Type: shim.MountTmpfs, Size: 1}},
		Network: &shim.Network{Address: "10.0.0.3/29", Proxy: "10.0.0.2:3128", Hosts: []string{"a.example:443"}, Refused: "b.example:443", Direct: []string{}},
		Bounds:  shim.Bounds{TimeoutMS: 1, GraceMS: 1, SilenceMS: 1, Output: 1}, Nameservers: []string{"127.0.0.11"}}
	if change != nil {
		change(&c)
	}
	arg, err := c.Arg()
	if err != nil {
		t.Fatal(err)
	}
	return arg
}

func TestSpellingsAreToldApart(t *testing.T) {
	arg := testArgument(t, nil)
	for _, tc := range []struct {
		reason, was, is string
		alike           bool
	}{
		{"the same", "", "", true},
		{"another address", "10.0.0.3/29", "10.0.0.11/29", true},
		{"another name", `"invocation.one"`, `"invocation.many[7]"`, true},
		{"another variable", `"A=1"`, `"A=2"`, true},
		{"a variable more", `"A=1"`, `"A=1","A=2"`, false},
		{"white space", `"dir":`, `"dir": `, false},
		{"white space in front", `{"invocation"`, ` {"invocation"`, false},
		{"white space behind", "", " ", false},
		{"another number", `"timeout_ms":1`, `"timeout_ms":2`, false},
		{"a number in another form", `"timeout_ms":1`, `"timeout_ms":1.0`, false},
		{"another truth", `"read_only":true`, `"read_only":false`, false},
		{"another key", `"dir":`, `"Dir":`, false},
		{"a key that nobody knows", `"dir":`, `"new":"x","dir":`, false},
		{"a key twice", `"dir":`, `"dir":"/x","dir":`, false},
		{"an escape that need not be", `"/agent"`, `"\u002fagent"`, false},
		{"an escape that must be, elsewhere", `"B="`, `"B=\""`, false},
		{"a text that was escaped and is not", `"{\"a\":\"b\"}"`, `"x"`, false},
		{"letters beyond ASCII", `"/agent"`, `"/agént"`, false},
		{"a control character", `"/agent"`, "\"/agen\t\"", false},
		{"a text that is empty now", `"prompt_sha256":"ab"`, `"prompt_sha256":""`, false},
		{"bytes in another spelling", `"content":"eA=="`, `"content":"eB=="`, false},
		{"the end is missing", `}}`, `}`, false},
	} {
		text := strings.Replace(arg, tc.was, tc.is, 1)
		if tc.was == "" {
			text = arg + tc.is
		}
		if text == arg && tc.reason != "the same" {
			t.Fatalf("%s: nothing was changed", tc.reason)
		}
		if got := spelling(arg).alike(text); got != tc.alike {
			t.Errorf("%s: alike is %v, want %v", tc.reason, got, tc.alike)
		}
		if tc.alike && !isSpelled(commandShim, text) {
			t.Errorf("%s: it is not what the program writes", tc.reason)
		}
	}
}

// What is written alike is read alike: there is no text in a configuration, other than its bytes, that means
// more than its letters. A type that reads itself must be excepted as the bytes are.
func TestArgumentsHoldPlainTexts(t *testing.T) {
	reads := reflect.TypeFor[json.Unmarshaler]()
	var visit func(at string, of reflect.Type)
	visit = func(at string, of reflect.Type) {
		if of.Implements(reads) || reflect.PointerTo(of).Implements(reads) {
			t.Errorf("%s is a %s, which reads JSON in its own way", at, of)
		}
		switch of.Kind() {
		case reflect.Struct:
			for i := range of.NumField() {
				f := of.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if strings.Contains(f.Tag.Get("json"), ",string") {
					t.Errorf("%s.%s is a number that is written as text", at, f.Name)
				}
				if f.Type == reflect.TypeFor[[]byte]() && name != contentKey {
					t.Errorf("%s.%s is bytes, and its key is not %q", at, f.Name, contentKey)
				}
				visit(at+"."+f.Name, f.Type)
			}
		case reflect.Pointer, reflect.Slice:
			visit(at, of.Elem())
		case reflect.Map:
			visit(at, of.Elem())
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint32:
		default:
			t.Errorf("%s is a %s", at, of)
		}
	}
	visit("shim.Config", reflect.TypeFor[shim.Config]())
	visit("egress.Config", reflect.TypeFor[egress.Config]())
}

// An argument that was remembered, or is written like one that was, is taken apart as by decodeArgument. What one
// program writes is nothing that the other does.
func TestArgumentsAlongRows(t *testing.T) {
	k := agentKind()
	for _, arg := range []string{testArgument(t, nil), testArgument(t, func(c *shim.Config) { c.Network.Address = "10.0.0.4/29" }),
		testArgument(t, func(c *shim.Config) { c.Argv = []string{"/other"} }), testArgument(t, func(c *shim.Config) { c.Files = nil }),
		" " + testArgument(t, nil), `{"invocation":"x"}`, `{}`, `[]`, `"x"`, ``, `{"invocation":`} {
		for _, program := range []string{commandShim, commandShim, commandEgress, commandEgress, commandShim} {
			cmd := []any{program, arg}
			want := tree{"Config": map[string]any{"Cmd": decodeArgument(cmd)}}
			got := reply{tree: tree{"Config": map[string]any{"Cmd": cmd}}, known: make([]*literal, len(k.table.rows))}
			k.table.observeArgument(got)
			if diff := cmp.Diff(want, got.tree); diff != "" {
				t.Errorf("%s %s is taken apart another way (-alone +along rows):\n%s", program, arg, diff)
			}
			if diff := cmp.Diff(k.table.observed(want, nil), k.table.observedOf(got, nil), cmp.AllowUnexported(planner.Value{})); diff != "" {
				t.Errorf("%s has other fields (-alone +along rows):\n%s", arg, diff)
			}
		}
	}
}

// FuzzSpelling changes an argument anyhow: one that is alike must be what the program writes.
func FuzzSpelling(f *testing.F) {
	arg := testArgument(f, nil)
	f.Add(3, 2, "x")
	f.Add(20, 0, `"`)
	f.Add(strings.Index(arg, "10.0.0.3"), 8, "10.0.0.4")
	f.Add(strings.Index(arg, "eA=="), 2, "eB")
	f.Fuzz(func(t *testing.T, at, n int, more string) {
		if at < 0 || n < 0 || at > len(arg) || n > len(arg)-at {
			return
		}
		text := arg[:at] + more + arg[at+n:]
		if !spelling(arg).alike(text) || isSpelled(commandShim, text) {
			return
		}
		t.Errorf("%s is alike, and not what the program writes", text)
	})
}
