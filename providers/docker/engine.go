package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

// The engines that this program knows. Observation stays at maxAPI even where client and engine could
// speak a newer one, whose inspect output nobody has compared yet.
const (
	minAPI = "1.41" // 20.10
	maxAPI = "1.51" // 28.5
)

// openTimeout bounds the first conversation with an engine: a socket may accept and never answer.
const openTimeout = 10 * time.Second

// Options is all that the package takes from its surroundings.
type Options struct {
	// Host is what the configuration asks for (provider "docker" { host }); "" leaves the choice to
	// DOCKER_HOST, the docker context, and the default.
	Host   string
	Getenv func(string) string
	// Home is the user's home directory, where the docker context is kept.
	Home string
	// Origin is the host and directory of this configuration, written on what is created.
	Origin string
	// Version is sandplan's.
	Version string
	// Self is the path of the static binary that sandplan.image is made from.
	Self string
	// DataDir is where runs and records are kept, which no agent may write; "" when nothing is.
	DataDir string
	// ReadOnly makes an engine that no writing call can reach.
	ReadOnly bool
	// Kernel is the machine below the engine; nil is this one.
	Kernel Kernel
	// Who is user@host, for locks; Now is the clock.
	Who string
	Now func() time.Time
	// Calls is told of each call to the engine, from several goroutines; nil when nobody wants to know.
	Calls func(Call)
}

// Engine is one Docker engine. It holds no state of a scope: what is there is looked up each time. Its
// methods may be called at the same time.
type Engine struct {
	options Options
	info    Info
	host    endpoint
	cli     *client.Client
	http    *http.Client
	kinds   []kind
	apart   apart
	joins   joinMemo
	vain    waits
	// passing is passingLimit.
	passing time.Duration
	// proved is set once it is certain that the engine sees this machine's files.
	proof  sync.Mutex
	proved bool
	// paper is set for an engine that nobody asks.
	paper *paper
	// own is sandplan.image, made from the binary when it is first needed.
	own func() (*ownImage, error)
}

// Info is what the engine says of itself.
type Info struct {
	ID      string
	Version string
	API     string // the version that is spoken
	Arch    string // as Go spells it
	// ContainerdStore: image IDs are digests of manifests, not of configurations.
	ContainerdStore bool
	// DataDir is where the engine keeps its data, on its own file system.
	DataDir string
	// Socket is the path of the engine's socket.
	Socket string
}

// Open finds the engine, makes sure that it can be used, and agrees on an API version with it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Kernel == nil {
		o.Kernel = thisKernel{}
	}
	host, err := findEndpoint(o)
	if err != nil {
		return nil, err
	}
	e := &Engine{options: o, host: host, passing: passingLimit, http: &http.Client{
		Transport:     newTransport(host.socket, o.Getenv),
		CheckRedirect: client.CheckRedirect,
	}, kinds: kinds(), apart: namespacesOf(host.socket, "/proc"), own: lazyOwnImage(o)}
	if o.Calls != nil {
		e.http.Transport = told{e.http.Transport, o.Calls, o.Now}
	}
	if o.ReadOnly {
		e.http.Transport = readOnly{e.http.Transport}
	}
	// Nearly every command needs it, and hashing takes as long as the first conversation.
	own := e.own // read here: whoever opens the engine may have it made of something else
	go func() { _, _ = own() }()
	start, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	api, err := e.negotiate(start)
	if err != nil {
		return nil, err
	}
	e.info.API = api
	if err := e.readInfo(start); err != nil {
		return nil, err
	}
	// The host is set on a plain transport, which the client insists on; the counting one comes after. It wraps
	// the transport of the client that it is given, so that gets a copy.
	wrapped := *e.http
	e.cli, err = client.NewClientWithOpts(client.WithHost("unix://"+host.socket), client.WithHTTPClient(&wrapped),
		client.WithVersion(api), client.WithUserAgent("sandplan/"+o.Version))
	if err != nil {
		return nil, fmt.Errorf("engine at %s: %w", host, err)
	}
	return e, nil
}

// Info is what the engine said of itself when it was opened.
func (e *Engine) Info() Info { return e.info }

// Close ends idle connections.
func (e *Engine) Close() { e.http.CloseIdleConnections() }

func (e *Engine) negotiate(ctx context.Context) (string, error) {
	resp, err := e.request(ctx, http.MethodGet, "/_ping", nil)
	if err != nil {
		return "", e.host.unreachable(err)
	}
	_ = resp.Body.Close()
	offered := resp.Header.Get("Api-Version")
	if offered == "" {
		return "", fmt.Errorf("what answers at %s is no Docker engine: its reply to a ping names no API version", e.host)
	}
	if lessVersion(offered, minAPI) {
		return "", fmt.Errorf("the engine at %s speaks API %s; sandplan needs %s or newer (Docker 20.10)", e.host, offered, minAPI)
	}
	if lessVersion(maxAPI, offered) {
		return maxAPI, nil
	}
	return offered, nil
}

func (e *Engine) readInfo(ctx context.Context) error {
	raw, err := e.get(ctx, "/info", nil)
	if err != nil {
		return fmt.Errorf("ask the engine at %s about itself: %w", e.host, err)
	}
	var said struct {
		ID, ServerVersion, OSType, Architecture, DockerRootDir string
		DriverStatus                                           [][2]string
		SecurityOptions                                        []string
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("the engine at %s says of itself what is no JSON: %w", e.host, err)
	}
	e.info = Info{ID: said.ID, Version: said.ServerVersion, API: e.info.API, Arch: goArch(said.Architecture),
		DataDir: said.DockerRootDir, Socket: e.host.socket,
		ContainerdStore: slices.Contains(said.DriverStatus, [2]string{"driver-type", "io.containerd.snapshotter.v1"})}
	if said.OSType != "linux" {
		return fmt.Errorf("the engine at %s runs %s containers; sandplan needs a Linux engine", e.host, said.OSType)
	}
	if e.info.Arch != runtime.GOARCH {
		return fmt.Errorf("the engine at %s runs on %s and this sandplan is built for %s; use the sandplan of the engine's architecture",
			e.host, e.info.Arch, runtime.GOARCH)
	}
	for _, opt := range said.SecurityOptions {
		// Both map the users of containers to others, so that "the worktree's owner" names somebody else.
		if name := strings.TrimPrefix(opt, "name="); name == "rootless" || name == "userns" {
			return fmt.Errorf("the engine at %s runs in %s mode, which sandplan does not support: users inside containers would not be those declared",
				e.host, name)
		}
	}
	if said.ID == "" {
		return fmt.Errorf("the engine at %s does not tell its ID", e.host)
	}
	return nil
}

// goArch turns uname's name of an architecture into Go's.
func goArch(uname string) string {
	switch uname {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	case "i686", "i386":
		return "386"
	}
	return uname
}

// lessVersion compares API versions, such as 1.9 and 1.41.
func lessVersion(a, b string) bool {
	pa, pb := versionParts(a), versionParts(b)
	return slices.Compare(pa, pb) < 0
}

func versionParts(v string) []int {
	var out []int
	for _, p := range strings.Split(v, ".") {
		n, _ := strconv.Atoi(p) // what is no number counts as the oldest
		out = append(out, n)
	}
	return out
}
