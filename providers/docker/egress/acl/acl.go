// Package acl decides what a tunnel may be opened to: the exact hosts and ports that are declared and
// nothing else. There are no patterns, no defaults, no order and no exceptions, and no name is looked
// up to decide.
package acl

import (
	"fmt"
	"net/netip"
	"sort"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/egress/hostport"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// Rule allows one host and port.
type Rule struct {
	Host string
	Port uint16
	// Addresses are dialled instead of what a lookup would say.
	Addresses []netip.Addr
	// TLS says that the tunnel must begin with a TLS hello for Host.
	TLS bool
	// Decl is the address of the declaration.
	Decl string
}

// Decision is what was decided about a target, and why.
type Decision struct {
	Reason reason.Reason
	// Rule is the one that allows it; the zero Rule when nothing does.
	Rule Rule
}

// Allowed says whether the tunnel may be opened.
func (d Decision) Allowed() bool { return d.Reason == reason.Allowed }

// List are the rules of one proxy. The zero List allows nothing.
type List struct {
	rules map[hostport.Target]Rule
	hosts map[string]bool
}

// New makes a list. A rule that is not in canonical form, or that stands there twice, is an error: it
// would otherwise silently match nothing, or the wrong one of two.
func New(rules []Rule) (*List, error) {
	l := &List{rules: map[hostport.Target]Rule{}, hosts: map[string]bool{}}
	for _, r := range rules {
		t := hostport.Target{Host: r.Host, Port: r.Port}
		if why := hostport.CheckName(r.Host); why != reason.None {
			return nil, fmt.Errorf("host %q: %s", r.Host, why.Text())
		}
		if r.Port == 0 {
			return nil, fmt.Errorf("host %q: %s", r.Host, reason.BadPort.Text())
		}
		if _, ok := l.rules[t]; ok {
			return nil, fmt.Errorf("host %s is declared twice", t)
		}
		for _, a := range r.Addresses {
			if !a.IsValid() || a.Zone() != "" || a != a.Unmap() || a.IsUnspecified() {
				return nil, fmt.Errorf("host %s: %s cannot be dialled", t, a)
			}
		}
		l.rules[t] = r
		l.hosts[r.Host] = true
	}
	return l, nil
}

// Decide says whether a tunnel to the target may be opened.
func (l *List) Decide(t hostport.Target) Decision {
	if r, ok := l.rules[t]; ok {
		return Decision{Reason: reason.Allowed, Rule: r}
	}
	if l.hosts[t.Host] {
		return Decision{Reason: reason.PortNotDeclared}
	}
	return Decision{Reason: reason.HostNotDeclared}
}

// Targets are what the list allows, sorted, for the text of a refusal.
func (l *List) Targets() []string {
	out := make([]string, 0, len(l.rules))
	for t := range l.rules {
		out = append(out, t.String())
	}
	sort.Slice(out, func(i, j int) bool { return less(out[i], out[j]) })
	return out
}

func less(a, b string) bool {
	ha, pa, _ := strings.Cut(a, ":")
	hb, pb, _ := strings.Cut(b, ":")
	if ha != hb {
		return ha < hb
	}
	na, _ := strconv.Atoi(pa)
	nb, _ := strconv.Atoi(pb)
	return na < nb
}
