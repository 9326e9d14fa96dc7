// Command serve runs the mock of both vendors by itself, for trying a CLI by hand:
//
//	serve -listen=127.0.0.1:8443 -ca=ca.pem -script=script.json
//
// Every turn is one line on standard output: method, host, path, and the tools that it offers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/testfixtures/tlsserver"
	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8443", "ADDRESS:PORT")
	ca := flags.String("ca", "ca.pem", "file of the authority's certificate; made unless it is there")
	only := flags.Bool("make-ca", false, "make the authority and end")
	file := flags.String("script", "", "JSON file of a script: calls, answer, status, settings, cut")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only {
		_, err := tlsserver.Load(*ca)
		return err
	}
	script := vendormock.Script{Answer: "hello from the mock"}
	if *file != "" {
		raw, err := os.ReadFile(*file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &script); err != nil {
			return fmt.Errorf("%s: %w", *file, err)
		}
	}
	s, err := vendormock.Start(ctx, *listen, *ca)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.Play(script)
	fmt.Printf("ready on %s for %s\n", s.Addr(), strings.Join(vendormock.Hosts(), ", "))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for told := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for all := s.Requests(); told < len(all); told++ {
			r := all[told]
			fmt.Printf("%s https://%s%s", r.Method, r.Host, r.Path)
			if r.IsTurn() {
				fmt.Printf(" offers %v, holds %d results", r.Tools(), len(r.Results()))
			}
			fmt.Println()
		}
	}
}
