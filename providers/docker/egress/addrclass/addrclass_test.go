package addrclass

import (
	"net/netip"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

func TestCheck(t *testing.T) {
	c := Classifier{Own: []netip.Prefix{netip.MustParsePrefix("198.50.7.0/24"), netip.MustParsePrefix("2606:1::/64")}}
	tests := []struct {
		addr string
		want reason.Reason
	}{
		{"1.1.1.1", ""}, {"160.79.104.10", ""}, {"223.255.255.255", ""}, {"198.50.6.255", ""}, {"2606:4700::1111", ""}, {"2a00::1", ""},
		{"9.255.255.255", ""}, {"11.0.0.0", ""}, {"172.15.255.255", ""}, {"172.32.0.0", ""}, {"192.167.255.255", ""}, {"192.169.0.0", ""},
		{"100.63.255.255", ""}, {"100.128.0.0", ""}, {"198.17.255.255", ""}, {"198.20.0.0", ""}, {"126.255.255.255", ""}, {"128.0.0.0", ""},

		{"0.0.0.0", reason.Unspecified}, {"0.1.2.3", reason.Unspecified}, {"::", reason.Unspecified},
		{"127.0.0.1", reason.Loopback}, {"127.255.255.255", reason.Loopback}, {"::1", reason.Loopback},
		{"10.0.0.0", reason.Private}, {"10.255.255.255", reason.Private}, {"172.16.0.0", reason.Private}, {"172.31.255.255", reason.Private},
		{"192.168.0.1", reason.Private}, {"fc00::1", reason.Private}, {"fdff::1", reason.Private}, {"fec0::1", reason.Private},
		{"169.254.0.1", reason.LinkLocal}, {"fe80::1", reason.LinkLocal}, {"fe80::1%eth0", reason.LinkLocal}, {"febf::1", reason.LinkLocal},
		{"169.254.169.254", reason.Metadata}, {"169.254.170.2", reason.Metadata}, {"168.63.129.16", reason.Metadata},
		{"100.100.100.200", reason.Metadata}, {"192.0.0.192", reason.Metadata}, {"fd00:ec2::254", reason.Metadata}, {"fd20:ce::254", reason.Metadata},
		{"100.64.0.0", reason.CGNAT}, {"100.127.255.255", reason.CGNAT},
		{"224.0.0.1", reason.Multicast}, {"239.255.255.255", reason.Multicast}, {"ff02::1", reason.Multicast},
		{"255.255.255.255", reason.Broadcast}, {"240.0.0.1", reason.Reserved},
		{"192.0.2.1", reason.Documentation}, {"198.51.100.1", reason.Documentation}, {"203.0.113.1", reason.Documentation},
		{"2001:db8::1", reason.Documentation}, {"3fff::1", reason.Documentation},
		{"198.18.0.1", reason.Benchmarking}, {"198.19.255.255", reason.Benchmarking}, {"2001:2::1", reason.Benchmarking},
		{"192.0.0.9", reason.Reserved}, {"192.31.196.1", reason.Reserved}, {"192.52.193.1", reason.Reserved}, {"192.175.48.1", reason.Reserved},
		{"192.88.99.1", reason.SixToFour}, {"2002:7f00:1::", reason.SixToFour},
		{"2001::1", reason.Teredo}, {"2001:10::1", reason.Reserved}, {"2001:20::1", reason.Reserved},
		{"64:ff9b::7f00:1", reason.NAT64}, {"64:ff9b:1::a9fe:a9fe", reason.NAT64},
		{"::ffff:127.0.0.1", reason.Mapped}, {"::ffff:8.8.8.8", reason.Mapped}, {"::ffff:0:127.0.0.1", reason.Mapped}, {"::7f00:1", reason.Mapped},
		{"100::1", reason.Reserved}, {"5f00::1", reason.Reserved}, {"4000::1", reason.Reserved}, {"2620:4f:8000::1", reason.Reserved},

		{"198.50.7.1", reason.OwnNetwork}, {"::ffff:198.50.7.1", reason.OwnNetwork}, {"2606:1::5", reason.OwnNetwork},
	}
	for _, tt := range tests {
		if got := c.Check(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.addr, got, tt.want)
		}
	}
	if got := c.Check(netip.Addr{}); got == reason.None {
		t.Error("no address at all is public")
	}
}

// FuzzPublicIsPublic: what passes is what the standard library calls global unicast and not private.
func FuzzPublicIsPublic(f *testing.F) {
	f.Add([]byte{8, 8, 8, 8})
	f.Add([]byte{169, 254, 169, 254})
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok || (Classifier{}).Check(a) != reason.None {
			return
		}
		if a.Is4In6() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
			t.Fatalf("%s passes for public", a)
		}
	})
}

