// Command agent stands in for a vendor's CLI in the demo and in tests. Without arguments, or with the
// step "demo", it tries what an agent may and may not do and prints one line for each; the other
// steps are single actions for tests. Steps run in the order in which they are given:
//
//	agent -vendor=https://llm.example:443/v1/hello
//	agent say=hello write=/work/x:text sleep=30s exit=42
//
// It is no part of sandplan: it knows nothing of its sandbox but what it finds out by trying.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// stop ends the program with a code before its last step.
type stop int

func (s stop) Error() string { return fmt.Sprintf("exit %d", int(s)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	d := demo{stdin: stdin, out: stdout}
	flags.StringVar(&d.vendor, "vendor", "", "URL of the vendor, called through HTTPS_PROXY")
	flags.StringVar(&d.other, "other", "example.com:443", "HOST:PORT that the proxy must refuse")
	flags.StringVar(&d.direct, "direct", "1.1.1.1:443", "ADDRESS:PORT that must not be reachable")
	flags.StringVar(&d.hosts, "hosts", "", "comma-separated ADDRESS:PORT of the host, besides those it guesses")
	flags.StringVar(&d.expect, "expect", "", "read-only or writable: exit 1 when the worktree is not")
	flags.StringVar(&d.worktree, "worktree", "/work", "directory to read and to write")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	list := flags.Args()
	if len(list) == 0 {
		list = []string{"demo"}
	}
	w := &worker{stdin: stdin, out: stdout, err: stderr, demo: d}
	for _, step := range list {
		name, value, _ := strings.Cut(step, "=")
		do, ok := steps[name]
		if !ok {
			fmt.Fprintf(stderr, "agent: unknown step %q; steps: %s\n", name, strings.Join(stepNames(), ", "))
			return 2
		}
		err := do(w, value)
		if code, ok := err.(stop); ok {
			return int(code)
		}
		if err != nil {
			fmt.Fprintf(stderr, "agent: %s: %v\n", step, err)
			return 1
		}
	}
	return 0
}
