//go:build !sandplantest

package docker

import "net/http"

// observeCalls does nothing in the product; see calls_sandplantest.go.
func observeCalls(next http.RoundTripper, _ func(string) string) http.RoundTripper { return next }