// TestMostSpecificReason: rows that lie in wider ones, and edges of rows. Without a row its addresses would be refused
// all the same, for a reason that is not theirs, or not at all.
func TestMostSpecificReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr   string
		want   reason.Reason
		reason string
	}{
		{"169.254.170.23", reason.Metadata, "in link-local"},
		{"169.254.170.2", reason.Metadata, "in link-local"},
		{"169.254.169.254", reason.Metadata, "in link-local"},
		{"169.254.170.3", reason.LinkLocal, "beside it"},
		{"168.63.129.16", reason.Metadata, "a public number"},
		{"168.63.129.15", reason.None, "beside it"},
		{"168.63.129.17", reason.None, "beside it"},
		{"100.100.100.200", reason.Metadata, "in CGNAT"},
		{"100.100.100.199", reason.CGNAT, "beside it"},
		{"192.0.0.192", reason.Metadata, "in the protocol assignments"},
		{"192.0.0.170", reason.Reserved, "beside it"},
		{"fd00:ec2::23", reason.Metadata, "in the unique local ones"},
		{"fd00:ec3::254", reason.Private, "beside it"},
		{"fd20:ce::254", reason.Metadata, "in the unique local ones"},
		{"fd20:ce::255", reason.Private, "beside it"},
		{"fd00:42::42", reason.Metadata, "in the unique local ones"},
		{"fd00:42::43", reason.Private, "beside it"},
		{"fe80::a9fe:a9fe", reason.Metadata, "in link-local"},
		{"fe80::a9fe:a9ff", reason.LinkLocal, "beside it"},
		{"::1", reason.Loopback, "in the compatible ones"},
		{"::", reason.Unspecified, "in the compatible ones"},
		{"::2", reason.Mapped, "beside them"},
		{"::ffff:0:8.8.8.8", reason.Mapped, "translated, beyond what has been given out"},
		{"::8.8.8.8", reason.Mapped, "compatible, beyond what has been given out"},
		{"64:ff9b::8.8.8.8", reason.NAT64, "beyond what has been given out"},
		{"64:ff9b:1:ffff::1", reason.NAT64, "beyond what has been given out"},
		{"2001:0:ffff::1", reason.Teredo, "in the protocol assignments"},
		{"2001:2:0:ffff::1", reason.Benchmarking, "in the protocol assignments"},
		{"2001:2:1::1", reason.Reserved, "beside it"},
		{"2001:1ff:ffff::1", reason.Reserved, "the last of the protocol assignments"},
		{"2001:200::1", reason.None, "the first behind them"},
		{"2001:db8:ffff::1", reason.Documentation, "behind them"},
		{"2001:db9::1", reason.None, "beside it"},
		{"2003::1", reason.None, "beside 6to4"},
		{"2620:4f:8000:ffff::1", reason.Reserved, "the last"},
		{"2620:4f:8001::1", reason.None, "beside it"},
		{"3fff:fff::1", reason.Documentation, "the last"},
		{"3ffe::1", reason.None, "beside it"},
		{"255.255.255.255", reason.Broadcast, "in the reserved ones"},
		{"255.255.255.254", reason.Reserved, "beside it"},
		{"240.0.0.0", reason.Reserved, "the first"},
		{"239.255.255.255", reason.Multicast, "beside it"},
		{"192.0.1.0", reason.None, "behind the protocol assignments"},
		{"192.31.195.255", reason.None, "before AS112"},
		{"192.31.197.0", reason.None, "behind AS112"},
		{"192.52.194.0", reason.None, "behind AMT"},
		{"192.88.98.255", reason.None, "before the relays"},
		{"192.88.100.0", reason.None, "behind the relays"},
		{"192.175.49.0", reason.None, "behind AS112"},
		{"198.51.101.0", reason.None, "behind the documentation's"},
		{"203.0.112.255", reason.None, "before the documentation's"},
		{"203.0.114.0", reason.None, "behind the documentation's"},
		{"fec0::1", reason.Private, "site-local, beyond what has been given out"},
		{"fe00::1", reason.Reserved, "beyond what has been given out"},
		{"ff0e::1", reason.Multicast, "global multicast, beyond what has been given out"},
	} {
		if got := (Classifier{}).Check(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("%s: %q, want %q (%s)", tt.addr, got, tt.want, tt.reason)
		}
	}
}
