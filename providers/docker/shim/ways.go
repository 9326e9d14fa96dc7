//go:build linux

package shim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wayBound is how long an attempt to get out may take. Who would answer on the same bridge answers
	// within a fraction of a millisecond, and whoever is further away only by way of one who does.
	wayBound = 80 * time.Millisecond
	// proxyBound is how long the proxy may take: it looks the vendor up and dials it.
	proxyBound = 20 * time.Second
	// discard is a port that nobody uses; that a host refuses it is an answer as well.
	discard = 9
)

// proveNoWayOut tries to reach the host, the network's other addresses and the world past the proxy.
func proveNoWayOut(n *Network, hosts []string, links []link) checks {
	var c checks
	var targets []netip.AddrPort
	for _, h := range hosts {
		a, err := netip.ParseAddr(h)
		if err != nil {
			c.fail("net.host", err)
			return c
		}
		// Its own loopback addresses are this container's as well.
		if !a.IsLoopback() {
			targets = append(targets, netip.AddrPortFrom(a, discard))
		}
	}
	for _, a := range others(n) {
		targets = append(targets, netip.AddrPortFrom(a, discard))
	}
	fromHost := len(targets)
	if n != nil {
		for _, d := range n.Direct {
			targets = append(targets, netip.MustParseAddrPort(d))
		}
	}
	answers := make([]string, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		sendDatagrams(t, links)
		wg.Go(func() { answers[i] = dialOut(t) })
	}
	if n != nil {
		// A datagram needs as long as a connection to find its way, and no dial may be left to wait for.
		wg.Go(func() { time.Sleep(wayBound) })
	}
	wg.Wait()
	found := func(from, to int) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(answers[from:to]), func(s string) bool { return s == "" }), "; ")
	}
	reached := found(0, fromHost)
	c.add("net.host", reached == "", "%s", reached)
	reached = found(fromHost, len(targets))
	c.add("net.direct", reached == "", "%s", reached)
	return c
}

// others are the addresses of the container's network that are neither its own nor the proxy's: the
// gateway, and room for somebody who should not be there. A network too large to try is not ours.
func others(n *Network) []netip.Addr {
	if n == nil {
		return nil
	}
	own := netip.MustParsePrefix(n.Address)
	proxy := netip.MustParseAddrPort(n.Proxy).Addr()
	var out []netip.Addr
	for a := own.Masked().Addr(); own.Contains(a) && len(out) < 16; a = a.Next() {
		if a != own.Addr() && a != proxy {
			out = append(out, a)
		}
	}
	return out
}

// dialOut says that somebody answers at an address, "" when nobody does.
func dialOut(t netip.AddrPort) string {
	conn, err := net.DialTimeout("tcp", t.String(), wayBound)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Sprintf("%s accepts connections", t)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Sprintf("%s answers", t)
	}
	return ""
}

// sendDatagrams sends to an address in the ways that go round the routing table: bound to each
// interface, and as if it were on the same link. Nothing listens for an answer; the neighbour table
// tells whether one of them had somewhere to go.
func sendDatagrams(t netip.AddrPort, links []link) {
	send := func(device string, direct bool) {
		d := net.Dialer{Timeout: wayBound, Control: func(_, _ string, rc syscall.RawConn) error {
			return rc.Control(func(fd uintptr) {
				// Failure is as good as success: then an agent cannot do it either.
				if device != "" {
					_ = unix.BindToDevice(int(fd), device)
				}
				if direct {
					_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DONTROUTE, 1)
				}
			})
		}}
		if conn, err := d.DialContext(context.Background(), "udp", t.String()); err == nil {
			_, _ = conn.Write([]byte("sandplan: is anybody there?"))
			conn.Close()
		}
	}
	send("", false)
	for _, l := range links {
		if l.name != "lo" {
			send(l.name, false)
			send(l.name, true)
		}
	}
}

// proveProxy asks the proxy for every host that it must let through and for one that it must refuse.
func proveProxy(n *Network) checks {
	if n == nil {
		return nil
	}
	targets := append(slices.Clone(n.Hosts), n.Refused)
	found := make(checks, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			name, want := "net.vendor", http.StatusOK
			if i == len(targets)-1 {
				name, want = "net.refused", http.StatusForbidden
			}
			var c checks
			status, body, err := connect(n.Proxy, t)
			if err != nil {
				c.add(name, false, "asking the proxy %s for %s: %v", n.Proxy, t, err)
			} else {
				c.add(name, status == want, "%s: the proxy answers %d%s, must be %d", t, status, body, want)
			}
			found[i] = c[0]
		})
	}
	wg.Wait()
	return found
}

// connect asks a proxy for a tunnel, and closes it at once.
func connect(proxy, target string) (status int, body string, err error) {
	conn, err := net.DialTimeout("tcp", proxy, proxyBound)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(proxyBound))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: sandplan-proof\r\n\r\n", target); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
		body = " (" + line + ")"
	}
	return resp.StatusCode, body, nil
}
