package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// patient is how long a client waits for anything: whoever takes longer has failed.
const patient = 20 * time.Second

// count says how many there are.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// rates are new tunnels per second: opened, their hello answered, closed.
func rates(w *world, o options, t *table) error {
	for _, clients := range []int{1, 32, 256} {
		of := []kind{
			{"new tunnels, " + count(clients, "client"), "/s", more},
			{"processor per tunnel, " + count(clients, "client"), "µs", less},
		}
		err := w.inTurn(o, t, of, func(c contender) ([]float64, error) {
			var n atomic.Int64
			var failed atomic.Pointer[error]
			var wg sync.WaitGroup
			before, start := cpu(c.pid), time.Now()
			for range clients {
				wg.Go(func() {
					for time.Since(start) < o.slice {
						conn, err := w.open(c)
						if err != nil {
							failed.Store(&err)
							return
						}
						conn.Close()
						n.Add(1)
					}
				})
			}
			wg.Wait()
			if err := failed.Load(); err != nil {
				return nil, *err
			}
			rate := float64(n.Load()) / time.Since(start).Seconds()
			if c.pid == 0 {
				return []float64{rate}, nil
			}
			return []float64{rate, (cpu(c.pid) - before) / float64(n.Load()) * 1e6}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// latencies are round trips of 64 bytes in a standing tunnel. One measurement gives both figures.
func latencies(w *world, o options, t *table) error {
	const trips = 1500
	o.rounds *= 3 // a hundredth of the trips is few
	return w.inTurn(o, t, []kind{{"round trip, p50", "µs", less}, {"round trip, p99", "µs", less}}, func(c contender) ([]float64, error) {
		conn, err := w.ask(c, askEcho)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
			return nil, err
		}
		buf, took := make([]byte, 64), make([]float64, trips)
		for i := range took {
			start := time.Now()
			if _, err := conn.Write(buf); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(conn, buf); err != nil {
				return nil, err
			}
			took[i] = float64(time.Since(start).Nanoseconds()) / 1000
		}
		slices.Sort(took)
		return []float64{took[trips/2], took[trips*99/100]}, nil
	})
}

// throughputs are bytes from the server through standing tunnels.
func throughputs(w *world, o options, t *table) error {
	for _, tunnels := range []int{1, 32} {
		of := []kind{{"throughput, " + count(tunnels, "tunnel"), "GB/s", more}}
		err := w.inTurn(o, t, of, func(c contender) ([]float64, error) {
			conns := make([]net.Conn, tunnels)
			for i := range conns {
				conn, err := w.ask(c, askBulk)
				if err != nil {
					return nil, err
				}
				defer conn.Close()
				conns[i] = conn
			}
			n, err := drink(conns, o.slice)
			return []float64{float64(n) / o.slice.Seconds() / 1e9}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drink reads from connections that never end by themselves, and says how many bytes came within a while. One
// that ends has failed: without it a contender would only look slow.
func drink(conns []net.Conn, slice time.Duration) (int64, error) {
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	// A moment for buffers and windows to grow, and for splicing to set in.
	start := time.Now().Add(slice / 2)
	for _, conn := range conns {
		if err := conn.SetReadDeadline(start.Add(slice)); err != nil {
			return 0, err
		}
		wg.Go(func() {
			buf := make([]byte, 256<<10)
			for {
				k, err := conn.Read(buf)
				if time.Now().After(start) {
					n.Add(int64(k))
				}
				if err == nil {
					continue
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					failed.Store(&err)
				}
				return
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	if n.Load() == 0 {
		return 0, errors.New("nothing came")
	}
	return n.Load(), nil
}

// idles are memory and descriptors of standing tunnels in which nothing happens.
func idles(w *world, _ options, t *table) error {
	for _, c := range w.contenders[1:] {
		idle(w, t, c)
		time.Sleep(500 * time.Millisecond)
	}
	return nil
}

func idle(w *world, t *table, c contender) {
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	mem0, fds0, err := held(c.pid)
	for _, n := range []int{1000, 5000} {
		memory := kind{fmt.Sprintf("%d idle tunnels, memory", n), "MB", less}
		descriptors := kind{fmt.Sprintf("%d idle tunnels, descriptors", n), "", less}
		for len(conns) < n && err == nil {
			var conn net.Conn
			if conn, err = w.ask(c, askEcho); err == nil {
				conns = append(conns, conn)
			}
		}
		var mem, fds float64
		if err == nil {
			time.Sleep(2 * time.Second) // what is only on its way is not counted
			mem, fds, err = held(c.pid)
		}
		if err != nil {
			why := fmt.Sprintf("only %d, %s", len(conns), cause(err))
			t.fail(memory, c.name, why)
			t.fail(descriptors, c.name, why)
			continue
		}
		t.add(memory, c.name, 1, (mem-mem0)/1e6)
		t.add(descriptors, c.name, 1, fds-fds0)
	}
}

// held is what a process holds: bytes of memory that are its own, and descriptors.
func held(pid int) (memory, files float64, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	b, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(v)[0], 64)
			if err != nil {
				return 0, 0, err
			}
			memory = kb * 1024
		}
	}
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	return memory, float64(len(fds)), err
}

// starts are sandplan's proxy from the start of its process to its ready line.
func starts(w *world, o options, t *table) error {
	row := kind{"start to ready", "ms", less}
	for round := range 2*o.rounds + 1 {
		cfg, err := configOf(w.contenders[0].dial)
		if err != nil {
			return err
		}
		start := time.Now()
		cmd, err := w.startOurs(o.sandplan, cfg, 0)
		if err != nil {
			t.fail(row, ours, cause(err))
			continue
		}
		t.add(row, ours, round, float64(time.Since(start).Microseconds())/1000)
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
	}
	return nil
}

// starved leaves sandplan's proxy without descriptors for a while, and wants it to wait instead of
// trying, and to serve again afterwards.
func starved(w *world, o options, t *table) error {
	row := kind{"share of a core, no descriptors", "", less}
	share, err := starve(w, o)
	if err != nil {
		t.fail(row, ours, cause(err))
		return nil
	}
	t.add(row, ours, 1, share)
	return nil
}

func starve(w *world, o options) (share float64, err error) {
	target := w.contenders[1].target
	cfg, err := configOf(serverAddress(9, mustPort(target)))
	if err != nil {
		return 0, err
	}
	cmd, err := w.startOurs(o.sandplan, cfg, 64)
	if err != nil {
		return 0, err
	}
	c := contender{name: ours, dial: cfg.Listen, target: target}
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range 120 {
		conn, err := net.Dial("tcp", c.dial)
		if err != nil {
			return 0, err
		}
		conns = append(conns, conn)
		if _, err := io.WriteString(conn, "CONNECT "+c.target+" HTTP/1.1\r\nHost: "+c.target+"\r\n"); err != nil {
			return 0, err
		}
	}
	// Requests without an end are given up after a while; new ones take their places.
	before, start := cpu(cmd.Process.Pid), time.Now()
	for time.Since(start) < o.emfile {
		time.Sleep(min(time.Second, o.emfile))
		for range 8 {
			if conn, err := net.Dial("tcp", c.dial); err == nil {
				conns = append(conns, conn)
			}
		}
	}
	share = (cpu(cmd.Process.Pid) - before) / time.Since(start).Seconds()
	for _, conn := range conns {
		conn.Close()
	}
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		conn, err := w.open(c)
		if err == nil {
			conn.Close()
			return share, nil
		}
		if time.Now().After(deadline) {
			return share, fmt.Errorf("it does not serve any more after it was without descriptors: %s", cause(err))
		}
	}
}

func mustPort(target string) int {
	_, p, _ := strings.Cut(target, ":")
	n, _ := strconv.Atoi(p)
	return n
}
