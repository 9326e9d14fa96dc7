package docker

import (
	"net/http"
	"time"
)

// Call is one call to the engine as somebody sees it who looks for what went wrong. What was sent and what
// came back is not in it: prompts, credentials and environments pass there.
type Call struct {
	Method string
	Path   string // with its query, which names objects and labels and no content
	Status int    // 0 when there was no answer
	Took   time.Duration
	Err    error
}

// told tells of each call when its answer begins.
type told struct {
	next http.RoundTripper
	to   func(Call)
	now  func() time.Time
}

func (t told) RoundTrip(req *http.Request) (*http.Response, error) {
	began := t.now()
	resp, err := t.next.RoundTrip(req)
	c := Call{Method: req.Method, Path: req.URL.RequestURI(), Took: t.now().Sub(began), Err: err}
	if resp != nil {
		c.Status = resp.StatusCode
	}
	t.to(c)
	return resp, err
}
