package probe

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// capture looks at every packet on every interface of this network namespace. It sees what a listener
// cannot: what is sent to where nobody listens, and what is dropped on its way.
func (p *prober) capture() (stop func(), err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(swap(unix.ETH_P_ALL)))
	if err != nil {
		return nil, fmt.Errorf("packets cannot be seen: %w", err)
	}
	if err := attachFilter(fd); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20) // as much of it as the kernel allows
	over := make(chan struct{})
	p.links.follow(over, func() { p.tellLost(fd) })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := unix.Recvfrom(fd, buf, 0)
			if err == unix.EINTR || err == unix.ENOBUFS {
				continue
			}
			if err != nil {
				return
			}
			if link, ok := from.(*unix.SockaddrLinklayer); ok {
				p.packetOn(link.Ifindex, buf[:n])
			}
		}
	}()
	return func() { close(over); _ = unix.Close(fd) }, nil
}

// snap is how much of a packet is looked at. A token is a part of the first name, or the whole payload.
const snap = 512

// packetFilter leaves out what cannot be ours, so that a busy machine does not make it miss what is: TCP
// has a listener at the other end, and is looked at here only when it goes to where nobody listens. The
// offsets are those of IP headers, which the kernel hands over without the link's.
func packetFilter() []bpf.Instruction {
	const version, protocol, destination = 0, 9, 16
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: version, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x60, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x40, SkipTrue: 7},
		bpf.LoadAbsolute{Off: protocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: 4},
		bpf.LoadAbsolute{Off: destination, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xa9fea9fe, SkipTrue: 2}, // 169.254.169.254
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xffffff00},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0xc6336400, SkipTrue: 1}, // 198.51.100.0/24
		bpf.RetConstant{Val: snap},
		bpf.RetConstant{Val: 0},
	}
}

func attachFilter(fd int) error {
	program, err := bpf.Assemble(packetFilter())
	if err != nil {
		return fmt.Errorf("the filter for packets: %w", err)
	}
	filter := make([]unix.SockFilter, len(program))
	for i, r := range program {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		return fmt.Errorf("the filter for packets: %w", err)
	}
	return nil
}

// tellLost says how many packets were not looked at because there was no room for them.
func (p *prober) tellLost(fd int) {
	if s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil && s.Drops > 0 {
		p.out.say(Message{Lost: int(s.Drops)})
	}
}

func swap(n uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], n)
	return binary.NativeEndian.Uint16(b[:])
}

// packetOn reports the tokens of one packet, and where it went when its address is a token by itself.
func (p *prober) packetOn(index int, packet []byte) {
	tokens := FindTokens(p.Token.Session, string(packet))
	from, to, t, ok := p.addressToken(packet)
	if len(tokens) == 0 && !ok {
		return
	}
	at := p.links.at(index)
	how := "packet on " + at.name
	if to.IsValid() {
		how = fmt.Sprintf("packet to %s on %s", to, at.name)
	}
	for _, t := range tokens {
		p.sighted(Sighting{Token: t, How: how, Interface: at.name, Bridge: at.bridge})
	}
	if ok {
		p.sighted(Sighting{Token: t, How: how, Interface: at.name, Bridge: at.bridge, From: from.String()})
	}
}

// addressToken reads what a TCP packet says by its address and port: the first one carries nothing. There is
// no room for the session in that, so that whose it is has to be told by where it comes from.
func (p *prober) addressToken(packet []byte) (from, to netip.Addr, t Token, ok bool) {
	var transport []byte
	var protocol byte
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		from, _ = netip.AddrFromSlice(packet[12:16])
		to, _ = netip.AddrFromSlice(packet[16:20])
		protocol = packet[9]
		if header := int(packet[0]&0xf) * 4; len(packet) >= header+4 {
			transport = packet[header:]
		}
	case len(packet) >= 44 && packet[0]>>4 == 6:
		from, _ = netip.AddrFromSlice(packet[8:24])
		to, _ = netip.AddrFromSlice(packet[24:40])
		protocol, transport = packet[6], packet[40:]
	}
	if transport == nil || protocol != unix.IPPROTO_TCP {
		return from, to, t, false
	}
	t = Token{Session: p.Token.Session, Run: int(binary.BigEndian.Uint16(transport[2:4])) - firstPort}
	if t.Run < 0 || t.Run > 1000 {
		return from, to, t, false
	}
	bytes := to.AsSlice()
	switch {
	case netip.MustParsePrefix("198.51.100.0/24").Contains(to), netip.MustParsePrefix("2001:db8::/112").Contains(to):
		t.Attempt = int(bytes[len(bytes)-1])
	case to.String() == metadata:
		t.Attempt = Number("proxy-metadata")
	default:
		return from, to, t, false
	}
	return from, to, t, true
}

// links knows the interfaces by their index, those that are gone included: a packet may be looked at
// after its interface went with its container.
type links struct {
	mu    sync.Mutex
	known map[int]link
}

type link struct {
	name   string
	bridge string // that it is, or belongs to
}

// linksEvery is how often it is looked for new ones. An interface lives longer before anything is sent.
const linksEvery = 100 * time.Millisecond

func (l *links) follow(stop <-chan struct{}, also func()) {
	l.look()
	go func() {
		for tick := time.NewTicker(linksEvery); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				l.look()
				also()
			}
		}
	}()
}

func (l *links) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[int]link{}
	}
	const class = "/sys/class/net"
	entries, err := os.ReadDir(class)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(class, e.Name())
		text, err := os.ReadFile(filepath.Join(dir, "ifindex"))
		index, bad := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || bad != nil {
			continue
		}
		found := link{name: e.Name(), bridge: e.Name()}
		if master, err := os.Readlink(filepath.Join(dir, "master")); err == nil {
			found.bridge = filepath.Base(master)
		} else if l.known[index].bridge != "" {
			continue // it leaves its bridge before it goes
		}
		l.known[index] = found
	}
}

func (l *links) at(index int) link {
	l.mu.Lock()
	known, ok := l.known[index]
	l.mu.Unlock()
	if ok {
		return known
	}
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known[index]; ok {
		return known
	}
	return link{name: fmt.Sprintf("interface %d", index)}
}
