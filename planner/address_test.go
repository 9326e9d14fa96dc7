package planner

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressParts(t *testing.T) {
	cases := []struct {
		addr               Address
		inv, block         Address
		part, why          string
		alsoContainedIn    []Address
		notContainedInThis Address
	}{
		{addr: "invocation.login", inv: "invocation.login", block: "invocation.login", why: "a whole invocation",
			alsoContainedIn: []Address{"invocation.login"}, notContainedInThis: "invocation.log"},
		{addr: `invocation.login["auth"].agent`, inv: `invocation.login["auth"]`, block: "invocation.login", part: "agent",
			why: "a part of an instance", alsoContainedIn: []Address{"invocation.login", `invocation.login["auth"]`},
			notContainedInThis: `invocation.login["au"]`},
		{addr: "invocation.n[10].proxy", inv: "invocation.n[10]", block: "invocation.n", part: "proxy",
			why: "a numbered instance", alsoContainedIn: []Address{"invocation.n"}, notContainedInThis: "invocation.n[1]"},
		{addr: `invocation.x["a.b]c\"].agent"].runner["test"]`, inv: `invocation.x["a.b]c\"].agent"]`, block: "invocation.x",
			part: `runner["test"]`, why: "a key may hold dots, brackets and escaped quotes",
			alsoContainedIn: []Address{"invocation.x"}, notContainedInThis: `invocation.x["a"]`},
		{addr: "sandplan.uplink", part: "uplink", why: "a shared object", notContainedInThis: "sandplan.up"},
		{addr: "vendor.claude.image", part: "image", why: "a vendor's image", notContainedInThis: "invocation.claude"},
		{addr: `phase.review.runner["test"].image`, part: "image", why: "a runner's image", notContainedInThis: ""},
	}
	for _, c := range cases {
		if got, err := ParseAddress(string(c.addr)); err != nil || got != c.addr {
			t.Errorf("%s: ParseAddress(%q) = %q, %v", c.why, c.addr, got, err)
		}
		if got := c.addr.Invocation(); got != c.inv {
			t.Errorf("%s: invocation of %q is %q, want %q", c.why, c.addr, got, c.inv)
		}
		if got := c.addr.Block(); got != c.block {
			t.Errorf("%s: block of %q is %q, want %q", c.why, c.addr, got, c.block)
		}
		if got := c.addr.Part(); got != c.part {
			t.Errorf("%s: part of %q is %q, want %q", c.why, c.addr, got, c.part)
		}
		for _, outer := range append(c.alsoContainedIn, c.addr) {
			if !outer.Contains(c.addr) {
				t.Errorf("%s: %q must contain %q", c.why, outer, c.addr)
			}
		}
		if c.notContainedInThis.Contains(c.addr) {
			t.Errorf("%s: %q must not contain %q", c.why, c.notContainedInThis, c.addr)
		}
	}
}

// TestProbably: what people type who have just read a name in the configuration, or forgot what a shell does.
func TestProbably(t *testing.T) {
	for in, want := range map[string]string{
		"login":                        "did you mean invocation.login?",
		"login.agent":                  "did you mean invocation.login.agent?",
		"invocation.login[auth]":       `did you mean 'invocation.login["auth"]'?`,
		"invocation.login[auth].agent": `did you mean 'invocation.login["auth"].agent'?`,
		"login[auth]":                  `did you mean 'invocation.login["auth"]'?`,
		"login[0]":                     "did you mean 'invocation.login[0]'?",
		"invocation.":                  "not an address; examples:",
		"invocation":                   "not an address; examples:",
		"invocation.a[01]":             "not an address; examples:",
		"sandplan.nope":                "not an address; examples:",
		"a b":                          "not an address; examples:",
	} {
		if _, err := ParseAddress(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for in, why := range map[string]string{
		"":                            "nothing",
		"login":                       "no block type",
		"invocation":                  "no name",
		"invocation.":                 "an empty name",
		"invocation.a.b":              "no such part",
		"invocation.a[x]":             "a bare word as key",
		"invocation.a[01]":            "a number that is spelled in two ways",
		`invocation.a["x]`:            "a key without an end",
		`invocation.a["x"].agent `:    "a trailing space",
		"invocation.a.runner":         "a runner without a name",
		"vendor.claude":               "a vendor is no object",
		"sandplan.everything":         "no such shared object",
		"invocation.a.agent\ninvoke.": "a second line",
	} {
		if a, err := ParseAddress(in); err == nil {
			t.Errorf("%s: %q was accepted as %q", why, in, a)
		} else if !strings.Contains(err.Error(), "invocation.login.agent") {
			t.Errorf("%s: the error for %q gives no example: %v", why, in, err)
		}
	}
}

func TestAddressOfInstance(t *testing.T) {
	for _, c := range []struct {
		key  any
		want Address
	}{{nil, "invocation.i"}, {3, "invocation.i[3]"}, {"a", `invocation.i["a"]`}, {"q\"\n", `invocation.i["q\"\n"]`}} {
		a := InvocationAddress("i", c.key)
		if a != c.want {
			t.Errorf("InvocationAddress(i, %v) = %q, want %q", c.key, a, c.want)
		}
		if _, err := ParseAddress(string(a)); err != nil {
			t.Errorf("the address of key %v does not parse: %v", c.key, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a key of another type is a mistake of the program and must panic")
		}
	}()
	InvocationAddress("i", 1.5)
}

func TestSortAddresses(t *testing.T) {
	want := []Address{
		"sandplan.image", "sandplan.shim", "sandplan.uplink", "vendor.a.image", "vendor.b.image",
		`phase.review.runner["test"].image`,
		"invocation.a", "invocation.a.network", "invocation.a.proxy", "invocation.a.agent",
		`invocation.a.runner["lint"]`, `invocation.a.runner["test"]`,
		"invocation.n[2].agent", "invocation.n[10].network", "invocation.n[10].agent",
		`invocation.z["a"].agent`, `invocation.z["b"].network`,
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	SortAddresses(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range want {
		for j := range want {
			if got, less := want[i].Less(want[j]), i < j; got != less {
				t.Errorf("%q < %q is %v", want[i], want[j], got)
			}
		}
	}
}

// Splitting by hand must say the same as the pattern, for every address that the pattern accepts.
func FuzzAddressSplit(f *testing.F) {
	for _, s := range []string{"invocation.a", "invocation.a[0].agent", `invocation.a["]."].runner["x"]`, `invocation.a["\\"]`, "vendor.x.image"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := invocationPattern.FindStringSubmatch(s)
		if m == nil {
			return
		}
		inv, part := Address(s).split()
		if string(inv) != m[1]+m[2] || part != m[3] {
			t.Errorf("split(%q) = %q, %q; the pattern says %q, %q", s, inv, part, m[1]+m[2], m[3])
		}
		if inv.Invocation() != inv {
			t.Errorf("the invocation of %q is not its own invocation", inv)
		}
	})
}
