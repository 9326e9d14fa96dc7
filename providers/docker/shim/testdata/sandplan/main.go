// Command sandplan is what the shim's tests put into containers: the shim, and a proxy that answers
// CONNECT for the tests' own hosts and refuses others, as its arguments say.
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/sandplan/sandplan/providers/docker/shim"
)

func main() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "shim":
		os.Exit(shim.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	case len(os.Args) > 2 && os.Args[1] == "proxy":
		if err := proxy(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(2)
	}
}

// proxy answers 200 for the hosts and 403 for all others, and reaches nothing.
func proxy(listen string, hosts []string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			if slices.Contains(hosts, req.Host) {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nrefused\n")
		}()
	}
}
