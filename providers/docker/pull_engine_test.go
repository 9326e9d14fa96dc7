package docker

import (
	"context"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
	dockerregistry "github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/testfixtures/image/scratch"
)

// A registry on this machine, which the engine speaks plain HTTP to, and which asks for a password.
func TestApplyPullsAPinnedImage(t *testing.T) {
	w := newWorld(t)
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			rw.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(rw, "who are you", http.StatusUnauthorized)
			return
		}
		store.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref := host + "/team/agent:1"

	img, err := scratch.Image(scratch.Spec{Arch: w.engine.Info().Arch, Config: v1.Config{Env: []string{"PATH=/pulled"}},
		Entries: []scratch.Entry{{Path: "/agent", Mode: 0o755, Content: []byte(host)}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cli := t.Context(), w.engine.cli
	id, err := scratch.Load(ctx, w.engine.Info().Socket, ref, img)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeOwnImage(context.Background(), cli, id) })
	auth, err := dockerregistry.EncodeAuthConfig(dockerregistry.AuthConfig{Username: "ann", Password: "s3cret", ServerAddress: host})
	if err != nil {
		t.Fatal(err)
	}
	body, err := cli.ImagePush(ctx, ref, image.PushOptions{RegistryAuth: auth})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadError(body); err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	pin, err := w.engine.Pin(ctx, ref, true)
	if err != nil || pin.Digest == "" || pin.IDs[0] != id {
		t.Fatalf("pin %+v, %v", pin, err)
	}
	// By its tag and by its digest: only then is it gone.
	for _, name := range []string{ref, host + "/team/agent@" + pin.Digest} {
		_, _ = cli.ImageRemove(ctx, name, image.RemoveOptions{})
	}
	if _, err := w.engine.imageAt(ctx, id); err == nil {
		t.Fatal("the image is still there")
	}

	s := w.load(strings.Replace(w.config("10.231.112.0/20", w.one("planning")), w.agent, ref, 1))
	s.Lock.Images = []hclspec.LockImage{pin}
	c := w.compile(s)
	const addr planner.Address = "vendor.local.image"
	if _, there := func() (planner.Object, bool) { snap := c.Complete(w.observe(ctx)); return snap.Object(addr) }(); there {
		t.Error("an image that is not there is an object")
	}
	resource := c.resource(addr)

	if o, err := c.Create(ctx, resource, nil); err == nil || !strings.Contains(err.Error(), "docker pull "+host+"/team/agent@sha256:") {
		t.Errorf("pulled without a password: %+v, %v", o, err)
	}
	config := t.TempDir()
	w.engine.options.Getenv = func(name string) string {
		if name == "DOCKER_CONFIG" {
			return config
		}
		return ""
	}
	write(t, filepath.Join(config, "config.json"), `{"credHelpers":{"`+host+`":"vault"}}`)
	if o, err := c.Create(ctx, resource, nil); err == nil || !strings.Contains(err.Error(), `helper "vault"`) {
		t.Errorf("pulled without the helper: %+v, %v", o, err)
	}
	write(t, filepath.Join(config, "config.json"), `{"auths":{"`+host+`":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("ann:s3cret"))+`"}}}`)
	o, err := c.Create(ctx, resource, nil)
	if err != nil || o.ID != id || o.Addr != addr {
		t.Fatalf("pull: %+v, %v", o, err)
	}

	// Now it is there, everything is as it was planned when it was not.
	again := w.compile(s)
	for i, r := range again.Resources() {
		if was := c.Resources()[i]; was.Digest != r.Digest {
			t.Errorf("%s is another one now: %v", r.Addr, planner.Compare(was.Fields, r.Fields))
		}
	}
	snap := again.Complete(w.observe(ctx))
	if seen, ok := snap.Object(addr); !ok || seen.ID != id || len(planner.Compare(resource.Fields, seen.Observed)) != 0 {
		t.Errorf("after the pull: %+v", seen)
	}
}

// An image of ours that is missing when something is made from it is loaded then, and stays as long
// as something is made from it.
func TestOwnImageComesAndGoes(t *testing.T) {
	w := newWorld(t)
	s := w.load(w.config("10.231.112.0/20", w.one("planning")))
	c := w.compile(s)
	ctx := t.Context()
	own, err := w.engine.own()
	if err != nil {
		t.Fatal(err)
	}
	there := func() bool { _, err := w.engine.imageAt(ctx, own.ID); return err == nil }
	if there() {
		t.Fatal("the image of this very binary is there already")
	}
	shim, err := c.Create(ctx, c.resource(planner.AddrShim), nil)
	if err != nil || !there() {
		t.Fatalf("the shim volume without its image: %v, image there: %v", err, there())
	}
	if err := removeOwnImage(ctx, w.engine.cli, own.ID); err != nil || !there() {
		t.Errorf("an image in use: %v, still there: %v", err, there())
	}
	if err := w.engine.Delete(ctx, shim); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Delete(ctx, planner.Object{Addr: planner.AddrImage, Kind: planner.KindImage, ID: own.ID}); err != nil || there() {
		t.Errorf("an image that nothing uses: %v, still there: %v", err, there())
	}
	if err := removeOwnImage(ctx, w.engine.cli, own.ID); err != nil {
		t.Errorf("an image that is gone already: %v", err)
	}
}
