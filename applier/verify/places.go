package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandplan/sandplan/providers/docker/probe"
)

// places are directories of the host for the time of a verification.
type places struct {
	root string
	// second is the worktree of the second invocation; tree, readOnly and shown are what the container
	// without the boundary has.
	second, tree, readOnly, shown string
	// file is one that nobody inside may read, with its content; socket one that nobody may connect to.
	file, secret, socket string

	lock   *os.File // held for as long as this process lives
	listen net.Listener
	mu     sync.Mutex
	heard  string
}

func (v *verification) makePlaces(context.Context) error {
	dir, err := filepath.EvalSymlinks(v.TempDir)
	if err != nil {
		return err
	}
	left, err := removeLeftovers(dir, v.Now())
	for _, path := range left {
		v.Tell("removed " + path + ", which a verification left that was killed")
	}
	if err != nil {
		v.Tell(err.Error()) // in nobody's way
	}
	root, err := os.MkdirTemp(dir, placesPrefix)
	if err != nil {
		return err
	}
	p := &places{root: root, second: root + "/second", tree: root + "/open", readOnly: root + "/ro", shown: root + "/shown",
		secret: "content of a file of the host: " + v.token(runFence).String()}
	v.places = p
	if p.lock, err = hold(root); err != nil {
		return err
	}
	p.file, p.socket = p.shown+"/file", p.shown+"/socket"
	for _, d := range []string{p.second, p.tree + "/.git/hooks", p.readOnly, p.shown} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	err = errors.Join(
		os.WriteFile(p.file, []byte(p.secret), 0o644),
		os.WriteFile(p.tree+"/.git/config", nil, 0o644),
		os.WriteFile(p.tree+"/secret", []byte(v.secretPrefix()+"0"), 0o644),
	)
	if err != nil {
		return err
	}
	if p.listen, err = net.Listen("unix", p.socket); err != nil {
		return err
	}
	if err := os.Chmod(p.socket, 0o666); err != nil {
		return err
	}
	go p.hear()
	return nil
}

// hear keeps what comes to the socket.
func (p *places) hear() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, 1024)
		n, _ := conn.Read(buf)
		conn.Close()
		p.mu.Lock()
		p.heard += string(buf[:n]) + "\n"
		p.mu.Unlock()
	}
}

// left are the attempts that left something of theirs on the host: files of this name in a tree, which are
// removed, and words at the socket. A link would lead to what it must not remove.
func (p *places) left(tree, name string, t probe.Token) map[string]string {
	out := map[string]string{}
	for _, f := range []struct{ path, id string }{{name, "worktree-write"}, {".git/" + name, "git-write"}, {".git/hooks/" + name, "git-write"}} {
		path := filepath.Join(tree, f.path)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			out[f.id] = path + " is on the host"
			_ = os.Remove(path)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, found := range probe.FindTokens(t.Session, p.heard) {
		if found == t.For("host-socket") {
			out["host-socket"] = "a connection to " + p.socket
		}
	}
	return out
}

func (p *places) remove() error {
	if p.listen != nil {
		_ = p.listen.Close()
	}
	err := os.RemoveAll(p.root)
	if p.lock != nil {
		_ = p.lock.Close()
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", p.root, err)
	}
	return nil
}
