package docker

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// TestHelperSetsTheBridge goes the way of a user who is not root: through a container.
func TestHelperSetsTheBridge(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	withProgram(t, e, helperProgram)
	a := testInv.With(planner.PartNetwork)
	d := testNetwork(s, a, 80)
	want := resourceOf(t, e, planner.KindNetwork, a, d)
	created(t, e, s, want, d)
	ip(t, "link", "set", "dev", d.Bridge, "mtu", "1400", "down")
	paths := []string{"Bridge.mtu", "Bridge.up"}
	for _, set := range bridgeSettings() {
		other := map[string]string{"0": "1", "1": "0"}[set.value]
		if err := os.WriteFile(set.path(d.Bridge), []byte(other), 0); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, "Bridge."+set.name)
	}
	if got := differsAt(t, e, s, want); got != sorted(strings.Join(paths, " ")) {
		t.Fatalf("before: differs at %q", got)
	}
	if err := e.setBridgeFromHelper(t.Context(), d.Bridge, identity{scope: s, address: a}); err != nil {
		t.Fatal(err)
	}
	if got := differsAt(t, e, s, want); got != "" {
		t.Errorf("after the helper it differs at %q", got)
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil || len(snap.Duplicates) != 0 {
		t.Errorf("the helper was left behind: %+v, %v", snap.Duplicates, err)
	}
	if err := e.setBridgeFromHelper(t.Context(), "sp-000000000000", identity{scope: s, address: a}); err == nil ||
		!strings.Contains(err.Error(), "ended with 1") || !strings.Contains(err.Error(), "sp-000000000000") {
		t.Errorf("a bridge that is not there: %v", err)
	}
}

// TestHelperLeftBehind is what a crash in the middle leaves: a labelled container.
func TestHelperLeftBehind(t *testing.T) {
	e := openEngine(t)
	s := testScope(t, e)
	img := withProgram(t, e, helperProgram)
	if err := img.load(t.Context(), e.cli); err != nil {
		t.Fatal(err)
	}
	a := testInv.With(planner.PartNetwork)
	labels, err := e.helperLabels(s, a)
	if err != nil {
		t.Fatal(err)
	}
	labels[labelLockStart] = "1" // this process's number belonged to another one then
	config, host := helperConfig(img.ID, bridgeName(s, a), labels)
	made, err := e.cli.ContainerCreate(t.Context(), config, host, nil, nil, unique("dc-left-behind"))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := e.Observe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Duplicates) != 1 || snap.Duplicates[0].ID != made.ID || snap.Duplicates[0].Addr != a || len(scoped(snap)) != 0 {
		t.Fatalf("objects %+v, duplicates %+v, want the helper among the latter", scoped(snap), snap.Duplicates)
	}
	if err := e.Delete(t.Context(), snap.Duplicates[0]); err != nil {
		t.Error(err)
	}
	if snap, err = e.Observe(t.Context(), s); err != nil || len(snap.Duplicates) != 0 {
		t.Errorf("after its removal: %+v, %v", snap.Duplicates, err)
	}
}

// TestHelperAtWork looks while somebody else's apply has a helper: it is no object too many before it has been there
// for longer than any helper is.
func TestHelperAtWork(t *testing.T) {
	t.Parallel()
	direct := openEngine(t)
	s := testScope(t, direct)
	img := bareImage(t, direct)
	a := testInv.With(planner.PartNetwork)
	labels, err := direct.helperLabels(s, a)
	if err != nil {
		t.Fatal(err)
	}
	config, host := helperConfig(img.ID, bridgeName(s, a), labels)
	made, err := direct.cli.ContainerCreate(t.Context(), config, host, nil, nil, unique("dc-at-work"))
	if err != nil {
		t.Fatal(err)
	}
	p := dockertest.NewProxy(t, dockertest.Socket(t))
	e := openSocket(t, p.Socket)
	e.passing = time.Millisecond
	asked := "^GET /containers/" + made.ID + "/json$"
	if snap, err := e.Observe(t.Context(), s); err != nil || len(snap.Duplicates) != 1 || p.Count(asked) != leastLooks {
		t.Errorf("one that stays: %+v, %v, after %d looks", snap.Duplicates, err, p.Count(asked))
	}
	e.passing = time.Minute
	go func() {
		for p.Count(asked) < leastLooks+2 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		_ = removeContainer(t.Context(), direct, planner.Object{ID: made.ID})
	}()
	if snap, err := e.Observe(t.Context(), s); err != nil || len(snap.Duplicates) != 0 {
		t.Errorf("one that is gone a moment later: %+v, %v, after %d looks", snap.Duplicates, err, p.Count(asked))
	}
}

func TestBridgeOrderRefused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"nothing", nil, "takes one JSON argument"},
		{"no JSON", []string{"x"}, "not JSON"},
		{"another interface", []string{`{"bridge":"docker0","settings":{"arp_ignore":"1"}}`}, `"docker0" is not a bridge of sandplan's`},
		{"out of the directory", []string{`{"bridge":"../../x","settings":{}}`}, "is not a bridge"},
		{"another setting", []string{`{"bridge":"sp-000000000000","settings":{"forwarding":"1"}}`}, "forwarding=1 is not a setting"},
		{"another value", []string{`{"bridge":"sp-000000000000","settings":{"rp_filter":"0"}}`}, "rp_filter=0 is not a setting"},
	} {
		var stderr bytes.Buffer
		if code := BridgeMain(tc.args, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%s: exit %d, %q, want %q", tc.reason, code, stderr.String(), tc.want)
		}
	}
}
