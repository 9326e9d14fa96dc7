package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a dial waits. What is reached answers within milliseconds, and what is sent on the
// way is seen outside whether anybody answers or not.
const patience = 700 * time.Millisecond

// openPatience is for attempts that have to succeed: there a slow machine must not pass for a boundary.
const openPatience = 5 * time.Second

func (p *prober) patience() time.Duration {
	if p.Open {
		return openPatience
	}
	return patience
}

// way is how a packet is sent.
type way struct {
	device string // SO_BINDTODEVICE
	direct bool   // SO_DONTROUTE
}

func (w way) dialer(limit time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: limit, Control: func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			// Where it fails the packet goes the ordinary way, which is an attempt as well.
			if w.device != "" {
				_ = unix.BindToDevice(int(fd), w.device)
			}
			if w.direct {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DONTROUTE, 1)
			}
		})
	}}
}

// deviceWays go round the routing table, by each interface.
func deviceWays() []way {
	var out []way
	for _, name := range interfaces() {
		out = append(out, way{device: name}, way{device: name, direct: true})
	}
	return append(out, way{direct: true})
}

// interfaces are those that lead somewhere.
func interfaces() []string {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			out = append(out, i.Name)
		}
	}
	return out
}

// hasIPv6Link reports whether something can leave this network namespace by IPv6 at all.
func hasIPv6Link() bool {
	const running = net.FlagUp | net.FlagRunning
	all, err := net.Interfaces()
	if err != nil {
		return true // then the attempt has to show it
	}
	return slices.ContainsFunc(all, func(i net.Interface) bool {
		addrs, err := i.Addrs()
		return i.Flags&(running|net.FlagLoopback) == running && (err != nil || slices.ContainsFunc(addrs, isIPv6))
	})
}

func isIPv6(a net.Addr) bool {
	n, err := netip.ParsePrefix(a.String())
	return err == nil && n.Addr().Is6()
}

// reach sends a text to many targets in many ways, all at once, and reports who answered.
func (p *prober) reach(network string, targets []string, ways []way, text string, limit time.Duration) result {
	answers := make([]result, len(targets)*len(ways))
	var wg sync.WaitGroup
	for i, target := range targets {
		for j, w := range ways {
			wg.Go(func() { answers[i*len(ways)+j] = send(network, target, w, text, limit) })
		}
	}
	wg.Wait()
	if len(answers) == 0 {
		return result{absent: true, detail: "there is no such address"}
	}
	return summary(first(answers...), answers)
}

// summary shortens what many targets said alike.
func summary(r result, all []result) result {
	if r.through || len(all) < 2 {
		return r
	}
	counts := map[string]int{}
	var order []string
	for _, a := range all {
		if counts[a.detail]++; counts[a.detail] == 1 {
			order = append(order, a.detail)
		}
	}
	for i, text := range order {
		if n := counts[text]; n > 1 {
			order[i] = fmt.Sprintf("%s (%d times)", text, n)
		}
	}
	r.detail = strings.Join(order, "; ")
	return r
}

// send makes one connection, or sends one datagram. A datagram is through only when the other side says
// so, which is not seen here.
func send(network, target string, w way, text string, limit time.Duration) result {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := w.dialer(limit).DialContext(ctx, network, target)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) && strings.HasPrefix(network, "tcp") {
			return through("%s answers", target)
		}
		return held("%s", reason(err))
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := conn.Write([]byte(text)); err != nil {
		return held("%s", reason(err))
	}
	if strings.HasPrefix(network, "udp") {
		for range 2 { // any one of them may be lost by whoever passes it on
			time.Sleep(20 * time.Millisecond)
			_, _ = conn.Write([]byte(text))
		}
		return held("sent")
	}
	return through("%s accepts connections", target)
}

