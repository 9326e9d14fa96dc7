package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestResetWhileItWaits: an agent who resets while its name is looked up or its host dialled holds its place no longer
// than until somebody looks, whatever the bounds are. Who has only ended what it says is still to have its tunnel.
func TestResetWhileItWaits(t *testing.T) {
	t.Parallel()
	addrs := []netip.Addr{netip.MustParseAddr(vendorAddr), netip.MustParseAddr("198.50.0.2")}
	for _, tt := range []struct {
		name         string
		lookup, late bool // it waits for the lookup; which succeeds nevertheless
		dials        int
	}{
		{"for the lookup", true, false, 0},
		{"for the lookup, and then for the first address", true, true, 1},
		{"for the first address", false, false, 1},
	} {
		for _, ends := range []bool{false, true} {
			name := tt.name
			if ends {
				name += ", behind an end"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := startProxy(t, patientConfig(), silent(t).String())
				waits, dial := make(chan struct{}, 8), dialOut()
				p.set(func() {
					p.resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
						if tt.lookup {
							waits <- struct{}{}
							<-ctx.Done()
						}
						if tt.lookup && !tt.late {
							return nil, ctx.Err()
						}
						return addrs, nil
					}
					p.dialer = func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
						waits <- struct{}{}
						return dial(ctx, at)
					}
				})
				c := p.raw(connectTo(okTarget))
				<-waits
				if ends {
					if err := c.CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}
				for range 20 { // an end is no reason, however often it is looked at
					p.server.open.freeNow()
					time.Sleep(5 * time.Millisecond)
				}
				if n := len(p.server.slots); n != 1 || len(p.log.entries(t)) > 0 {
					t.Fatalf("%d tunnels have their place, and the log says %+v", n, p.log.entries(t))
				}
				abort(c)
				p.awaitFree()
				e := p.awaitReason(reason.HelloMissing)
				if e.Decision != Refuse || !strings.Contains(e.Error, syscall.ECONNRESET.Error()) || len(p.log.entries(t)) != 1 {
					t.Errorf("%+v", p.log.entries(t))
				}
				if _, dials := p.seen(); len(dials) != tt.dials {
					t.Errorf("dials %v, want %d", dials, tt.dials)
				}
			})
		}
	}
}

// TestEndWhileItWaits: an agent who ends what it says while its name is looked up still has its tunnel, and what was
// waited for is of no consequence for that.
func TestEndWhileItWaits(t *testing.T) {
	t.Parallel()
	p := startProxy(t, patientConfig(), upstream(t, func(c *net.TCPConn) {
		if b, err := io.ReadAll(c); len(b) == 0 && err == nil {
			_, _ = io.WriteString(c, "all of it")
		}
	}))
	waits, found := make(chan struct{}, 1), make(chan struct{})
	p.set(func() {
		p.resolve = func(context.Context, string) ([]netip.Addr, error) {
			waits <- struct{}{}
			<-found
			return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
		}
	})
	c := p.raw(connectTo(okTarget))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-waits
	for range 20 {
		p.server.open.freeNow()
		time.Sleep(5 * time.Millisecond)
	}
	close(found)
	if b, err := io.ReadAll(c); string(b) != established+"all of it" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	p.awaitReason(reason.Closed)
}

// TestNothingWaitedForIsKept: a tunnel that stands does not hold what could have ended its lookup or its dial.
func TestNothingWaitedForIsKept(t *testing.T) {
	o := &open{conns: map[*socket]struct{}{}}
	first := &socket{}
	o.add(first)
	o.waits(first, func() { t.Error("given up") })
	o.pair(first, &socket{})
	o.freeNow()
	if first.giveUp != nil {
		t.Error("it is kept")
	}
}
