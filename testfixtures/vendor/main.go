// Command vendor is a local stand-in for a vendor's API: a TLS server with a certificate authority
// of its own, which answers every request with one line of JSON and logs it.
//
//	vendor -listen=10.237.0.1:8443 -name=llm.example -ca-out=ca.pem
//
// The authority is made anew unless ca.pem and ca.pem.key exist already. The address need not exist
// yet: the uplink's gateway appears with apply. When it is ready the program prints a line that
// begins "vendor: ready".
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/testfixtures/tlsserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vendor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("vendor", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8443", "ADDRESS:PORT; port 0 chooses one")
	name := flags.String("name", "llm.example", "host name of the certificate; several with commas")
	caOut := flags.String("ca-out", "ca.pem", "file for the certificate of the authority")
	answer := flags.String("answer", "hello from the vendor", "text of every answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := strings.Split(*name, ",")
	ca, err := tlsserver.Load(*caOut)
	if err != nil {
		return err
	}
	cert, err := ca.Issue(names)
	if err != nil {
		return err
	}
	ln, err := tlsserver.Listen(ctx, *listen)
	if err != nil {
		return err
	}
	logger := log.New(out, "vendor: ", 0)
	logger.Printf("ready: https://%s on %s, authority in %s", names[0], ln.Addr(), *caOut)
	srv := &http.Server{
		Handler:           handler{*answer, logger},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(quiet{out}, "vendor: ", 0),
	}
	go func() {
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.ServeTLS(ln, "", ""); ctx.Err() == nil {
		return err
	}
	return nil
}

// quiet drops what is said about connections that are closed before they begin: sandplan's proof tries
// the vendor's tunnel without using it.
type quiet struct{ w io.Writer }

func (q quiet) Write(p []byte) (int, error) {
	if strings.HasSuffix(string(p), ": EOF\n") {
		return len(p), nil
	}
	return q.w.Write(p)
}

// handler answers every request the same way.
type handler struct {
	answer string
	log    *log.Logger
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 64<<20))
	h.log.Printf("%s https://%s%s, %d bytes", r.Method, r.Host, r.URL.Path, n)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		Answer string `json:"answer"`
		Path   string `json:"path"`
		Bytes  int64  `json:"bytes"`
	}{h.answer, r.URL.Path, n})
}
