package hclspec

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func parsePrefix(v cty.Value) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v.AsString())
	if err != nil || p.Addr().Zone() != "" {
		return p, function.NewArgErrorf(0, `%q is not a network; write one as in "10.0.0.0/16"`, clip(v.AsString()))
	}
	return p.Masked(), nil
}

// offset is the address that lies n addresses, each step of 2^shift, after a prefix's first. A negative
// n counts from the end of the 2^bits that there are.
func offset(p netip.Prefix, n *big.Int, bits, shift int) (netip.Addr, error) {
	room := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, room)
	}
	if n.Sign() < 0 || n.Cmp(room) >= 0 {
		return netip.Addr{}, fmt.Errorf("the number does not fit into the %d bits that are left", bits)
	}
	sum := new(big.Int).SetBytes(p.Addr().AsSlice())
	sum.Add(sum, new(big.Int).Lsh(n, uint(shift)))
	buf := make([]byte, len(p.Addr().AsSlice()))
	sum.FillBytes(buf)
	a, _ := netip.AddrFromSlice(buf)
	return a, nil
}

func wholeInt(v cty.Value, arg int) (*big.Int, error) {
	n, acc := v.AsBigFloat().Int(nil)
	if n == nil || acc != big.Exact {
		return nil, function.NewArgErrorf(arg, "a whole number is needed")
	}
	return n, nil
}

// smallInt is a whole number that fits into the bits of an address.
func smallInt(v cty.Value, arg, most int) (int, error) {
	n, err := wholeInt(v, arg)
	if err != nil {
		return 0, err
	}
	if !n.IsInt64() || n.Int64() < 0 || n.Int64() > int64(most) {
		return 0, function.NewArgErrorf(arg, "a whole number from 0 to %d is needed", most)
	}
	return int(n.Int64()), nil
}

var prefixParam = function.Parameter{Name: "prefix", Type: cty.String}

var cidrHostFunc = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam, {Name: "hostnum", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		none := cty.UnknownVal(cty.String)
		p, err := parsePrefix(args[0])
		if err != nil {
			return none, err
		}
		n, err := wholeInt(args[1], 1)
		if err != nil {
			return none, err
		}
		a, err := offset(p, n, p.Addr().BitLen()-p.Bits(), 0)
		if err != nil {
			return none, function.NewArgError(1, err)
		}
		return cty.StringVal(a.String()), nil
	},
})

var cidrNetmaskFunc = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parsePrefix(args[0])
		if err == nil && !p.Addr().Is4() {
			err = function.NewArgErrorf(0, "only IPv4 networks have a netmask")
		}
		if err != nil {
			return cty.UnknownVal(cty.String), err
		}
		ones := netip.PrefixFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), p.Bits())
		return cty.StringVal(ones.Masked().Addr().String()), nil
	},
})

// subnet is the n-th network of newbits more bits within a prefix.
func subnet(p netip.Prefix, newbits int, n *big.Int) (netip.Prefix, error) {
	bits := p.Bits() + newbits
	if bits > p.Addr().BitLen() {
		return netip.Prefix{}, fmt.Errorf("%s has no room for %d bits more", p, newbits)
	}
	a, err := offset(p, n, newbits, p.Addr().BitLen()-bits)
	return netip.PrefixFrom(a, bits), err
}

var cidrSubnetFunc = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam, {Name: "newbits", Type: cty.Number}, {Name: "netnum", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		none := cty.UnknownVal(cty.String)
		p, err := parsePrefix(args[0])
		if err != nil {
			return none, err
		}
		newbits, err := smallInt(args[1], 1, 128)
		if err != nil {
			return none, err
		}
		n, err := wholeInt(args[2], 2)
		if err != nil {
			return none, err
		}
		s, err := subnet(p, newbits, n)
		if err != nil {
			return none, err
		}
		return cty.StringVal(s.String()), nil
	},
})

// cidrSubnetsFunc lays networks one after the other, each aligned to its own size.
var cidrSubnetsFunc = function.New(&function.Spec{
	Params:   []function.Parameter{prefixParam},
	VarParam: &function.Parameter{Name: "newbits", Type: cty.Number},
	Type:     function.StaticReturnType(cty.List(cty.String)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		none := cty.UnknownVal(cty.List(cty.String))
		p, err := parsePrefix(args[0])
		if err != nil {
			return none, err
		}
		total := p.Addr().BitLen() - p.Bits()
		next := new(big.Int) // the first free address, counted from the prefix's own
		var out []string
		for i, arg := range args[1:] {
			newbits, err := smallInt(arg, i+1, 128)
			if err != nil {
				return none, err
			}
			if newbits > total {
				return none, function.NewArgErrorf(i+1, "%s has no room for %d bits more", p, newbits)
			}
			shift := uint(total - newbits)
			n := new(big.Int).Rsh(new(big.Int).Add(next, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), shift), big.NewInt(1))), shift)
			s, err := subnet(p, newbits, n)
			if err != nil {
				return none, function.NewArgError(i+1, errors.New("there is no room left for it"))
			}
			next = new(big.Int).Lsh(n.Add(n, big.NewInt(1)), shift)
			out = append(out, s.String())
		}
		return listOf(out), nil
	},
})
