package launch_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// stopped reports whether a container does not run, or is not there any more. That is asked again and
// again until it is so, and therefore of the engine itself: to start the docker command each time would
// take more of the machine than what is waited for.
func (w *world) stopped(id string) func() bool {
	socket := ""
	if w.own != nil {
		socket = w.own.socket()
	} else {
		socket = dockertest.Socket(w.t)
	}
	engine := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	return func() bool {
		resp, err := engine.Get("http://docker/v1.41/containers/" + id + "/json")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var c struct{ State struct{ Running bool } }
		return resp.StatusCode == http.StatusNotFound ||
			resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&c) == nil && !c.State.Running
	}
}
