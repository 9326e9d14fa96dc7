package planner

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Address names one object of a scope in the user's words, for example
// invocation.login["auth"].agent, vendor.claude.image or sandplan.uplink.
// The zero value names nothing.
type Address string

// Addresses of the objects that a scope shares.
const (
	AddrImage  Address = "sandplan.image"
	AddrShim   Address = "sandplan.shim"
	AddrUplink Address = "sandplan.uplink"
)

// Parts of an invocation, as the last element of an address.
const (
	PartNetwork = "network"
	PartProxy   = "proxy"
	PartAgent   = "agent"
)

const (
	identPattern = `[A-Za-z_][A-Za-z0-9_-]*`
	keyPattern   = `\["(?:[^"\\]|\\.)*"\]|\[(?:0|[1-9][0-9]*)\]`
)

var (
	invocationPattern = regexp.MustCompile(`^(invocation\.` + identPattern + `)(` + keyPattern + `)?(?:\.(network|proxy|agent|runner\["` + identPattern + `"\]))?$`)
	otherPattern      = regexp.MustCompile(`^(?:sandplan\.(?:image|shim|uplink)|vendor\.` + identPattern + `\.image|phase\.` + identPattern + `\.runner\["` + identPattern + `"\]\.image)$`)
)

// ParseAddress reads an address as a user types it. An invocation without a part, or without the
// key of its instance, is an address too: it stands for all that it contains (see Contains).
func ParseAddress(s string) (Address, error) {
	if invocationPattern.MatchString(s) || otherPattern.MatchString(s) {
		return Address(s), nil
	}
	examples := "examples"
	if meant := probably(s); meant != "" {
		examples = "did you mean " + meant + "? Examples"
	}
	return "", fmt.Errorf("%q is not an address; %s: invocation.login, invocation.login[\"auth\"], "+
		"invocation.login.agent, vendor.claude.image, sandplan.uplink", s, examples)
}

// unquoted is a key whose quotes a shell has taken.
var unquoted = regexp.MustCompile(`\[([^"\]0-9][^"\]]*)\]`)

// probably is the address that was meant where only its beginning is missing, or a shell has taken the quotes of
// its key; as a shell leaves it alone. "" is for everything else.
func probably(s string) string {
	if s == "invocation" {
		return ""
	}
	for _, start := range []string{"", "invocation."} {
		if a := start + s; invocationPattern.MatchString(a) {
			return shellWord(a)
		}
		if a := start + unquoted.ReplaceAllString(s, `["$1"]`); invocationPattern.MatchString(a) {
			return shellWord(a)
		}
	}
	return ""
}

func shellWord(a string) string {
	if strings.ContainsAny(a, `["`) {
		return "'" + a + "'"
	}
	return a
}

// InvocationAddress is the address of one instance of an invocation block. The key is nil for a
// block without for_each and count, a string for for_each, an int for count.
func InvocationAddress(name string, key any) Address {
	switch k := key.(type) {
	case nil:
		return Address("invocation." + name)
	case string:
		return Address("invocation." + name + "[" + strconv.Quote(k) + "]")
	case int:
		return Address("invocation." + name + "[" + strconv.Itoa(k) + "]")
	}
	panic(fmt.Sprintf("an instance key is nil, a string or an int, not %T", key))
}

// With is the address of a part (PartNetwork, PartProxy, PartAgent) of an invocation.
func (a Address) With(part string) Address { return a + Address("."+part) }

// Runner is the address of a runner of an invocation.
func (a Address) Runner(name string) Address {
	return a + Address(".runner["+strconv.Quote(name)+"]")
}

// VendorImage is the address of the image that a vendor's agents are made from.
func VendorImage(vendor string) Address { return Address("vendor." + vendor + ".image") }

// RunnerImage is the address of the image of a phase's runner.
func RunnerImage(phase, runner string) Address {
	return Address("phase." + phase + ".runner[" + strconv.Quote(runner) + "].image")
}

