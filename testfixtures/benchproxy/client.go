package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// clientHello are the bytes of a real one.
func clientHello(name string) ([]byte, error) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, &tls.Config{ServerName: name}).Handshake() }()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	return buf[:n], err
}

// open makes a tunnel to the server and has its hello answered.
func (w *world) open(c contender) (net.Conn, error) {
	conn, err := net.Dial("tcp", c.dial)
	if err != nil {
		return nil, err
	}
	if err := w.greet(conn, c); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (w *world) greet(conn net.Conn, c contender) error {
	if err := conn.SetDeadline(time.Now().Add(patient)); err != nil {
		return err
	}
	if c.target != "" {
		if _, err := io.WriteString(conn, "CONNECT "+c.target+" HTTP/1.1\r\nHost: "+c.target+"\r\n\r\n"); err != nil {
			return err
		}
		if err := connected(conn); err != nil {
			return err
		}
	}
	if _, err := conn.Write(w.hello); err != nil {
		return err
	}
	var got [64]byte
	want := serverHello()
	if _, err := io.ReadFull(conn, got[:len(want)]); err != nil {
		return err
	}
	if !bytes.Equal(got[:len(want)], want) {
		return errors.New("another answer than the server's")
	}
	return nil
}

// connected reads the answer to a CONNECT and nothing behind it.
func connected(conn net.Conn) error {
	var buf [1024]byte
	n := 0
	for n < len(buf) {
		k, err := conn.Read(buf[n:])
		if n += k; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			if !bytes.Contains(buf[:min(n, 16)], []byte(" 200 ")) {
				line, _, _ := bytes.Cut(buf[:n], []byte("\r\n"))
				return fmt.Errorf("the answer is %q", line)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("an answer without an end")
}

// ask opens a tunnel and asks the server for something, without a deadline from then on.
func (w *world) ask(c contender, what byte) (net.Conn, error) {
	conn, err := w.open(c)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(recordOf(23, []byte{what})); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}
