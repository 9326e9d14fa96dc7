package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// message is one line in either direction: a request has a method and an id, a notification only a method,
// a response only an id.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// codeRefused is JSON-RPC's "method not found": it is what the client does not have.
const codeRefused = -32601

// maxMessage is above any message: a turn holds all of its items.
const maxMessage = 128 << 20

// conn is the conversation with the app server. One goroutine reads, and one writes.
type conn struct {
	to   io.Writer
	next int
	in   chan message
	end  chan error // one value, when nothing will come any more
}

func newConn(to io.Writer, from io.Reader) *conn {
	c := &conn{to: to, in: make(chan message), end: make(chan error, 1)}
	go c.read(from)
	return c
}

func (c *conn) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			c.end <- fmt.Errorf("the app server says what is no message: %.100q", lines.Bytes())
			return
		}
		c.in <- m
	}
	if err := lines.Err(); err != nil {
		c.end <- err
		return
	}
	c.end <- errors.New("the app server ended before its turn did")
}

func (c *conn) send(m any) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = c.to.Write(append(raw, '\n'))
	return err
}

// request sends a request and returns its id.
func (c *conn) request(method string, params any) (string, error) {
	id := c.next
	c.next++
	return fmt.Sprint(id), c.send(map[string]any{"id": id, "method": method, "params": params})
}

func (c *conn) notify(method string) error { return c.send(map[string]any{"method": method}) }

func (c *conn) answer(id json.RawMessage, result any) error {
	return c.send(map[string]any{"id": id, "result": result})
}

func (c *conn) refuse(id json.RawMessage, text string) error {
	return c.send(map[string]any{"id": id, "error": rpcError{codeRefused, text}})
}

// receive waits for the next message.
func (c *conn) receive(ctx context.Context, late <-chan struct{}) (message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case err := <-c.end:
		return message{}, err
	case <-late:
		return message{}, errLate
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

var errLate = errors.New("late")
