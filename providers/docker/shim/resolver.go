//go:build linux

package shim

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// resolverAddress is where the shim answers DNS. Containers are declared with it as their server: an
// engine's own resolver on a network of the user's hands on to it what it does not know itself.
const resolverAddress = "127.0.0.1:53"

const (
	dnsHeader  = 12
	dnsRefused = 5
	maxQuery   = 4 << 10
	maxDNSTCP  = 16 // connections at once; more wait
)

// resolver answers every question with REFUSED. Nothing may be looked up, and a lookup that fails at
// once is what keeps a program from waiting for a time-out that takes seconds.
type resolver struct {
	udp net.PacketConn
	tcp net.Listener

	mu   sync.Mutex
	seen map[string]bool // names awaited by watch, and whether they were asked for
}

func startResolver() (*resolver, error) {
	udp, err := net.ListenPacket("udp4", resolverAddress)
	if err != nil {
		return nil, err
	}
	tcp, err := net.Listen("tcp4", resolverAddress)
	if err != nil {
		udp.Close()
		return nil, err
	}
	r := &resolver{udp: udp, tcp: tcp, seen: map[string]bool{}}
	go r.serveUDP()
	go r.serveTCP()
	return r, nil
}

func (r *resolver) close() {
	if r == nil {
		return
	}
	r.udp.Close()
	r.tcp.Close()
}

func (r *resolver) serveUDP() {
	buf := make([]byte, maxQuery)
	for {
		n, from, err := r.udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // an error of one packet, perhaps of all: do not burn a core
			continue
		}
		if answer := r.answer(buf[:n]); answer != nil {
			_, _ = r.udp.WriteTo(answer, from)
		}
	}
}

func (r *resolver) serveTCP() {
	slots := make(chan struct{}, maxDNSTCP)
	for {
		conn, err := r.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { conn.Close(); <-slots }()
			r.serveConn(conn)
		}()
	}
}

// serveConn answers the questions of one connection, each with its length before it.
func (r *resolver) serveConn(conn net.Conn) {
	var size [2]byte
	for {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer := r.answer(query)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer is the refusal of a query, nil for what is none.
func (r *resolver) answer(query []byte) []byte {
	const response, recursionDesired, opcode = 0x80, 0x01, 0x78
	if len(query) < dnsHeader || query[2]&response != 0 {
		return nil
	}
	name, end := questionName(query)
	r.mu.Lock()
	if _, awaited := r.seen[name]; awaited {
		r.seen[name] = true
	}
	r.mu.Unlock()
	out := make([]byte, dnsHeader, end)
	copy(out, query[:2]) // the ID
	out[2] = response | query[2]&(opcode|recursionDesired)
	out[3] = dnsRefused
	if end > dnsHeader {
		out[5] = 1 // the question is repeated, without whatever followed it
		out = append(out, query[dnsHeader:end]...)
	}
	return out
}

// questionName reads the first question of a query: its name in lower case, and where it ends. When
// it cannot be read the end is that of the header.
func questionName(query []byte) (string, int) {
	var labels []string
	for i := dnsHeader; i < len(query); {
		n := int(query[i])
		i++
		if n == 0 {
			if i+4 > len(query) {
				break
			}
			return strings.ToLower(strings.Join(labels, ".")), i + 4
		}
		if n > 63 || i+n > len(query) { // a pointer has no place in a question
			break
		}
		labels = append(labels, string(query[i:i+n]))
		i += n
	}
	return "", dnsHeader
}

// watch asks to be told, by asked, whether a name was asked for.
func (r *resolver) watch(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[name] = false
}

// asked reports whether a watched name has been asked for, and stops watching it.
func (r *resolver) asked(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer delete(r.seen, name)
	return r.seen[name]
}
