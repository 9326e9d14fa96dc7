// Command benchproxy compares sandplan's proxy with what people use instead, on loopback and in one run:
// squid and tinyproxy as Debian has them, and two bare Go relays, one that copies and one that splices.
// Every figure is a ratio to a direct connection that was measured right beside it, since clients,
// proxies and server share one machine; each is the median of several short rounds, and each goal is held
// against the median of the ratios within the rounds.
//
// Every tunnel carries a real TLS hello and an answer to it, so that sandplan's proxy does all that it
// does in earnest. It is the built binary, under its real protocol, with its log read.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// options are what can be made shorter or longer.
type options struct {
	sandplan string
	rounds   int
	slice    time.Duration
	emfile   time.Duration
	patience time.Duration
	rows     string
	ways     string
}

func main() {
	var o options
	role := flag.String("role", "", "what this process is: server, copy, splice; for this program itself")
	address := flag.String("address", "", "where a server or a relay listens")
	flag.StringVar(&o.sandplan, "sandplan", "bin/sandplan", "the built binary")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each figure is taken")
	flag.DurationVar(&o.slice, "slice", 400*time.Millisecond, "how long one takes")
	flag.DurationVar(&o.emfile, "emfile", time.Minute, "how long the proxy is left without descriptors")
	flag.DurationVar(&o.patience, "patience", 5*time.Minute, "how long in all to wait for other programs, and to take figures again that they disturbed")
	flag.StringVar(&o.rows, "rows", "", "only the rows that begin with this")
	flag.StringVar(&o.ways, "ways", "", "only the contenders whose name has this in it, the direct way and sandplan always")
	flag.Parse()
	var err error
	switch *role {
	case "":
		code, done, nerr := inOwnNetwork()
		if err = nerr; err != nil {
			break
		}
		if !done {
			var met bool
			if met, err = bench(o); err == nil && !met {
				code = 1
			}
		}
		if err == nil {
			os.Exit(code)
		}
	case "server":
		err = serve(*address, answer)
	case "copy":
		err = serve(*address, relay(plainCopy))
	case "splice":
		err = serve(*address, relay(splice))
	default:
		err = fmt.Errorf("no role %q", *role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchproxy:", err)
		os.Exit(2)
	}
}

func bench(o options) (met bool, err error) {
	w, err := startWorld(o)
	if err != nil {
		return false, err
	}
	defer w.stop()
	var t table
	for _, m := range []struct {
		row     string
		measure func(*world, options, *table) error
	}{{"new tunnels", rates}, {"round trip", latencies}, {"throughput", throughputs}, {"idle", idles}, {"start", starts}, {"share", starved}} {
		if !strings.HasPrefix(m.row, o.rows) {
			continue
		}
		if err := m.measure(w, o, &t); err != nil {
			return false, err
		}
	}
	met = t.report(os.Stdout)
	versions(os.Stdout, o)
	return met, nil
}
