package dockertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Process is the first process of a container, as the program sees it that stands in for it.
type Process struct {
	ID     string
	Labels map[string]string
	Args   []string // without the program's name
	// Mounts are the sources of its bind mounts by target.
	Mounts         map[string]string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Killed is closed when the engine kills it. It is not waited for then.
	Killed <-chan struct{}

	kill chan struct{}
	over chan struct{}
	once sync.Once
}

// input is a container's standard input, from its first client on.
type input struct {
	r *io.PipeReader
	w *io.PipeWriter
}

// client is one connection that is attached.
type client struct {
	mu   sync.Mutex
	conn net.Conn
	half bool // to be cut in the middle of what is written first
}

// kill ends the process, if there is one.
func (c *fakeContainer) kill() {
	if c.process != nil {
		c.process.once.Do(func() { close(c.process.kill) })
	}
}

// stream is an output of a container: whoever is attached gets it, framed as engines do.
type stream struct {
	f  *Fake
	c  *fakeContainer
	p  *Process
	no byte // 1 standard output, 2 standard error
}

func (s stream) Write(b []byte) (int, error) {
	select {
	case <-s.p.kill:
		return 0, errors.New("broken pipe")
	default:
	}
	s.f.mu.Lock()
	clients := append([]*client(nil), s.c.clients...)
	s.f.mu.Unlock()
	frame := append([]byte{s.no, 0, 0, 0, 0, 0, 0, 0}, b...)
	binary.BigEndian.PutUint32(frame[4:], uint32(len(b)))
	for _, to := range clients {
		to.write(frame)
	}
	return len(b), nil
}

func (c *client) write(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.half {
		_, _ = c.conn.Write(frame[:len(frame)/2])
		_ = c.conn.Close()
		return
	}
	_, _ = c.conn.Write(frame) // a client that is gone hears nothing
}

// stdinOf is called with mu held.
func (c *fakeContainer) stdinOf() *input {
	if c.stdin == nil {
		c.stdin = &input{}
		c.stdin.r, c.stdin.w = io.Pipe()
	}
	return c.stdin
}

func (f *Fake) startContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c.runs() {
		return nil, &problem{status: http.StatusNotModified}
	}
	if err := f.join(c); err != nil {
		return nil, err
	}
	p := &Process{ID: c.id(), Labels: c.labels(), Mounts: map[string]string{}, Stdin: bytes.NewReader(nil), kill: make(chan struct{}), over: make(chan struct{})}
	p.Killed = p.kill
	for _, a := range list(c.tree["Args"]) {
		p.Args = append(p.Args, text(a))
	}
	for _, m := range list(c.host()["Mounts"]) {
		if m := object(m); m["Type"] == "bind" {
			p.Mounts[text(m["Target"])] = text(m["Source"])
		}
	}
	if c.config()["OpenStdin"] == true {
		p.Stdin = c.stdinOf().r
	}
	p.Stdout, p.Stderr = stream{f, c, p, 1}, stream{f, c, p, 2}
	c.process = p
	s := c.state()
	s["Status"], s["Running"], s["StartedAt"], s["FinishedAt"], s["ExitCode"] = "running", true, stamp(time.Now()), never, 0
	f.counter++
	s["Pid"] = 1<<30 + f.counter // no process of this machine
	dir := dataDir + "/containers/" + c.id()
	c.tree["HostnamePath"], c.tree["HostsPath"], c.tree["ResolvConfPath"] = dir+"/hostname", dir+"/hosts", dir+"/resolv.conf"
	c.tree["LogPath"] = dir + "/" + c.id() + "-json.log"
	for _, m := range list(c.tree["Mounts"]) {
		if m := object(m); m["Type"] == "volume" {
			f.tell("volume", "mount", text(m["Name"]), tree{"container": c.id()})
		}
	}
	f.tell("container", "start", c.id(), nil)
	go f.run(c, p)
	return nil, nil
}

// run lets the program run, and notes its end.
func (f *Fake) run(c *fakeContainer, p *Process) {
	done := make(chan int, 1)
	go func() {
		if f.program == nil {
			<-p.kill
			return
		}
		done <- f.program(p)
	}()
	code := 137
	select {
	case code = <-done:
	case <-p.kill:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended(c, p, code)
}

// ended notes the end of a process, once, and is called with mu held.
func (f *Fake) ended(c *fakeContainer, p *Process, code int) {
	select {
	case <-p.over:
		return
	default:
	}
	p.once.Do(func() { close(p.kill) }) // nothing is written any more
	s := c.state()
	s["Status"], s["Running"], s["Paused"], s["Pid"], s["ExitCode"], s["FinishedAt"] = "exited", false, false, 0, code, stamp(time.Now())
	f.tell("container", "die", c.id(), tree{"exitCode": fmt.Sprint(code)})
	f.leave(c)
	for _, m := range list(c.tree["Mounts"]) {
		if m := object(m); m["Type"] == "volume" {
			f.tell("volume", "unmount", text(m["Name"]), tree{"container": c.id()})
		}
	}
	for _, to := range c.clients {
		go to.close()
	}
	if c.stdin != nil {
		_ = c.stdin.r.CloseWithError(errors.New("broken pipe"))
	}
	c.clients, c.stdin = nil, nil
	close(p.over)
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.Close()
}

func (f *Fake) killContainer(r *http.Request) (any, error) {
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if !c.runs() {
		format := "cannot kill container: %s: container %s is not running"
		if f.profile.byName {
			format = "Cannot kill container: %s: Container %s is not running"
		}
		return nil, failure(http.StatusConflict, format, r.PathValue("id"), c.id())
	}
	f.tell("container", "kill", c.id(), tree{"signal": "9"})
	c.kill()
	return nil, nil
}

// wait answers at once that it has heard, and when the container has ended, how.
func (f *Fake) wait(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	c, err := f.container(r.PathValue("id"))
	raw, status := f.encode(nil, http.StatusOK, err)
	var over <-chan struct{}
	if err == nil && c.runs() {
		over = c.process.over
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err != nil {
		_, _ = w.Write(raw)
		answered(r)
		return
	}
	_ = http.NewResponseController(w).Flush()
	answered(r)
	if over != nil {
		select {
		case <-over:
		case <-r.Context().Done():
			return
		}
	}
	f.mu.Lock()
	result := tree{"StatusCode": c.state()["ExitCode"]}
	if f.profile.byName {
		result["Error"] = nil
	}
	raw, _ = f.encode(result, http.StatusOK, nil)
	f.mu.Unlock()
	if faultOf(r).Half {
		_, _ = w.Write(raw[:len(raw)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(raw)
}

// attach connects a client with a container's standard streams.
func (f *Fake) attach(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	c, err := f.container(r.PathValue("id"))
	if err != nil {
		raw, status := f.encode(nil, 0, err)
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(raw)
		return
	}
	stdin, once := c.stdinOf(), c.config()["StdinOnce"] == true
	f.mu.Unlock()
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	one := &client{conn: conn, half: faultOf(r).Half}
	f.mu.Lock()
	c.clients = append(c.clients, one)
	f.tell("container", "attach", c.id(), nil)
	f.mu.Unlock()
	answered(r)
	_, _ = io.Copy(stdin.w, buf)
	if once { // whoever leaves takes the standard input with him
		_ = stdin.w.Close()
	}
}
