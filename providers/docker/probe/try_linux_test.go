package probe

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestEveryAttemptIsTried: the list and the program name the same.
func TestEveryAttemptIsTried(t *testing.T) {
	p := &prober{}
	atOnce, inTurn := p.atOnce(), p.inTurn()
	for _, a := range Attempts() {
		if (atOnce[a.ID] == nil) == (inTurn[a.ID] == nil) {
			t.Errorf("%s is tried at once: %v, in turn: %v; it has to be one of them", a.ID, atOnce[a.ID] != nil, inTurn[a.ID] != nil)
		}
	}
	if n := len(atOnce) + len(inTurn); n != len(Attempts()) {
		t.Errorf("the program tries %d things, the list has %d", n, len(Attempts()))
	}
}

// TestAddressToken reads what a packet says that has no room for a token.
func TestAddressToken(t *testing.T) {
	const session = "0123456789ab"
	p := &prober{Job: Job{Token: Token{Session: session, Run: 1}}}
	v4 := func(protocol byte, to [4]byte, port uint16) []byte {
		b := make([]byte, 24)
		b[0], b[9] = 0x45, protocol
		copy(b[12:], []byte{10, 1, 2, 3})
		copy(b[16:], to[:])
		b[22], b[23] = byte(port>>8), byte(port)
		return b
	}
	v6 := make([]byte, 44)
	v6[0], v6[6] = 0x60, 6
	copy(v6[8:], []byte{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3})
	copy(v6[24:], []byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4})
	v6[42], v6[43] = byte((firstPort+2)>>8), byte((firstPort+2)&0xff)
	for _, tc := range []struct {
		name, reason string
		packet       []byte
		want         Token
		ok           bool
	}{
		{"a TCP SYN to the internet", "it carries no payload", v4(6, [4]byte{198, 51, 100, 7}, firstPort+4), Token{session, 4, 7}, true},
		{"UDP", "a datagram carries its token", v4(17, [4]byte{198, 51, 100, 9}, firstPort), Token{}, false},
		{"another port", "a run is told by its port", v4(6, [4]byte{198, 51, 100, 7}, 443), Token{}, false},
		{"another address", "what goes elsewhere is not ours", v4(6, [4]byte{198, 51, 101, 7}, firstPort), Token{}, false},
		{"ICMP", "it has no port; its payload holds the token", v4(1, [4]byte{198, 51, 100, 7}, firstPort), Token{}, false},
		{"metadata", "its address is not ours to choose", v4(6, [4]byte{169, 254, 169, 254}, firstPort+5), Token{session, 5, Number("proxy-metadata")}, true},
		{"IPv6", "the same there", v6, Token{session, 2, 4}, true},
		{"cut off", "what is captured may be too short", v4(6, [4]byte{198, 51, 100, 7}, firstPort)[:21], Token{}, false},
		{"empty", "the same", nil, Token{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, _, got, ok := p.addressToken(tc.packet)
			if ok && from.String() != "10.1.2.3" && from.String() != "fd00::3" {
				t.Errorf("it comes from %s", from)
			}
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s: %+v, %v; want %+v, %v", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}

// TestPacketFilter: what may hold a token passes, and the traffic of a busy machine does not.
func TestPacketFilter(t *testing.T) {
	vm, err := bpf.NewVM(packetFilter())
	if err != nil {
		t.Fatal(err)
	}
	packet := func(first, protocol byte, to [4]byte) []byte {
		b := make([]byte, 40)
		b[0], b[9] = first, protocol
		copy(b[16:], to[:])
		return b
	}
	lan, outside, metadata := [4]byte{10, 0, 0, 1}, [4]byte{198, 51, 100, 7}, [4]byte{169, 254, 169, 254}
	for _, tc := range []struct {
		name, reason string
		packet       []byte
		want         bool
	}{
		{"UDP", "its payload may be a token", packet(0x45, 17, lan), true},
		{"UDP with options", "the header may be longer", packet(0x4f, 17, lan), true},
		{"ICMP", "the same", packet(0x45, 1, lan), true},
		{"TCP to the internet", "its address is the token", packet(0x45, 6, outside), true},
		{"TCP to metadata", "the same", packet(0x45, 6, metadata), true},
		{"TCP on the network", "who listens there tells of it", packet(0x45, 6, lan), false},
		{"IPv6", "there is little of it", packet(0x60, 0, lan), true},
		{"ARP", "it carries nothing", packet(0x00, 0, lan), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if n, err := vm.Run(tc.packet); err != nil || (n > 0) != tc.want {
				t.Errorf("%s: %d bytes pass (%v)", tc.reason, n, err)
			}
		})
	}
}

// A machine whose only IPv6 address is loopback's, or on a link without a carrier, has nothing to try IPv6 on.
func TestNoIPv6Link(t *testing.T) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its network namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil && hasIPv6Link() {
			err = errors.New("a network namespace with nothing in it has a link with an IPv6 address")
		}
		if r := (&prober{Job: Job{Role: RoleCanary, HostAddresses: []string{"fe80::1"}}}).egressIPv6(); err == nil && !r.absent {
			err = fmt.Errorf("tried all the same: %+v", r)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
