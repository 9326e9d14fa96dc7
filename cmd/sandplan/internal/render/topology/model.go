package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

// Model is a scope as a picture shows it.
type Model struct {
	Title       string // project/workspace
	Invocations []Invocation
	Vendors     []Vendor // sorted by name; only those that an invocation uses
}

// Invocation is one agent, or several that differ in nothing but their worktree.
type Invocation struct {
	Address  string
	Vendor   string
	Phase    string
	Tools    []string // nil where nobody knows them
	Worktree string
	Writable bool
	Runners  []string
	// More are the addresses of further instances that this one stands for.
	More []string
}

// Vendor is a vendor with what its agents reach.
type Vendor struct {
	Name  string
	Kind  string
	Hosts []string
}

// manyInstances is the number of like instances of one block from which on one stands for the rest.
const manyInstances = 4

// New makes a picture's model: many like instances become one, and every text is made harmless.
func New(title string, invocations []Invocation, vendors []Vendor) Model {
	m := Model{Title: render.Clean(title)}
	groups := map[string]int{}
	first := map[string]int{}
	for _, i := range invocations {
		groups[i.kin()]++
	}
	used := map[string]bool{}
	for _, i := range invocations {
		used[i.Vendor] = true
		i = i.clean()
		if n := groups[i.kin()]; n >= manyInstances {
			if at, there := first[i.kin()]; there {
				m.Invocations[at].More = append(m.Invocations[at].More, i.Address)
				continue
			}
			first[i.kin()] = len(m.Invocations)
		}
		m.Invocations = append(m.Invocations, i)
	}
	for _, v := range vendors {
		if used[v.Name] {
			v.Name, v.Kind = render.Clean(v.Name), render.Clean(v.Kind)
			v.Hosts = cleaned(v.Hosts)
			m.Vendors = append(m.Vendors, v)
		}
	}
	slices.SortFunc(m.Vendors, func(a, b Vendor) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// kin is equal for instances of one block that differ in nothing but their worktree.
func (i Invocation) kin() string {
	block, _, _ := strings.Cut(i.Address, "[")
	return fmt.Sprint(block, "\x00", i.Vendor, "\x00", i.Phase, i.Tools, i.Writable, i.Runners)
}

func (i Invocation) clean() Invocation {
	i.Address, i.Worktree = render.Clean(i.Address), render.Clean(i.Worktree)
	i.Vendor, i.Phase = render.Clean(i.Vendor), render.Clean(i.Phase)
	i.Tools, i.Runners = cleaned(i.Tools), cleaned(i.Runners)
	return i
}

func cleaned(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = render.Clean(s)
	}
	return out
}

// mode is how an invocation sees its worktree, in words.
func (i Invocation) mode() string {
	if i.Writable {
		return "read and write"
	}
	return "read only"
}

// tools are the tools in words.
func (i Invocation) toolText() string {
	if i.Tools == nil {
		return "its own command"
	}
	return strings.Join(i.Tools, ", ")
}

// name is the address, with the number of those that it stands for.
func (i Invocation) name() string {
	if len(i.More) > 0 {
		return fmt.Sprintf("%s and %d more", i.Address, len(i.More))
	}
	return i.Address
}

// hostsOf are the hosts that an invocation's proxy lets through.
func (m Model) vendor(name string) (Vendor, int) {
	for i, v := range m.Vendors {
		if v.Name == name {
			return v, i
		}
	}
	return Vendor{Name: name}, 0
}
