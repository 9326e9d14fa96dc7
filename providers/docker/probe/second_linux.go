package probe

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// secondLimit ends a second invocation that nobody ends.
const secondLimit = 10 * time.Minute

// second listens where another invocation's agent could, shows that this is reachable from its own side of
// the boundary, and then tells what comes.
func (p *prober) second() error {
	tcp, err := p.listenTCP(":"+strconv.Itoa(p.TCP), nil)
	if err != nil {
		return err
	}
	defer tcp.Close()
	udp, err := p.listenUDP(":" + strconv.Itoa(p.UDP))
	if err != nil {
		return err
	}
	defer udp.Close()
	abstract, err := p.listenAbstract(AbstractName(p.Token.Session, RoleSecond))
	if err != nil {
		return err
	}
	defer abstract.Close()
	for id, try := range map[string]func() result{
		"second-agent": p.secondAgent, "second-proxy": p.ownProxy, "second-abstract": p.secondAbstract,
	} {
		p.report(id, try())
	}
	p.out.say(Message{Ready: &Ready{TCP: p.TCP, UDP: p.UDP}})
	untilTold(secondLimit)
	return nil
}

// ownProxy shows that the second invocation's proxy answers, and logs what it is asked for.
func (p *prober) ownProxy() result {
	name := p.Token.For("second-proxy").String() + ".sandplan-verify.test:443"
	conn, status, err := tunnel(p.Proxy, name, name)
	if err != nil {
		return held("%s", reason(err))
	}
	conn.Close()
	return result{through: status == http.StatusForbidden, detail: fmt.Sprintf("the proxy answered %d", status)}
}

func (p *prober) secondAgent() result {
	t := p.Token.For("second-agent").String()
	if p.SecondAgent == "" {
		return result{absent: true, detail: "there is no second invocation"}
	}
	tcp, udp := []string{net.JoinHostPort(p.SecondAgent, strconv.Itoa(p.TCP))}, []string{net.JoinHostPort(p.SecondAgent, strconv.Itoa(p.UDP))}
	ways := append(deviceWays(), way{})
	if p.Role == RoleSecond {
		ways = []way{{}}
	}
	return first(p.reach("tcp4", tcp, ways, t, p.patience()), p.reach("udp4", udp, ways, t, patience))
}

func (p *prober) secondProxy() result {
	t := p.Token.For("second-proxy")
	name := t.String() + ".sandplan-verify.test:443"
	if len(p.SecondProxies) == 0 {
		return result{absent: true, detail: "there is no second invocation"}
	}
	request := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", name)
	return first(p.reach("tcp4", p.SecondProxies, append(deviceWays(), way{}), request, patience), p.askAll(p.SecondProxies, t))
}

func (p *prober) secondAbstract() result {
	return abstract(AbstractName(p.Token.Session, RoleSecond), p.Token.For("second-abstract"))
}

// secondSecret looks for what begins like the second invocation's credential in all that can be read: files
// that are small enough to hold one, and other processes.
func (p *prober) secondSecret() result {
	if p.SecretPrefix == "" {
		return result{absent: true, detail: "there is no such credential"}
	}
	looked, found := 0, ""
	for _, root := range []string{"/run", "/tmp", "/home", "/root", "/etc", "/var", "/work", "/dev/shm", "/mnt", "/srv"} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || found != "" || looked > 20000 {
				return fs.SkipDir
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Size() < 64<<10 {
				looked++
				if holds(path, p.SecretPrefix) {
					found = path
				}
			}
			return nil
		})
	}
	processes, _ := os.ReadDir("/proc")
	for _, e := range processes {
		if _, err := strconv.Atoi(e.Name()); err != nil || e.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, file := range []string{"environ", "cmdline", "root/run/sandplan/prompt"} {
			if path := filepath.Join("/proc", e.Name(), file); holds(path, p.SecretPrefix) {
				found = path
			}
		}
	}
	if found != "" {
		return through("%s holds it", found)
	}
	return held("it is in none of %d files", looked)
}

// holds looks for a text in a file. Its own job names what it looks for, so that must be followed by the
// secret itself.
func holds(path, prefix string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	i := bytes.Index(b, []byte(prefix)) + len(prefix)
	return i >= len(prefix) && i < len(b) && strings.IndexByte("0123456789abcdef", b[i]) >= 0
}
