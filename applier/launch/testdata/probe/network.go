package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

type network struct {
	hosts    []string
	tcp, udp int
	word     string
	under    *sync.WaitGroup // what is under way
}

const patience = 2 * time.Second

// bound is a dialer whose packets leave by the interface, whatever the routes say: the host's other
// addresses could be reached so.
func bound() *net.Dialer {
	return &net.Dialer{Timeout: patience, Control: func(_, _ string, c syscall.RawConn) (err error) {
		control := c.Control(func(fd uintptr) {
			if err = syscall.SetsockoptString(int(fd), syscall.SOL_SOCKET, syscall.SO_BINDTODEVICE, "eth0"); err == nil {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_DONTROUTE, 1)
			}
			if err == nil {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1)
			}
		})
		if err == nil {
			err = control
		}
		return err
	}}
}

// reach sends to every address of the host, in every way that needs no capability.
func (n network) reach() {
	plain := &net.Dialer{Timeout: patience}
	for _, host := range n.hosts {
		n.dial("tcp "+host, plain, "tcp", net.JoinHostPort(host, fmt.Sprint(n.tcp)))
		n.dial("tcp bound "+host, bound(), "tcp", net.JoinHostPort(host, fmt.Sprint(n.tcp)))
		n.dial("udp "+host, plain, "udp", net.JoinHostPort(host, fmt.Sprint(n.udp)))
		n.dial("udp bound "+host, bound(), "udp", net.JoinHostPort(host, fmt.Sprint(n.udp)))
	}
	for _, group := range []string{"255.255.255.255", "224.0.0.1", "239.255.255.250"} {
		n.dial("udp bound "+group, bound(), "udp", net.JoinHostPort(group, fmt.Sprint(n.udp)))
	}
	n.dial("udp6 all nodes", plain, "udp", fmt.Sprintf("[ff02::1%%eth0]:%d", n.udp))
	n.dial("tcp6 outside", plain, "tcp", "[2606:4700:4700::1111]:443")
	n.dial("tcp outside", plain, "tcp", "1.1.1.1:443")
	for name, kind := range map[string][3]int{
		"packet socket": {syscall.AF_PACKET, syscall.SOCK_RAW, 0x0300},
		"raw socket":    {syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP},
		"ping socket":   {syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP},
		"vsock":         {40, syscall.SOCK_STREAM, 0},
		"crypto socket": {38, syscall.SOCK_SEQPACKET, 0},
	} {
		_, err := syscall.Socket(kind[0], kind[1], kind[2])
		say(name, err)
	}
	n.under.Wait()
	show("routes", "/proc/net/route")
	show("ipv6", "/proc/net/if_inet6")
	show("ipv6 routes", "/proc/net/ipv6_route")
}

// dial sends the word to an address.
func (n network) dial(check string, d *net.Dialer, proto, addr string) {
	n.under.Go(func() {
		conn, err := d.Dial(proto, addr)
		if err == nil {
			_, err = fmt.Fprintf(conn, "%s by %s", n.word, check)
			conn.Close()
		}
		say(check, err)
	})
}

// resolve asks for a name that nobody else asks for, in every way.
func (n network) resolve() {
	ask := func(check string, r *net.Resolver) {
		n.under.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			addrs, err := r.LookupHost(ctx, n.word+".example.com")
			if err == nil {
				err = fmt.Errorf("it is %v", addrs)
			}
			fmt.Printf("%s: %v\n", check, err)
		})
	}
	defer n.under.Wait()
	ask("dns", &net.Resolver{PreferGo: true})
	for _, proto := range []string{"udp", "tcp"} {
		for _, server := range append([]string{"127.0.0.11", "127.0.0.1"}, n.hosts...) {
			ask("dns "+proto+" "+server, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: patience}).DialContext(ctx, proto, net.JoinHostPort(server, "53"))
			}})
		}
	}
}

// show prints a file of the kernel's in one line.
func show(check, name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		say(check, err)
		return
	}
	fmt.Printf("%s: %s\n", check, strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), " | "))
}
