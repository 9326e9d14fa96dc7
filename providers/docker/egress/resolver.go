package egress

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// errNoAddress: the name exists, and has no IPv4 address; or it does not exist.
var errNoAddress = errors.New("no IPv4 address")

const (
	// tryFor bounds the wait for one server, so that the next is asked while the lookup still has time.
	tryFor = 2 * time.Second
	// maxAliases bounds a chain of aliases.
	maxAliases = 8
	// maxUDP is the largest answer without EDNS; a longer one comes over TCP.
	maxUDP = 512
)

// resolver asks the declared name servers and nothing else. Go's own resolver also reads /etc/hosts,
// the search list and the options of /etc/resolv.conf, all of which the engine writes; and it asks for
// IPv6 addresses, to which the proxy has no way.
type resolver struct {
	servers []netip.AddrPort
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// lookup returns the IPv4 addresses of a canonical name, in the order of the answer.
func (r *resolver) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	query, id, err := newQuery(name)
	if err != nil {
		return nil, err
	}
	err = errors.New("no name server is declared")
	for _, server := range r.servers {
		var answer []byte
		answer, err = r.ask(ctx, server, query, id)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			continue
		}
		addrs, again, perr := parseAnswer(answer, id, name)
		if perr == nil || !again {
			return addrs, perr
		}
		err = perr
	}
	return nil, fmt.Errorf("look up %s: %w", name, err)
}

func newQuery(name string) (query []byte, id uint16, err error) {
	// A fresh random ID and a fresh port are what makes an answer hard to forge.
	var seed [2]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, 0, err
	}
	id = binary.BigEndian.Uint16(seed[:])
	q, err := question(name)
	if err != nil {
		return nil, 0, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{q},
	}
	query, err = m.Pack()
	return query, id, err
}

func question(name string) (dnsmessage.Question, error) {
	n, err := dnsmessage.NewName(name + ".") // absolute: no search list applies
	return dnsmessage.Question{Name: n, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}, err
}

// ask sends the query over UDP, and again over TCP when the answer was cut.
func (r *resolver) ask(ctx context.Context, server netip.AddrPort, query []byte, id uint16) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	answer, err := r.exchange(ctx, "udp", server, query, id)
	if err != nil {
		return nil, err
	}
	if truncated(answer) {
		return r.exchange(ctx, "tcp", server, query, id)
	}
	return answer, nil
}

func (r *resolver) exchange(ctx context.Context, network string, server netip.AddrPort, query []byte, id uint16) ([]byte, error) {
	conn, err := r.dial(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if network == "tcp" {
		return exchangeTCP(conn, query)
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	buf := make([]byte, maxUDP)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		// What does not answer this query is somebody else's, or a guess; the right answer may still come.
		if n >= 2 && binary.BigEndian.Uint16(buf) == id {
			return buf[:n], nil
		}
	}
}

func exchangeTCP(conn net.Conn, query []byte) ([]byte, error) {
	msg := binary.BigEndian.AppendUint16(nil, uint16(len(query)))
	if _, err := conn.Write(append(msg, query...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

func truncated(answer []byte) bool {
	var p dnsmessage.Parser
	h, err := p.Start(answer)
	return err == nil && h.Truncated
}

// parseAnswer takes the addresses of name out of an answer, following its aliases. again says that
// another server may know better.
func parseAnswer(answer []byte, id uint16, name string) (addrs []netip.Addr, again bool, err error) {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return nil, true, fmt.Errorf("malformed answer: %w", err)
	}
	want, err := question(name)
	if err != nil {
		return nil, false, err
	}
	if m.ID != id || !m.Response || len(m.Questions) != 1 || m.Questions[0].Type != want.Type ||
		m.Questions[0].Class != want.Class || !strings.EqualFold(m.Questions[0].Name.String(), want.Name.String()) {
		return nil, true, errors.New("an answer to another question")
	}
	switch m.RCode {
	case dnsmessage.RCodeSuccess:
	case dnsmessage.RCodeNameError:
		return nil, false, fmt.Errorf("%w: the name does not exist", errNoAddress)
	default:
		return nil, true, fmt.Errorf("the server says %s", strings.TrimPrefix(m.RCode.String(), "RCode"))
	}
	aliases := map[string]string{}
	found := map[string][]netip.Addr{}
	for _, rr := range m.Answers {
		owner := strings.ToLower(rr.Header.Name.String())
		switch body := rr.Body.(type) {
		case *dnsmessage.CNAMEResource:
			aliases[owner] = strings.ToLower(body.CNAME.String())
		case *dnsmessage.AResource:
			if a := netip.AddrFrom4(body.A); !slices.Contains(found[owner], a) {
				found[owner] = append(found[owner], a)
			}
		}
	}
	at := name + "."
	for range maxAliases {
		if len(found[at]) > 0 {
			return found[at], false, nil
		}
		next, ok := aliases[at]
		if !ok {
			break
		}
		at = next
	}
	return nil, false, errNoAddress
}
