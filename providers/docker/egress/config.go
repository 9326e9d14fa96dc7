package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
)

// Port is the port that every proxy listens on, and Hostname what its container is called.
const (
	Port     = 3128
	Hostname = "proxy"
)

// Config is the whole declaration of one proxy. It is its command line, so that inspect shows it and
// the gate compares it. Nothing in it is secret, and nothing in it depends on the line of a file that
// something is written on: moving a block changes no proxy.
type Config struct {
	// Invocation is the address of the invocation, for log lines.
	Invocation string `json:"invocation"`
	// Declaration is the address of the vendor, for the text of refusals: vendor.claude.
	Declaration string `json:"declaration"`
	// Listen is the proxy's address and port on the invocation's network; it listens nowhere else.
	Listen string `json:"listen"`
	// Agent is the one address that connections are accepted from.
	Agent string `json:"agent"`
	// UID and GID are the user that it must run as.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Addresses are the proxy's own, on the uplink and on the invocation's network, each with the length of the
	// network's prefix; it must have no other. Gateway is the uplink's, where its one default route must lead.
	Addresses []string `json:"addresses"`
	Gateway   string   `json:"gateway"`
	// Nameservers are those that /etc/resolv.conf must name, and the only ones: the engine's own resolver. The
	// proxy asks none of them.
	Nameservers []string `json:"nameservers"`
	// Hosts are what may be reached, sorted by name and port.
	Hosts []Host `json:"hosts"`
	// DNS are the name servers, ADDRESS or ADDRESS:PORT, asked in this order. May be empty when every
	// host has fixed addresses.
	DNS []string `json:"dns"`
	// Sysctls are settings below /proc/sys that the proxy must find, by their dotted names.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	Limits  Limits            `json:"limits"`
}

// Host is one host and port that may be reached.
type Host struct {
	Name string `json:"name"` // canonical: lower case, no final dot
	Port int    `json:"port"`
	// Addresses are dialled in this order, whatever class they are of; without any the name is looked up.
	Addresses []string `json:"addresses,omitempty"`
	// TLS says that a tunnel must begin with a TLS hello for this name.
	TLS bool `json:"tls"`
	// Decl is the address of the declaration, for log lines.
	Decl string `json:"decl"`
}

// Limits bound what one agent can make its proxy do. Times are in milliseconds.
type Limits struct {
	// Tunnels at once, connections that are not yet a tunnel included.
	Tunnels int `json:"tunnels"`
	// TunnelsPerSecond are new connections per second, with a burst of as many.
	TunnelsPerSecond int `json:"tunnels_per_second"`
	// HeadBytes and HeadMS bound a request, HelloBytes and HelloMS the hello that follows it.
	HeadBytes  int   `json:"head_bytes"`
	HeadMS     int64 `json:"head_ms"`
	HelloBytes int   `json:"hello_bytes"`
	HelloMS    int64 `json:"hello_ms"`
	// LookupMS bounds the one lookup of a tunnel, DialMS each address that is dialled.
	LookupMS int64 `json:"lookup_ms"`
	DialMS   int64 `json:"dial_ms"`
	// UploadBytes and DownloadBytes bound the bytes of all tunnels together; 0 is no bound.
	UploadBytes   int64 `json:"upload_bytes"`
	DownloadBytes int64 `json:"download_bytes"`
	// LogBytes bounds the log. A proxy that has used it up ends, so that nothing happens unlogged.
	LogBytes int64 `json:"log_bytes"`
	// SilenceMS is the longest time without a frame on standard input.
	SilenceMS int64 `json:"silence_ms"`
	// MemoryBytes is the container's memory; the garbage collector keeps below it. 0 is unknown.
	MemoryBytes int64 `json:"memory_bytes"`
	// CPUs are the container's processors: more threads than that only wait for each other. 0 is unknown.
	CPUs int `json:"cpus"`
}

