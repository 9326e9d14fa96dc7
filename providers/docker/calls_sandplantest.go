//go:build sandplantest

package docker

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// observeCalls counts calls to the engine, for the tests that end the process between any two of
// them. Only binaries built with the tag sandplantest have it.
//
// SANDPLAN_TEST_KILL_AT=n kills the process once call n has been answered, with nothing deferred or
// flushed, as kill -9 would. SANDPLAN_TEST_CALLS=FILE keeps the number of calls in FILE.
func observeCalls(next http.RoundTripper, getenv func(string) string) http.RoundTripper {
	c := &callCounter{next: next, file: getenv("SANDPLAN_TEST_CALLS")}
	if n, err := strconv.ParseInt(getenv("SANDPLAN_TEST_KILL_AT"), 10, 64); err == nil {
		c.killAt = n
	}
	return c
}

type callCounter struct {
	next   http.RoundTripper
	killAt int64
	file   string

	mu    sync.Mutex
	calls int64
}

func (c *callCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	c.mu.Lock() // the file must not end with a smaller number than the last
	defer c.mu.Unlock()
	c.calls++
	if c.file != "" {
		// A test that finds no number fails by itself; there is nobody to tell here.
		_ = os.WriteFile(c.file, []byte(strconv.FormatInt(c.calls, 10)+"\n"), 0o600)
	}
	if c.calls == c.killAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return resp, err
}
