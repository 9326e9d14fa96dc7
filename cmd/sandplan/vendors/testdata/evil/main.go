// Command evil is what a hostile worktree wants to be run: it says so to the mock, through the proxy, and
// leaves a file where it may. It is no shell script, because there is no shell to run one.
package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

func main() {
	who := "nobody"
	if len(os.Args) > 1 {
		who = strings.Join(os.Args[1:], "-")
		if os.Args[1] == "exec" {
			who = "exec"
		}
	}
	if who == "exec" {
		become(os.Args[2:])
	}
	_ = os.WriteFile("/work/RAN-"+who, nil, 0o644)
	for _, host := range []string{"api.anthropic.com", "api.openai.com"} {
		c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			Proxy: http.ProxyURL(proxy()), TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		if resp, err := c.Get("https://" + host + "/ran/" + url.PathEscape(who)); err == nil {
			resp.Body.Close()
		}
	}
}

// become is `env NAME=value… -- PROGRAM…`.
func become(args []string) {
	env := os.Environ()
	for i, a := range args {
		if a == "--" {
			err := syscall.Exec(args[i+1], args[i+1:], env)
			panic(err)
		}
		env = append(env, a)
	}
}

// proxy is the neighbour of every agent: whoever starts this may have taken the variables away.
func proxy() *url.URL {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return &url.URL{Scheme: "http", Host: netip.AddrPortFrom(p.Masked().Addr().Next().Next(), 3128).String()}
		}
	}
	return nil
}