// DefaultLimits are the limits of a proxy whose invocation may upload this many bytes.
func DefaultLimits(upload int64) Limits {
	return Limits{
		Tunnels:          256,
		TunnelsPerSecond: 100,
		HeadBytes:        8 << 10,
		HeadMS:           10_000,
		HelloBytes:       16 << 10,
		HelloMS:          10_000,
		LookupMS:         5_000,
		DialMS:           10_000,
		UploadBytes:      upload,
		LogBytes:         16 << 20,
		SilenceMS:        5_000,
		MemoryBytes:      128 << 20,
		CPUs:             1,
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Arg is the configuration as the proxy's one argument, always the same for equal configurations.
func (c *Config) Arg() (string, error) {
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("proxy of %s: %w", c.Invocation, err)
	}
	return c.Text()
}

// Text is the configuration as Arg writes it, whether it makes sense or not.
func (c *Config) Text() (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is read by people, in inspect
	if err := enc.Encode(c); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// ParseConfig reads what Arg wrote.
func ParseConfig(arg string) (*Config, error) {
	dec := json.NewDecoder(strings.NewReader(arg))
	// The writer is another run of the same program: a field that it knows and we do not is a mistake.
	dec.DisallowUnknownFields()
	var c Config
	if err := dec.Decode(&c); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// Inside is what the proxy must find in its container. One that it tells nothing about is as it should be for nobody.
func (c *Config) Inside() inside.Proxy {
	return inside.Proxy{Listen: c.Listen, Hostname: Hostname, UID: c.UID, GID: c.GID, Addresses: c.Addresses,
		Gateway: c.Gateway, Nameservers: c.Nameservers, Sysctls: c.Sysctls}
}

// Validate reports the first thing that makes the configuration unusable.
func (c *Config) Validate() error {
	listen, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// A wildcard would also listen on the uplink.
	if listen.Addr().IsUnspecified() {
		return fmt.Errorf("listen %s: the address of one interface is needed", c.Listen)
	}
	if _, err := netip.ParseAddr(c.Agent); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if err := c.validateInside(); err != nil {
		return err
	}
	if len(c.Hosts) == 0 {
		return errors.New("no hosts")
	}
	lookups := false
	for _, h := range c.Hosts {
		if h.Port < 1 || h.Port > 65535 {
			return fmt.Errorf("host %s: port %d", h.Name, h.Port)
		}
		for _, a := range h.Addresses {
			if _, err := netip.ParseAddr(a); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
		}
		lookups = lookups || len(h.Addresses) == 0
	}
	if lookups && len(c.DNS) == 0 {
		return errors.New("no name servers, and a host without addresses")
	}
	if _, err := c.nameServers(); err != nil {
		return err
	}
	return c.Limits.validate()
}

func (c *Config) validateInside() error {
	for _, a := range c.Addresses {
		if _, err := netip.ParsePrefix(a); err != nil {
			return fmt.Errorf("addresses: %w", err)
		}
	}
	for _, a := range append([]string{c.Gateway}, c.Nameservers...) {
		if _, err := netip.ParseAddr(a); a != "" && err != nil {
			return fmt.Errorf("gateway and nameservers: %w", err)
		}
	}
	return nil
}

func (c *Config) nameServers() ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	for _, s := range c.DNS {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.AddrPortFrom(a, 53))
			continue
		}
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("dns: %q is neither ADDRESS nor ADDRESS:PORT", s)
		}
		out = append(out, ap)
	}
	return out, nil
}

func (l Limits) validate() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"tunnels", int64(l.Tunnels)}, {"tunnels_per_second", int64(l.TunnelsPerSecond)},
		{"head_bytes", int64(l.HeadBytes)}, {"head_ms", l.HeadMS},
		{"hello_bytes", int64(l.HelloBytes)}, {"hello_ms", l.HelloMS},
		{"lookup_ms", l.LookupMS}, {"dial_ms", l.DialMS},
		{"log_bytes", l.LogBytes}, {"silence_ms", l.SilenceMS},
	} {
		if n.value <= 0 {
			return fmt.Errorf("limit %s: %d, it must be above zero", n.name, n.value)
		}
	}
	if l.UploadBytes < 0 || l.DownloadBytes < 0 || l.MemoryBytes < 0 || l.CPUs < 0 {
		return fmt.Errorf("limits %+v: a negative number", l)
	}
	return nil
}
