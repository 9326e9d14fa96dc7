package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// worker is what a step may use.
type worker struct {
	stdin io.Reader
	out   io.Writer
	err   io.Writer
	demo  demo
	held  [][]byte // memory that stays in use
	// tunnels stay open.
	tunnels []net.Conn
}

// steps are single actions, by name; the value is what follows the equals sign.
var steps = map[string]func(w *worker, value string) error{
	"demo":  func(w *worker, _ string) error { return w.demo.run() },
	"say":   func(w *worker, v string) error { _, err := fmt.Fprintln(w.out, v); return err },
	"warn":  func(w *worker, v string) error { _, err := fmt.Fprintln(w.err, v); return err },
	"print": func(w *worker, v string) error { return flood(w.out, v) },
	"eprint": func(w *worker, v string) error {
		return flood(w.err, v)
	},
	"sleep": func(_ *worker, v string) error {
		d, err := time.ParseDuration(v)
		time.Sleep(d)
		return err
	},
	"exit": func(_ *worker, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return err
		}
		return stop(n)
	},
	"call":  (*worker).call,
	"hold":  (*worker).hold,
	"ask":   (*worker).ask,
	"pull":  (*worker).pull,
	"push":  (*worker).push,
	"cat":   (*worker).cat,
	"stdin": func(w *worker, _ string) error { _, err := io.Copy(w.out, w.stdin); return err },
	"write": (*worker).write,
	"mkdir": func(_ *worker, v string) error { return os.MkdirAll(v, 0o755) },
	"fifo":  func(_ *worker, v string) error { return syscall.Mkfifo(v, 0o600) },
	"env":   (*worker).env,
	"eat":   (*worker).eat,
	"spawn": (*worker).spawn,
	"signal": func(_ *worker, v string) error { // signal=PID:NUMBER
		pid, sig, err := pair(v)
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.Signal(sig))
	},
	"ignore": func(_ *worker, _ string) error { // every signal that can be ignored
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
		return nil
	},
	"await": func(_ *worker, v string) error { // a file
		for {
			if _, err := os.Stat(v); err == nil {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
	},
	"abort": func(_ *worker, v string) error { // by SIGKILL, or by the signal of this number
		sig := syscall.SIGKILL
		if n, err := strconv.Atoi(v); err == nil {
			sig = syscall.Signal(n)
		}
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			return err
		}
		time.Sleep(time.Hour) // it comes at once, or right after
		return nil
	},
}

func stepNames() []string {
	var names []string
	for n := range steps {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func pair(v string) (a, b int, err error) {
	left, right, ok := strings.Cut(v, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not A:B", v)
	}
	if a, err = strconv.Atoi(left); err != nil {
		return 0, 0, err
	}
	b, err = strconv.Atoi(right)
	return a, b, err
}

// size reads a number of bytes with an optional unit: 100, 64KiB, 2GiB.
func size(v string) (int64, error) {
	unit := int64(1)
	for suffix, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(v, suffix); ok {
			v, unit = rest, n
			break
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n * unit, err
}

// flood writes lines of 64 bytes.
func flood(to io.Writer, v string) error {
	left, err := size(v)
	if err != nil {
		return err
	}
	block := bytes.Repeat([]byte(strings.Repeat("x", 63)+"\n"), 1<<10)
	for left > 0 {
		n, err := to.Write(block[:min(left, int64(len(block)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// call asks HOST:PORT for a word through the proxy, in a tunnel of its own each time and without end, and
// prints a line for each answer. What fails is tried again.
func (w *worker) call(target string) error {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	for answers := 0; ; time.Sleep(10 * time.Millisecond) {
		conn, resp, err := tunnel(os.Getenv("HTTPS_PROXY"), target)
		if err != nil {
			continue
		}
		if resp.StatusCode == http.StatusOK {
			// Whose certificate it is matters to nobody here: that there is an answer does.
			secure := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true})
			if n, _ := secure.Read(make([]byte, 1)); n == 1 {
				answers++
				fmt.Fprintf(w.out, "answer %d\n", answers)
			}
		}
		conn.Close()
	}
}

// hold opens a tunnel to HOST:PORT and keeps it. While the proxy refuses, it tries again.
func (w *worker) hold(target string) error {
	conn, err := open(target)
	w.tunnels = append(w.tunnels, conn)
	return err
}

// ask asks for tunnels, CODE:HOST:PORT, until the proxy answers with that code, and prints what it answers. Many ask at
// once: however slow the machine is, they are more than a few per second. What opens is closed.
func (w *worker) ask(v string) error {
	const many = 16
	code, target, _ := strings.Cut(v, ":")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answers := make(chan []byte, many)
	for range many {
		go func() {
			for ctx.Err() == nil {
				if body, ok := answer(target, code); ok {
					answers <- body
					return
				}
			}
		}()
	}
	_, err := fmt.Fprintf(w.out, "%s %s\n", code, <-answers)
	return err
}

// answer is the body of the proxy's answer to one request, if that has the code.
func answer(target, code string) (body []byte, ok bool) {
	conn, resp, err := tunnel(os.Getenv("HTTPS_PROXY"), target)
	if err != nil {
		return nil, false
	}
	defer conn.Close()
	if strconv.Itoa(resp.StatusCode) != code {
		return nil, false
	}
	if resp.StatusCode != http.StatusOK {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	}
	return body, true
}

// pull opens a tunnel to HOST:PORT, asks with one byte and reads until it ends, in whichever way.
func (w *worker) pull(target string) error {
	conn, err := open(target)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("?"))
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

// push opens a tunnel to HOST:PORT and writes until it ends.
func (w *worker) push(target string) error {
	conn, err := open(target)
	if err != nil {
		return err
	}
	defer conn.Close()
	for err == nil {
		_, err = conn.Write(make([]byte, 16<<10))
	}
	return nil
}

// open opens a tunnel, however often it takes.
func open(target string) (net.Conn, error) {
	for {
		conn, resp, err := tunnel(os.Getenv("HTTPS_PROXY"), target)
		if err != nil {
			continue
		}
		if resp.StatusCode == http.StatusOK {
			return conn, conn.SetDeadline(time.Time{})
		}
		conn.Close()
	}
}

func (w *worker) cat(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	_, err = w.out.Write(b)
	return err
}

// write makes the file PATH of PATH:TEXT.
func (w *worker) write(v string) error {
	name, text, _ := strings.Cut(v, ":")
	return os.WriteFile(name, []byte(text+"\n"), 0o644)
}

// env prints one variable, or all of them when it has no name.
func (w *worker) env(name string) error {
	if name != "" {
		fmt.Fprintln(w.out, name+"="+os.Getenv(name))
		return nil
	}
	all := os.Environ()
	sort.Strings(all)
	for _, kv := range all {
		fmt.Fprintln(w.out, kv)
	}
	return nil
}

// eat uses memory, page by page.
func (w *worker) eat(v string) error {
	n, err := size(v)
	if err != nil {
		return err
	}
	for ; n > 0; n -= 1 << 20 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		w.held = append(w.held, b)
	}
	return nil
}

// spawn starts N children that outlive this process: in sessions of their own, holding its output
// open, deaf to SIGTERM.
func (w *worker) spawn(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return err
	}
	for range n {
		c := exec.Command("/proc/self/exe", "ignore", "sleep=1h")
		c.Stdout, c.Stderr = w.out, w.err
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		fmt.Fprintf(w.out, "child %d\n", c.Process.Pid)
	}
	return nil
}
