package docker

import (
	"fmt"
	"net/http"
	"regexp"
)

// reads are all calls that an audit may make. Not every GET only reads: attaching through a websocket is one
// that writes, and so are the calls of engines yet to come. What is not here is not sent.
var reads = regexp.MustCompile(`^(?:/v[0-9.]+)?/(?:_ping|info|version|events|networks(?:/[^/]+)?|volumes(?:/[^/]+)?|` +
	`containers/json|containers/[^/]+/(?:json|changes|archive)|images/json|images/.+/json)$`)

// readOnly is a transport that no writing call passes: an engine that was opened with it cannot change
// anything, whatever the code above it does.
type readOnly struct{ next http.RoundTripper }

func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	reading := req.Method == http.MethodGet || req.Method == http.MethodHead
	if !reading || !reads.MatchString(req.URL.Path) {
		if req.Body != nil {
			_ = req.Body.Close() // as RoundTrip promises
		}
		return nil, fmt.Errorf("this command only reads, and %s %s may write: it was not sent", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}
