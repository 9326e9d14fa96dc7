package launch_test

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// everywhere is the host's end: listeners at all of its addresses that remember who came.
type everywhere struct {
	addresses []string
	tcp, udp  int
	word      string
	mu        sync.Mutex
	came      []string
	queries   []string
}

func (e *everywhere) note(list *[]string, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*list = append(*list, text)
}

// listenEverywhere listens for connections, datagrams and questions of the DNS.
func listenEverywhere(t *testing.T, word string) *everywhere {
	t.Helper()
	e := &everywhere{word: word, addresses: []string{"10.232.240.1"}} // the uplink's gateway, soon
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() && len(e.addresses) < 6 {
			e.addresses = append(e.addresses, ip.String())
		}
	}
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	e.tcp, e.udp = ln.Addr().(*net.TCPAddr).Port, pc.LocalAddr().(*net.UDPAddr).Port
	t.Cleanup(func() { _, _ = ln.Close(), pc.Close() })
	e.accept(ln, &e.came)
	e.receive(pc, &e.came)
	// Where another resolver has the port already, questions would reach that one, and are refused all the same.
	if pc, err := net.ListenPacket("udp", ":53"); err == nil {
		t.Cleanup(func() { _ = pc.Close() })
		e.receive(pc, &e.queries)
	}
	if ln, err := net.Listen("tcp", ":53"); err == nil {
		t.Cleanup(func() { _ = ln.Close() })
		e.accept(ln, &e.queries)
	}
	return e
}

func (e *everywhere) accept(ln net.Listener, list *[]string) {
	go func() {
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				e.note(list, "a connection from "+c.RemoteAddr().String())
				_ = c.Close()
			}
		}
	}()
}

func (e *everywhere) receive(pc net.PacketConn, list *[]string) {
	go func() {
		b := make([]byte, 2048)
		for {
			n, from, err := pc.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				e.note(list, fmt.Sprintf("a datagram from %s: %q", from, b[:n]))
			}
		}
	}()
}

// ofAgents picks what came from an agent's network: others may use the host's ports too.
func (e *everywhere) ofAgents(list []string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		return !strings.Contains(s, e.word) && !regexp.MustCompile(` from 10\.232\.2[45]\d\.`).MatchString(s)
	})
}

func (e *everywhere) requireSilence(t *testing.T, got map[string]string) {
	t.Helper()
	// The listeners work: what the host sends itself arrives.
	for _, proto := range []string{"tcp", "udp"} {
		port := map[string]int{"tcp": e.tcp, "udp": e.udp}[proto]
		c, err := net.Dial(proto, fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "canary")
		_ = c.Close()
	}
	within(t, soon, "the host hears itself", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.came) >= 2
	})
	for _, s := range e.ofAgents(e.came) {
		t.Errorf("the host heard %s", s)
	}
	tried := 0
	for check, result := range got {
		if strings.HasPrefix(check, "tcp ") {
			tried++
			if result == "done" || strings.Contains(result, "refused") {
				t.Errorf("%s: %s: somebody answers", check, result)
			}
		}
	}
	if tried < 2*len(e.addresses) {
		t.Errorf("%d attempts for %v", tried, e.addresses)
	}
}

func (e *everywhere) requireNoQuery(t *testing.T, got map[string]string) {
	t.Helper()
	for _, s := range e.ofAgents(e.queries) {
		t.Errorf("the host was asked: %s", s)
	}
	tried := 0
	for check, result := range got {
		if check == "dns" || strings.HasPrefix(check, "dns ") {
			tried++
			if strings.HasPrefix(result, "it is ") {
				t.Errorf("%s: %s", check, result)
			}
		}
	}
	if tried < 5 {
		t.Errorf("only %d questions were asked", tried)
	}
}
