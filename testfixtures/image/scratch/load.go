package scratch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Save writes the image as docker load reads it.
func Save(w io.Writer, tag string, img v1.Image) error {
	ref, err := name.NewTag(tag, name.WithDefaultRegistry(""))
	if err != nil {
		return err
	}
	return tarball.Write(ref, img, w)
}

// Load gives the image to the engine behind a unix socket and returns its ID. It speaks HTTP itself:
// fixtures know nothing of the Docker SDK.
func Load(ctx context.Context, socket, tag string, img v1.Image) (string, error) {
	id, err := img.ConfigName()
	if err != nil {
		return "", err
	}
	body, w := io.Pipe()
	go func() { w.CloseWithError(Save(w, tag, img)) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/images/load?quiet=1", body)
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-tar")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("load %s: %w", tag, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return "", fmt.Errorf("load %s: the engine answers %s: %s", tag, resp.Status, b)
	}
	return id.String(), loadError(resp.Body)
}

// loadError reads the engine's messages: it answers 200 before it begins to read.
func loadError(body io.Reader) error {
	dec := json.NewDecoder(body)
	for {
		var msg struct {
			Error string `json:"error"`
		}
		switch err := dec.Decode(&msg); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case msg.Error != "":
			return errors.New(msg.Error)
		}
	}
}
