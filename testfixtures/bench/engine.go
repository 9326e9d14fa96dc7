package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// bareEngine speaks to the engine's API with nothing between: net/http over the unix socket.
type bareEngine struct {
	socket string
	client *http.Client
}

func newBareEngine(socket string) *bareEngine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	// Without compression, as the engine's own client asks: gzip makes the archive ten times as slow.
	return &bareEngine{socket: socket, client: &http.Client{
		Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64, DisableCompression: true},
	}}
}

// call does one request and returns the body of the answer; anything above 299 is an error.
func (e *bareEngine) call(method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, "http://engine"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode > 299 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// barePlan makes the calls that no plan can do without, as concurrently as they can be made: who the
// engine is, what it has of the project (containers, networks, volumes, images), each container in
// full, eight at a time, and the bytes of the shim. Those the engine's API has only as an archive; sandplan
// spares it where it can read the files themselves, so that a goal may be met with less than the bare calls.
func (e *bareEngine) barePlan(project string) error {
	filter := url.QueryEscape(fmt.Sprintf(`{"label":["dev.sandplan.project=%s"]}`, project))
	paths := []string{"/containers/json?all=1&filters=" + filter, "/info", "/networks?filters=" + filter, "/volumes?filters=" + filter, "/images/json"}
	lists := make([][]byte, len(paths))
	err := concurrently(len(paths), len(paths), func(i int) (err error) {
		lists[i], err = e.call("GET", paths[i], "", nil)
		return err
	})
	if err != nil {
		return err
	}
	var containers []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if err := json.Unmarshal(lists[0], &containers); err != nil {
		return err
	}
	// The bytes take longest: they are asked for first.
	isSeed := func(i int) bool { return containers[i].Labels["dev.sandplan.kind"] == "shim-seed" }
	for i := range containers {
		if isSeed(i) {
			containers[0], containers[i] = containers[i], containers[0]
		}
	}
	hashed := false
	err = concurrently(8, len(containers), func(i int) error {
		c := containers[i]
		if isSeed(i) {
			hashed = true
			content, err := e.call("GET", "/containers/"+c.ID+"/archive?path=/.sandplan/sandplan", "", nil)
			sha256.Sum256(content)
			return err
		}
		_, err := e.call("GET", "/containers/"+c.ID+"/json", "", nil)
		return err
	})
	if err == nil && !hashed {
		return fmt.Errorf("project %s has no container that holds the shim", project)
	}
	return err
}

// concurrently calls f for 0 … n-1, at most limit at a time, and returns the first error.
func concurrently(limit, n int, f func(i int) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
		slots = make(chan struct{}, limit)
	)
	for i := range n {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			if err := f(i); err != nil {
				once.Do(func() { first = err })
			}
		}()
	}
	wg.Wait()
	return first
}
