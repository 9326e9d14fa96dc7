package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// proxyLines are what a proxy has to say at its end.
const proxyLines = `{"seq":1,"event":"decision","host":"api.example","port":443,"decision":"allow"}
{"seq":2,"event":"decision","host":"evil.example","port":443,"decision":"refuse","reason":"host"}
{"seq":3,"event":"repeated","host":"evil.example","port":443,"decision":"refuse","count":4}
{"seq":4,"event":"closed","host":"api.example","port":443,"up":10,"down":20}
{"seq":5,"event":"end"}
`

// proxyProgram is a proxy that works.
func proxyProgram(p *fakeProcess) int {
	l := wire.Hold(p.stdin, wire.Silence)
	ch, err := l.Challenge(context.Background())
	if err != nil {
		return 1
	}
	_ = wire.WriteReady(p.stdout, goodReady(ch.Nonce))
	<-l.Done()
	if errors.Is(l.Err(), wire.ErrStopped) {
		fmt.Fprint(p.stdout, proxyLines)
		return 0
	}
	return 1
}

// proxyInside is what proxyProgram must find.
func proxyInside() inside.Proxy {
	return inside.Proxy{Listen: "10.0.0.2:3128", Hostname: "proxy", UID: 7, GID: 7, Addresses: []string{"10.1.0.2/22", "10.0.0.2/29"},
		Gateway: "10.1.0.1", Nameservers: []string{"127.0.0.11"}, Sysctls: map[string]string{"net.ipv4.ip_forward": "0"}}
}

// goodReady is what a proxy says that has found it.
func goodReady(nonce string) wire.Ready {
	r := wire.Ready{Nonce: nonce, Listen: "10.0.0.2:3128",
		Addresses:  []wire.Address{{Interface: "eth0", Prefix: "10.1.0.2/22"}, {Interface: "eth1", Prefix: "10.0.0.2/29"}, {Interface: "lo", Prefix: "127.0.0.1/8"}},
		Routes:     []wire.Route{{Interface: "eth0", Dest: "0.0.0.0/0", Gateway: "10.1.0.1"}, {Interface: "eth1", Dest: "10.0.0.0/29"}, {Interface: "eth0", Dest: "10.1.0.0/22"}},
		ResolvConf: "nameserver 127.0.0.11\noptions ndots:0\n", Hosts: "127.0.0.1\tlocalhost\n10.1.0.2\tproxy\n10.0.0.2\tproxy\n"}
	for _, c := range proxyInside().Checks(inside.Status{}, nil, r) {
		r.Checks = append(r.Checks, wire.Check{Name: c.Name, OK: true})
	}
	return r
}

func goodReport(c wire.Challenge) wire.Report {
	return wire.Report{Nonce: c.Nonce, Checks: []wire.Check{{Name: "net.vendor", OK: true}},
		Mounts: []wire.Mount{{Path: "/work", Dev: 1, Inode: 2}}}
}

// command is the agent itself: it returns its exit code, or -1 when ctx ended it.
type command func(ctx context.Context, p *fakeProcess, b wire.Bundle) int

func sayHello(_ context.Context, p *fakeProcess, b wire.Bundle) int {
	fmt.Fprintf(p.stdout, "prompt %q\n", b.Prompt)
	fmt.Fprint(p.stderr, "no newline")
	return 0
}

// runFor is a command that takes its time.
func runFor(d time.Duration, code int) command {
	return func(ctx context.Context, _ *fakeProcess, _ wire.Bundle) int {
		select {
		case <-time.After(d):
			return code
		case <-ctx.Done():
			return -1
		}
	}
}

// shimProgram is a first process that does what it should.
func shimProgram(report func(wire.Challenge) wire.Report, run command) program {
	return func(p *fakeProcess) int {
		l := wire.Hold(p.stdin, wire.Silence)
		ch, err := l.Challenge(context.Background())
		if err != nil {
			return 1
		}
		r := report(ch)
		l.AllowBundle()
		_ = wire.WriteReport(p.stdout, r)
		exit := func(e wire.Exit) int {
			e.Token = ch.Token
			_ = wire.WriteExit(p.stderr, e)
			return 1
		}
		if len(r.Failed()) > 0 {
			return exit(wire.Exit{By: wire.ByShim, Cause: wire.CauseProof})
		}
		b, err := l.Bundle(context.Background())
		if err != nil {
			return exit(wire.Exit{By: wire.ByShim, Cause: wire.CauseLease, Detail: err.Error()})
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan int, 1)
		go func() { ended <- run(ctx, p, b) }()
		select {
		case code := <-ended:
			return exit(wire.Exit{By: wire.ByAgent, Code: code})
		case <-l.Done():
			if errors.Is(l.Err(), wire.ErrStopped) {
				return exit(wire.Exit{By: wire.ByShim, Cause: wire.CauseStop})
			}
			return exit(wire.Exit{By: wire.ByShim, Cause: wire.CauseLease, Detail: l.Err().Error()})
		case <-p.killed:
			return 137
		}
	}
}
