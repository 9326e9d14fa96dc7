package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// The benchmarks compare the proxy with no proxy and with a relay that does nothing but copy:
//
//	go test -run=- -bench=. ./providers/docker/egress
//
// Only ratios mean anything: client, proxy and server share the machine.

// way is how a benchmark's client gets to its server. Tunnels are plain: what is measured is the
// proxy, not TLS.
type way struct {
	name string
	dial func() (net.Conn, error)
}

func ways(b *testing.B, addr string) []way {
	b.Helper()
	relay, stopRelay := startRelay(b, addr)
	ours, stopOurs := startBenchProxy(b, addr)
	b.Cleanup(stopRelay)
	b.Cleanup(stopOurs)
	through := func(proxy string) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			c, err := net.Dial("tcp", proxy)
			if err != nil {
				return nil, err
			}
			if _, err := io.WriteString(c, connectTo(vendorName+":443")); err != nil {
				return nil, err
			}
			_, err = io.ReadFull(c, make([]byte, len(established)))
			return c, err
		}
	}
	return []way{
		{"direct", func() (net.Conn, error) { return net.Dial("tcp", addr) }},
		{"relay", through(relay)},
		{"ours", through(ours)},
	}
}

func startBenchProxy(b *testing.B, addr string) (string, func()) {
	cfg := plainConfig()
	cfg.Limits.Tunnels, cfg.Limits.TunnelsPerSecond, cfg.Limits.UploadBytes = 1<<20, 1<<20, 0
	cfg.Limits.LogBytes = 1 << 40
	to := netip.MustParseAddrPort(addr)
	var d net.Dialer
	s, err := newServer(cfg, world{
		now: time.Now,
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(vendorAddr)}, nil
		},
		dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return d.DialContext(ctx, "tcp4", to.String())
		},
	}, newLog(io.Discard, time.Now, "invocation.a", cfg.Limits.LogBytes))
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = s.serve(ctx, l) }()
	return l.Addr().String(), cancel
}

// startRelay is the least that a CONNECT proxy can do.
func startRelay(b *testing.B, addr string) (string, func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				if _, err := c.Read(buf); err != nil {
					return
				}
				up, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				defer up.Close()
				_, _ = io.WriteString(c, established)
				var wg sync.WaitGroup
				copyTo := func(dst, src net.Conn) {
					_, _ = io.Copy(struct{ io.Writer }{dst}, struct{ io.Reader }{src})
					_ = dst.(*net.TCPConn).CloseWrite()
				}
				wg.Go(func() { copyTo(up, c) })
				copyTo(c, up)
				wg.Wait()
			}()
		}
	}()
	return l.Addr().String(), func() { l.Close() }
}

// listenBench serves every connection with serve.
func listenBench(b *testing.B, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// BenchmarkNewTunnels opens one, has one byte echoed, and closes it.
func BenchmarkNewTunnels(b *testing.B) {
	addr := listenBench(b, func(c net.Conn) { _, _ = io.Copy(c, c) })
	for _, w := range ways(b, addr) {
		for _, clients := range []int{1, 32, 256} {
			b.Run(fmt.Sprintf("%s/%d", w.name, clients), func(b *testing.B) {
				var wg sync.WaitGroup
				work := make(chan struct{})
				for range clients {
					wg.Go(func() {
						for range work {
							c, err := w.dial()
							if err != nil {
								b.Error(err)
								continue
							}
							buf := []byte{1}
							if _, err := c.Write(buf); err != nil {
								b.Error(err)
							}
							if _, err := io.ReadFull(c, buf); err != nil {
								b.Error(err)
							}
							c.Close()
						}
					})
				}
				b.ResetTimer()
				for range b.N {
					work <- struct{}{}
				}
				close(work)
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tunnels/s")
			})
		}
	}
}

// BenchmarkBulk reads through tunnels as fast as it can.
func BenchmarkBulk(b *testing.B) {
	const chunk = 1 << 20
	addr := listenBench(b, func(c net.Conn) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	})
	for _, w := range ways(b, addr) {
		for _, tunnels := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/%d", w.name, tunnels), func(b *testing.B) {
				conns := make([]net.Conn, tunnels)
				for i := range conns {
					c, err := w.dial()
					if err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					conns[i] = c
				}
				b.SetBytes(chunk)
				b.ResetTimer()
				var wg sync.WaitGroup
				for i, c := range conns {
					n := int64(b.N / tunnels)
					if i < b.N%tunnels {
						n++
					}
					wg.Go(func() {
						buf := make([]byte, 256<<10)
						for left := n * chunk; left > 0; {
							k, err := c.Read(buf[:min(int64(len(buf)), left)])
							if err != nil {
								b.Error(err)
								return
							}
							left -= int64(k)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