// Invocation is the instance that the address belongs to: invocation.login["auth"] for
// invocation.login["auth"].agent, and "" for an address that belongs to no invocation.
func (a Address) Invocation() Address {
	inv, _ := a.split()
	return inv
}

// Block is the block that an invocation's address comes from: invocation.login for
// invocation.login["auth"].agent, and "" for an address that belongs to no invocation.
func (a Address) Block() Address {
	inv := a.Invocation()
	if i := strings.IndexByte(string(inv), '['); i >= 0 {
		return inv[:i]
	}
	return inv
}

// Part is what the address names within its invocation (agent, runner["test"], …), or within its
// vendor, phase or scope (image, uplink, …); "" when it names a whole invocation.
func (a Address) Part() string {
	if inv, part := a.split(); inv != "" {
		return part
	}
	return string(a[strings.LastIndexByte(string(a), '.')+1:])
}

// split cuts an address that ParseAddress accepts into instance and part; inv is "" for one that belongs
// to no invocation. Plans split addresses thousands of times, so it does not use the patterns.
func (a Address) split() (inv Address, part string) {
	const prefix = "invocation."
	if !strings.HasPrefix(string(a), prefix) {
		return "", ""
	}
	i := len(prefix)
	for i < len(a) && a[i] != '.' && a[i] != '[' {
		i++
	}
	if i < len(a) && a[i] == '[' {
		i = keyEnd(string(a), i)
	}
	return a[:i], strings.TrimPrefix(string(a[i:]), ".")
}

// keyEnd is where the instance key that starts at i ends. A quoted key may hold any character.
func keyEnd(a string, i int) int {
	quoted := false
	for i++; i < len(a); i++ {
		switch {
		case quoted && a[i] == '\\':
			i++
		case a[i] == '"':
			quoted = !quoted
		case !quoted && a[i] == ']':
			return i + 1
		}
	}
	return len(a)
}

// Contains reports whether b is a or lies within a: invocation.login contains
// invocation.login["auth"], and that contains invocation.login["auth"].agent.
func (a Address) Contains(b Address) bool {
	if a == b {
		return true
	}
	rest, ok := strings.CutPrefix(string(b), string(a))
	return ok && a != "" && (rest[0] == '.' || rest[0] == '[')
}

// SortAddresses orders addresses in place as plans list them: shared objects and images first, then
// invocations by name and key (numbers by value), and within one its network, proxy, agent, runners.
func SortAddresses(as []Address) { slices.SortFunc(as, compareAddresses) }

// Less is the order of SortAddresses.
func (a Address) Less(b Address) bool { return compareAddresses(a, b) < 0 }

func compareAddresses(a, b Address) int {
	if n := a.rank() - b.rank(); n != 0 {
		return n
	}
	ia, pa := a.split()
	ib, pb := b.split()
	if ia != ib {
		return compareInstances(string(ia), string(ib))
	}
	if n := partRank(pa) - partRank(pb); n != 0 {
		return n
	}
	return strings.Compare(string(a), string(b))
}

func (a Address) rank() int {
	switch {
	case strings.HasPrefix(string(a), "sandplan."):
		switch a {
		case AddrShim:
			return 1
		case AddrUplink:
			return 2
		}
		return 0
	case strings.HasPrefix(string(a), "vendor."):
		return 3
	case strings.HasPrefix(string(a), "phase."):
		return 4
	}
	return 5
}

func partRank(p string) int {
	switch p {
	case "":
		return 0
	case PartNetwork:
		return 1
	case PartProxy:
		return 2
	case PartAgent:
		return 3
	}
	return 4
}

// compareInstances puts invocation.a[2] before invocation.a[10].
func compareInstances(a, b string) int {
	na, ka, oka := cutIndex(a)
	nb, kb, okb := cutIndex(b)
	if oka && okb && na == nb {
		return cmp.Compare(ka, kb)
	}
	return strings.Compare(a, b)
}

func cutIndex(s string) (name string, n int, ok bool) {
	i := strings.IndexByte(s, '[')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(s[i+1:], "]"))
	return s[:i], n, err == nil
}
