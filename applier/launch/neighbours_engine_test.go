package launch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRealNeighbours tries to get from one invocation's proxy to another's over the uplink that both are on,
// with all rights in the first one's namespace, which the proxy itself does not have. What comes through is
// looked for where it would arrive.
func TestRealNeighbours(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, map[string][]string{"a": {"say=up", "sleep=1h"}, "b": {"say=up", "sleep=1h"}}, nil)
	w.apply()
	w.running(t, "invocation.a")
	w.running(t, "invocation.b")
	from, proxy, agent := w.neighbour("invocation.a.proxy"), w.neighbour("invocation.b.proxy"), w.neighbour("invocation.b.agent")
	// The way to the other's network is not there by itself.
	route := exec.Command("nsenter", "--net="+from.namespace(), "ip", "route", "add", agent.inner.String()+"/32", "via", proxy.uplink.String())
	again := exec.Command("nsenter", "--net="+from.namespace(), "ip", "route", "add", proxy.inner.String()+"/32", "via", proxy.uplink.String())
	for _, cmd := range []*exec.Cmd{route, again} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	atProxy, atAgent := sniff(t, proxy, from.uplink), sniff(t, agent, from.uplink)
	uplink, inner, behind := netip.AddrPortFrom(proxy.uplink, 3128), netip.AddrPortFrom(proxy.inner, 3128), netip.AddrPortFrom(agent.inner, 3128)

	for what, to := range map[string]netip.AddrPort{"on the uplink": uplink, "on its own network": inner, "to the agent behind it": behind} {
		if answer, err := from.ask(to); err == nil {
			t.Errorf("the neighbour answers %s: %q", what, answer)
		}
	}
	if p, a := atProxy.Load(), atAgent.Load(); p != 0 || a != 0 {
		t.Errorf("%d packets have come to the neighbour's proxy and %d to its agent", p, a)
	}

	t.Run("without the engine's rule", func(t *testing.T) {
		w.allow(t)
		if answer, err := from.ask(uplink); err == nil {
			t.Errorf("the proxy listens on the uplink: %q", answer)
		}
		// Linux takes packets for any of its addresses on any of its interfaces.
		if answer, err := from.ask(inner); err == nil && !strings.Contains(answer, "not_agent") {
			t.Errorf("the proxy serves a neighbour: %q", answer)
		}
		if answer, err := from.ask(behind); err == nil {
			t.Errorf("the agent can be reached through its proxy: %q", answer)
		}
		// Who counts them is told of them later than who waits for an answer.
		within(t, soon, "packets that come even so are found", func() bool { return atProxy.Load() > 0 })
		if n := atAgent.Load(); n != 0 {
			t.Errorf("%d packets were forwarded to the agent", n)
		}
	})
}

// neighbour is a running container and its addresses.
type neighbour struct {
	t             *testing.T
	pid           int
	uplink, inner netip.Addr
}

func (w *world) neighbour(address string) neighbour {
	w.t.Helper()
	var c struct {
		State           struct{ Pid int }
		NetworkSettings struct {
			Networks map[string]struct{ IPAddress string }
		}
	}
	if err := json.Unmarshal([]byte(w.tell("inspect", "-f", "{{json .}}", w.container(address))), &c); err != nil {
		w.t.Fatal(err)
	}
	n := neighbour{t: w.t, pid: c.State.Pid}
	for name, network := range c.NetworkSettings.Networks {
		a, err := netip.ParseAddr(network.IPAddress)
		if err != nil {
			w.t.Fatalf("%s on %s: %v", address, name, err)
		}
		if strings.Contains(name, "-uplink-") {
			n.uplink = a
		} else {
			n.inner = a
		}
	}
	return n
}

func (n neighbour) namespace() string { return fmt.Sprintf("/proc/%d/ns/net", n.pid) }

// within runs f in the container's network.
func (n neighbour) within(f func() error) error {
	done := make(chan error)
	onOwnThread(func() {
		ns, err := os.Open(n.namespace())
		if err != nil {
			done <- err
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err == nil {
			err = f()
		}
		done <- err
	})
	return <-done
}

// onOwnThread runs f on a thread that ends with it, so that f may enter namespaces. Never on the first one of
// the process: that one goes on living, and /proc shows its namespaces for the process's. Through a relay of
// this process, sandplan takes them for the engine's.
func onOwnThread(f func()) {
	own := func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		f()
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			own()
			return
		}
		// As long as this goroutine holds the first thread, the other one is on another.
		defer runtime.UnlockOSThread()
		over := make(chan struct{})
		go func() {
			defer close(over)
			own()
		}()
		<-over
	}()
}

// ask connects, asks for a tunnel, and returns what comes.
func (n neighbour) ask(to netip.AddrPort) (answer string, err error) {
	err = n.within(func() error {
		conn, err := net.DialTimeout("tcp4", to.String(), 2*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("CONNECT llm.test:8443 HTTP/1.1\r\nHost: llm.test:8443\r\n\r\n")); err != nil {
			return err
		}
		buf := make([]byte, 4096)
		k, err := conn.Read(buf)
		answer = string(buf[:k])
		return err
	})
	return answer, err
}

// sniff counts the packets of one sender that arrive in a container.
func sniff(t *testing.T, at neighbour, sender netip.Addr) *atomic.Int64 {
	t.Helper()
	const ip = unix.ETH_P_IP<<8 | unix.ETH_P_IP>>8 // in the network's order
	var fd int
	err := at.within(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, ip)
		return err
	})
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	over, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(over)
		<-ended
		_ = unix.Close(fd)
	})
	go func() {
		defer close(ended)
		buf := make([]byte, 65536)
		for {
			select {
			case <-over:
				return
			default:
			}
			k, from, err := unix.Recvfrom(fd, buf, 0)
			if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				return
			}
			link, ok := from.(*unix.SockaddrLinklayer)
			if err == nil && k >= 20 && ok && link.Pkttype != unix.PACKET_OUTGOING && netip.AddrFrom4([4]byte(buf[12:16])) == sender {
				n.Add(1)
			}
		}
	}()
	return &n
}

// allow takes away, for this project's uplink, what the engine has against containers that talk to each
// other.
func (w *world) allow(t *testing.T) {
	t.Helper()
	id := w.tell("network", "ls", "-q", "--filter", w.label("project", w.project), "--filter", w.label("address", "sandplan.uplink"))
	bridge := w.tell("network", "inspect", "-f", `{{index .Options "com.docker.network.bridge.name"}}`, id)
	rule := func(how string) error {
		out, err := exec.Command("iptables", "-w", how, "DOCKER-USER", "-i", bridge, "-o", bridge, "-j", "ACCEPT").CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables %s for %q: %w\n%s", how, bridge, err, out)
		}
		return nil
	}
	if err := rule("-I"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rule("-D"); err != nil {
			t.Error(err)
		}
	})
}
