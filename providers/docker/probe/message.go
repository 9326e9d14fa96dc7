package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// The roles of the program.
const (
	// RoleAttempt tries to get out, or, with Job.Open, shows that the attempts work.
	RoleAttempt = "attempt"
	// RoleSecond is the other invocation: it listens, and says what reached it.
	RoleSecond = "second"
	// RoleCanary listens on the host's network.
	RoleCanary = "canary"
)

// Job is what one run of the program has to do. It comes over standard input.
type Job struct {
	Role string `json:"role"`
	// Token marks everything that goes over a network.
	Token Token `json:"token"`
	// Open says that it runs without the boundary, to show that an attempt works at all.
	Open bool `json:"open,omitempty"`
	// Only restricts it to some attempts.
	Only []string `json:"only,omitempty"`

	// The canary: where it listens on every address of the host.
	TCP int `json:"tcp,omitempty"`
	UDP int `json:"udp,omitempty"`
	// HostAddresses are the host's addresses.
	HostAddresses []string `json:"host_addresses,omitempty"`
	// Proxy is the own proxy, ADDRESS:PORT, and ProxyUplink the same on the uplink; Declared is the one host
	// that may be reached through it.
	Proxy       string `json:"proxy,omitempty"`
	ProxyUplink string `json:"proxy_uplink,omitempty"`
	Declared    string `json:"declared,omitempty"`
	// SecondAgent and SecondProxies are where the second invocation listens.
	SecondAgent   string   `json:"second_agent,omitempty"`
	SecondProxies []string `json:"second_proxies,omitempty"`
	// SecretPrefix begins the second invocation's credential. It is no part of the secret that follows.
	SecretPrefix string `json:"secret_prefix,omitempty"`

	// HostFile and HostSocket are paths on the host; EngineSocket is the engine's.
	HostFile     string `json:"host_file,omitempty"`
	HostSocket   string `json:"host_socket,omitempty"`
	EngineSocket string `json:"engine_socket,omitempty"`
	// HostPID is a process of the host, with the time of its start in the kernel's ticks.
	HostPID   int    `json:"host_pid,omitempty"`
	HostStart string `json:"host_start,omitempty"`
	// Name is that of the files that are tried to be made.
	Name string `json:"name,omitempty"`

	// Memories are the memory file systems with their sizes; PIDs and Memory are the limits.
	Memories []Memory `json:"memories,omitempty"`
	PIDs     int64    `json:"pids,omitempty"`
	Memory   int64    `json:"memory,omitempty"`
}

// Memory is one memory file system.
type Memory struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Outcome is what came of one attempt, as the probe itself saw it.
type Outcome struct {
	ID string `json:"id"`
	// Through says that it succeeded, as far as that is seen from where it was tried.
	Through bool `json:"through"`
	// Absent says that this kernel or machine does not have what was tried to be used.
	Absent bool `json:"absent,omitempty"`
	// Untried says that it was left alone, and why stands in Detail.
	Untried bool   `json:"untried,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Sighting is something that reached a canary.
type Sighting struct {
	Token Token `json:"token"`
	// How it was seen: "TCP connection to 172.17.0.1:4711 from …".
	How string `json:"how"`
	// Interface is where a packet was seen, and Bridge the bridge that the interface belongs to. Both are
	// empty for what came to a listener: that has arrived, wherever it came from.
	Interface string `json:"interface,omitempty"`
	Bridge    string `json:"bridge,omitempty"`
	// From is the source of a packet that is known by its address alone. Another verification's looks the
	// same but for that.
	From string `json:"from,omitempty"`
}

// Ready says that the program is prepared: for a canary, where it listens.
type Ready struct {
	TCP int `json:"tcp,omitempty"`
	UDP int `json:"udp,omitempty"`
	TLS int `json:"tls,omitempty"`
	// Capture is false where packets cannot be seen; Why says why.
	Capture bool   `json:"capture,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Message is one line of the program's output. One member is set.
type Message struct {
	Ready    *Ready    `json:"ready,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
	Sighting *Sighting `json:"sighting,omitempty"`
	// Lost are packets that a canary could not look at, since it said so last.
	Lost int `json:"lost,omitempty"`
	// Done is the last line of a program that does not wait to be ended.
	Done bool `json:"done,omitempty"`
}

// speaker writes messages, one line each.
type speaker struct {
	mu sync.Mutex
	to io.Writer
}

func (s *speaker) say(m Message) {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("a message without a JSON form: %v", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.to.Write(append(b, '\n')) // nobody is left to be told
}
