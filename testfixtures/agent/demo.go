package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long each attempt may take. What is forbidden mostly fails at once; where packets
// vanish instead, the attempts wait side by side.
const patience = 3 * time.Second

// demo tries what an agent may do and what it must not be able to do.
type demo struct {
	vendor, other, direct, hosts string
	expect, worktree             string
	stdin                        io.Reader
	out                          io.Writer
}

// outcome is one line of the demo. Good means that the sandbox did what it promises.
type outcome struct {
	what, result string
	good         bool
}

func (d *demo) run() error {
	first := d.read() // before there is a file of its own
	tries := []func() outcome{func() outcome { return first }, d.write, d.git, d.callVendor, d.callOther, d.dialDirect, d.dialHost, d.lookUp}
	found := make([]outcome, len(tries))
	var wg sync.WaitGroup
	for i, try := range tries {
		wg.Go(func() { found[i] = try() })
	}
	fmt.Fprintln(d.out, "agent: "+d.prompt())
	wg.Wait()
	bad := 0
	for _, o := range found {
		if o.what == "" {
			continue
		}
		mark := "ok "
		if !o.good {
			mark = "BAD"
			bad++
		}
		fmt.Fprintf(d.out, "agent: %s  %-12s %s\n", mark, o.what, o.result)
	}
	if bad > 0 {
		fmt.Fprintf(d.out, "agent: the sandbox leaks in %d places\n", bad)
		return stop(1)
	}
	return nil
}

// prompt is the first line of the task.
func (d *demo) prompt() string {
	line, err := bufio.NewReader(io.LimitReader(d.stdin, 1<<20)).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" || err != nil && !errors.Is(err, io.EOF) {
		return "no task given"
	}
	return "my task is: " + line
}

func (d *demo) read() outcome {
	list, err := os.ReadDir(d.worktree)
	if err != nil {
		return outcome{"read", err.Error(), false}
	}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(d.worktree, e.Name()))
		if line, _, _ := strings.Cut(string(b), "\n"); err == nil && line != "" {
			return outcome{"read", fmt.Sprintf("%s has %d entries; %s begins %q", d.worktree, len(list), e.Name(), line), true}
		}
	}
	return outcome{"read", fmt.Sprintf("%s has %d entries", d.worktree, len(list)), true}
}

// write finds out by trying which kind of worktree this is.
func (d *demo) write() outcome {
	name := filepath.Join(d.worktree, "written-by-agent.txt")
	err := os.WriteFile(name, []byte("the agent was here\n"), 0o644)
	switch {
	case err == nil:
		return outcome{"write", "wrote " + name, d.expect != "read-only"}
	case errors.Is(err, syscall.EROFS):
		return outcome{"write", "refused: the worktree is read-only", d.expect != "writable"}
	}
	return outcome{"write", "refused: " + err.Error(), false}
}

// git tries to leave a hook behind that would run on the host.
func (d *demo) git() outcome {
	dir := filepath.Join(d.worktree, ".git")
	if _, err := os.Lstat(dir); err != nil {
		return outcome{}
	}
	err := os.WriteFile(filepath.Join(dir, "planted-by-agent"), nil, 0o755)
	if err == nil {
		return outcome{"git", "wrote into " + dir, false}
	}
	return outcome{"git", "writing into .git refused: " + cause(err), true}
}

func (d *demo) callVendor() outcome {
	if d.vendor == "" {
		return outcome{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.vendor, strings.NewReader(`{"prompt":"hello"}`))
	if err != nil {
		return outcome{"vendor", err.Error(), false}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return outcome{"vendor", cause(err), false}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	line := strings.TrimSpace(string(body))
	return outcome{"vendor", fmt.Sprintf("%s answered %d through the proxy: %s", req.URL.Host, resp.StatusCode, line),
		err == nil && resp.StatusCode == http.StatusOK && line != ""}
}

func (d *demo) callOther() outcome {
	status, body, err := connect(os.Getenv("HTTPS_PROXY"), d.other)
	switch {
	case err != nil:
		return outcome{"other host", d.other + ": the proxy does not answer: " + cause(err), false}
	case status == http.StatusForbidden:
		return outcome{"other host", fmt.Sprintf("%s: the proxy says 403: %s", d.other, body), true}
	}
	return outcome{"other host", fmt.Sprintf("%s: the proxy says %d", d.other, status), false}
}

// connect asks the proxy for a tunnel and returns its status and the first line of its refusal.
func connect(proxy, target string) (status int, body string, err error) {
	conn, resp, err := tunnel(proxy, target)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, "", nil
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return resp.StatusCode, line, nil
}

// tunnel asks the proxy for one. It is there when the status is 200.
func tunnel(proxy, target string) (net.Conn, *http.Response, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("HTTPS_PROXY is %q", proxy)
	}
	conn, err := net.DialTimeout("tcp", u.Host, patience)
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, resp, nil
}

func (d *demo) dialDirect() outcome {
	return unreachable("direct", []string{d.direct})
}

// dialHost tries the host where containers usually find it: at the first address of their own
// networks, and at the default bridge.
func (d *demo) dialHost() outcome {
	targets := []string{"172.17.0.1:22"}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			targets = append(targets, netip.AddrPortFrom(p.Masked().Addr().Next(), 22).String())
		}
	}
	for _, h := range strings.Split(d.hosts, ",") {
		if h != "" {
			targets = append(targets, h)
		}
	}
	return unreachable("host", targets)
}

// unreachable dials all targets at once. A refused connection is an answer too: somebody is there.
func unreachable(what string, targets []string) outcome {
	results := make([]string, len(targets))
	open := make([]bool, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			conn, err := net.DialTimeout("tcp", t, patience)
			switch {
			case err == nil:
				conn.Close()
				open[i], results[i] = true, t+" accepts connections"
			case errors.Is(err, syscall.ECONNREFUSED):
				open[i], results[i] = true, t+" answers"
			default:
				results[i] = t + ": " + cause(err)
			}
		})
	}
	wg.Wait()
	good := true
	for _, o := range open {
		good = good && !o
	}
	return outcome{what, strings.Join(results, "; "), good}
}

func (d *demo) lookUp() outcome {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, "example.com")
	if err == nil {
		return outcome{"DNS", "example.com is " + strings.Join(addrs, ", "), false}
	}
	return outcome{"DNS", "looking up example.com fails: " + cause(err), true}
}

// cause is the innermost part of an error that a reader cares for.
func cause(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &record):
		return "not TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer"
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return "no answer"
	}
	return err.Error()
}
