// Command probe is the command of an agent in a test that looks at the host for what comes of it. It tries
// what a sandbox must not let happen, prints one line for each attempt, and says nothing of whether that
// is right: whoever started it knows.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" { // of the count of processes
		time.Sleep(time.Hour)
	}
	hosts := flag.String("hosts", "", "addresses of the host, with commas")
	tcp := flag.Int("tcp", 0, "port that the host listens on")
	udp := flag.Int("udp", 0, "port that the host listens on")
	word := flag.String("word", "", "what is sent and asked for, to be known again")
	flag.Parse()
	fmt.Println("up")
	n := network{hosts: strings.Split(*hosts, ","), tcp: *tcp, udp: *udp, word: *word, under: &sync.WaitGroup{}}
	n.reach()
	n.resolve()
	readProcess()
	calls()
	files()
	count()
	wait("/work/counted")
	fmt.Println("done: yes")
	for range 1200 { // while the host mounts something there, which is to end this
		list("mounted", "/work/sub")
		time.Sleep(50 * time.Millisecond)
	}
}

func say(check string, err error) { fmt.Printf("%s: %s\n", check, cause(err)) }

// cause is the error's number in words, or what it says, in one line.
func cause(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// wait waits until the host has made a file.
func wait(name string) {
	for range 1200 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Printf("wait: %s never came\n", name)
}

func list(check, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		say(check, err)
		return
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	fmt.Printf("%s: %q\n", check, names)
}

// count starts processes until no more can be started, and leaves them.
func count() {
	for n := 0; ; n++ {
		if err := exec.Command("/proc/self/exe", "child").Start(); err != nil || n > 4096 {
			fmt.Printf("processes: %d, then %s\n", n, cause(err))
			return
		}
	}
}
