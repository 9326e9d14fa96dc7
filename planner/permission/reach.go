package permission

import (
	"slices"
	"strings"
)

// endpoint is one entry of Set.Reach: HOST:PORT, then " at ADDRESS, ADDRESS" where the addresses are fixed, then
// " without TLS" where anything may be spoken.
type endpoint struct {
	where string
	fixed []string
	plain bool
}

// readEndpoint takes a text apart. Of one in another form nothing is known but itself.
func readEndpoint(text string) endpoint {
	rest, plain := strings.CutSuffix(text, " without TLS")
	where, at, isFixed := strings.Cut(rest, " at ")
	e := endpoint{where: where, plain: plain}
	if isFixed {
		e.fixed = strings.Split(at, ", ")
	}
	if strings.ContainsAny(where, " \t\n{") {
		return endpoint{where: text}
	}
	return e
}

// within reports whether an endpoint lets nothing through that another one does not.
func (e endpoint) within(other endpoint) bool {
	switch {
	case e.where != other.where, e.plain && !other.plain:
		return false
	case len(other.fixed) == 0: // a public address; a fixed one can be any
		return len(e.fixed) == 0
	case len(e.fixed) == 0: // whatever the name stands for
		return false
	}
	return !slices.ContainsFunc(e.fixed, func(a string) bool { return !slices.Contains(other.fixed, a) })
}

// reach: fewer fixed addresses, or the same in another order, are no more than before, and neither is TLS where
// there was none.
func reach(base, now Set) []pair {
	var out []pair
	for _, text := range now.Reach {
		e, from, held := readEndpoint(text), "", false
		for _, had := range base.Reach {
			old := readEndpoint(had)
			held = held || had == text || e.within(old)
			if old.where == e.where {
				from = had
			}
		}
		if !held {
			out = append(out, pair{from, text})
		}
	}
	return out
}