// reason is an error without the addresses, which are different every time.
func reason(err error) string {
	var op *net.OpError
	var sys *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case errors.As(err, &sys):
		return sys.Err
	case errors.As(err, &op) && op.Timeout():
		return "no answer"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

func (p *prober) egressTCP() result {
	t := p.Token.For("egress-tcp4")
	to := net.JoinHostPort(t.Outside(), strconv.Itoa(t.port()))
	return p.reach("tcp4", []string{to}, append(deviceWays(), way{}), t.String(), patience)
}

func (p *prober) egressUDP() result {
	t := p.Token.For("egress-udp4")
	to := net.JoinHostPort(t.Outside(), strconv.Itoa(t.port()))
	return p.reach("udp4", []string{to}, append(deviceWays(), way{}), t.String(), patience)
}

func (p *prober) egressIPv6() result {
	t := p.Token.For("egress-ip6")
	// An address on a link without a carrier, such as docker0's when nothing is on it, sends nothing.
	if len(p.hostTargets(true, t.port())) == 0 || p.Role == RoleCanary && !hasIPv6Link() {
		return result{absent: true, detail: "this machine has no link with an IPv6 address"}
	}
	port := strconv.Itoa(t.port())
	tcp := []string{net.JoinHostPort(t.outside6(), port)}
	udp := []string{net.JoinHostPort(t.outside6(), port)}
	for _, name := range interfaces() {
		udp = append(udp, net.JoinHostPort("ff02::1%"+name, port))
	}
	return first(p.reach("tcp6", tcp, append(deviceWays(), way{}), t.String(), patience), p.reach("udp6", udp, []way{{}}, t.String(), patience))
}

// hostTargets are the host's addresses of one family with a port. An address of a link is one on each
// interface.
func (p *prober) hostTargets(v6 bool, port int) []string {
	var out []string
	for _, text := range p.HostAddresses {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Is4() == v6 {
			continue
		}
		if !a.IsLinkLocalUnicast() || !v6 {
			out = append(out, net.JoinHostPort(text, strconv.Itoa(port)))
			continue
		}
		for _, name := range interfaces() {
			out = append(out, net.JoinHostPort(a.WithZone(name).String(), strconv.Itoa(port)))
		}
	}
	return out
}

func (p *prober) hostTCP() result {
	return p.reach("tcp4", p.hostTargets(false, p.TCP), []way{{}}, p.Token.For("host-tcp4").String(), p.patience())
}

func (p *prober) hostUDP() result {
	return p.reach("udp4", p.hostTargets(false, p.UDP), []way{{}}, p.Token.For("host-udp4").String(), patience)
}

func (p *prober) hostDevice() result {
	t := p.Token.For("host-device").String()
	return first(p.reach("tcp4", p.hostTargets(false, p.TCP), deviceWays(), t, patience),
		p.reach("udp4", p.hostTargets(false, p.UDP), deviceWays(), t, patience))
}

func (p *prober) hostIPv6() result {
	t := p.Token.For("host-tcp6").String()
	return first(p.reach("tcp6", p.hostTargets(true, p.TCP), []way{{}}, t, patience), p.reach("udp6", p.hostTargets(true, p.UDP), []way{{}}, t, patience))
}

// gateway tries all addresses of the own networks but the proxy's and the own. Of a large network it tries
// the beginning, where gateways are.
func (p *prober) gateway() result {
	t := p.Token.For("gateway").String()
	var tcp, udp []string
	proxy, _ := netip.ParseAddrPort(p.Proxy)
	for _, own := range ownPrefixes() {
		for a, n := own.Masked().Addr(), 0; own.Contains(a) && n < 8; a, n = a.Next(), n+1 {
			if a != own.Addr() && a != proxy.Addr() {
				tcp = append(tcp, netip.AddrPortFrom(a, uint16(p.TCP)).String())
				udp = append(udp, netip.AddrPortFrom(a, uint16(p.UDP)).String())
			}
		}
	}
	ways := append(deviceWays(), way{})
	return first(p.reach("tcp4", tcp, ways, t, patience), p.reach("udp4", udp, ways, t, patience))
}

// ownPrefixes are the IPv4 addresses of this network namespace.
func ownPrefixes() []netip.Prefix {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, a := range addrs {
		if n, err := netip.ParsePrefix(a.String()); err == nil && n.Addr().Is4() && !n.Addr().IsLoopback() {
			out = append(out, n)
		}
	}
	return out
}

func (p *prober) hostAbstract() result {
	return abstract(AbstractName(p.Token.Session, RoleCanary), p.Token.For("host-abstract"))
}

func abstract(name string, t Token) result {
	conn, err := net.DialTimeout("unix", name, patience)
	if err != nil {
		return held("%s", reason(err))
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(t.String()))
	return through("the socket %s accepts connections", name)
}

// hostSocket tries the engine's socket, where it and others of its kind usually are, and one of the host
// that exists for this alone.
func (p *prober) hostSocket() result {
	paths := []string{p.HostSocket, p.EngineSocket, "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"}
	var all []result
	for _, path := range paths {
		if path == "" {
			continue
		}
		conn, err := net.DialTimeout("unix", path, patience)
		if err != nil {
			all = append(all, held("%s", reason(err)))
			continue
		}
		_, _ = conn.Write([]byte(p.Token.For("host-socket").String()))
		conn.Close()
		all = append(all, through("%s accepts connections", path))
	}
	return summary(first(all...), all)
}
