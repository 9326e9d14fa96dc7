package planner

// Recorded is what the objects' own labels say should be there, as if it were wanted. Diff of it with
// the same snapshot holds every object against its label, without any configuration. What an object
// depends on is wanted with it, so that a part that was taken away is missing.
func Recorded(s Snapshot) []Resource {
	var out []Resource
	there := map[Address]bool{}
	for _, o := range s.Objects {
		there[o.Addr] = true
	}
	for _, o := range s.Objects {
		if o.Kind == KindPinned {
			continue
		}
		r := Resource{Addr: o.Addr, Kind: o.Kind, DependsOn: o.DependsOn, Fields: o.Declared}
		if labelled(o.Kind) {
			r.Digest = Digest(o.Declared) // of the rows: the label of that name is what is to be judged
		} else {
			r.Fields, r.Digest = o.Observed, Digest(o.Observed)
		}
		out = append(out, r)
		for _, a := range o.DependsOn {
			if kind := kindOf(a); !there[a] && kind != KindPinned {
				there[a] = true
				out = append(out, Resource{Addr: a, Kind: kind})
			}
		}
	}
	return out
}

// kindOf is the kind of the object that stands at an address.
func kindOf(a Address) Kind {
	if a.Invocation() != "" {
		switch a.Part() {
		case PartNetwork:
			return KindNetwork
		case PartProxy:
			return KindProxy
		case PartAgent:
			return KindAgent
		}
		return KindRunner
	}
	switch a {
	case AddrImage:
		return KindImage
	case AddrShim:
		return KindShim
	case AddrUplink:
		return KindUplink
	}
	return KindPinned
}
