package dockertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

var recordFlag = flag.Bool("record", false, "record what the engine at hand answers, into testdata")

// TestRecord writes a recording of the engine at hand, with -record.
func TestRecord(t *testing.T) {
	if !*recordFlag {
		return
	}
	r := record(t)
	parts := strings.SplitN(r.Engine, ".", 3)
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", parts[0]+"."+parts[1]+".json"), buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFidelity makes every call of a recording at a fake of that release, in the same order, and compares
// the answers. What was volatile in the recording stands for whatever the fake says in its place, and for
// the same every time.
func TestFidelity(t *testing.T) {
	for _, release := range []string{"20.10", "26.1", "28.5"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata", release+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var r recording
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.UseNumber()
			if err := dec.Decode(&r); err != nil {
				t.Fatal(err)
			}
			replay(t, release, r)
		})
	}
}

func replay(t *testing.T, release string, r recording) {
	f := dockertest.NewFake(t, dockertest.FakeOptions{Release: release})
	for _, i := range r.Images {
		f.AddImage(i.Inspect.(map[string]any), i.Files...)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", f.Socket)
		}}}
	defer client.CloseIdleConnections()
	names := &naming{ids: map[string]string{}, names: map[string]string{}, scrub: newScrubber()}
	for i, e := range r.Exchanges {
		method, uri, _ := strings.Cut(e.Call, " ")
		path, query, _ := strings.Cut(names.resolve(uri), "?")
		if query != "" {
			path += "?" + escapeQuery(query)
		}
		var body []byte
		if e.Body != nil {
			body = []byte(names.resolve(compact(e.Body)))
		}
		status, answer, err := send(client, method, "/v"+r.API+path, body)
		if err != nil {
			t.Fatal(err)
		}
		got := names.scrub.plain(answer)
		if status != e.Status {
			t.Errorf("call %d, %s: status %d, recorded %d; %.300s", i, e.Call, status, e.Status, answer)
		}
		if status >= 400 { // which of several objects a refusal names is up to the engine
			e.Answer, got = withoutIDs(e.Answer), withoutIDs(got)
		}
		for _, difference := range names.compare("", e.Answer, got) {
			t.Errorf("call %d, %.120s: %s", i, e.Call, difference)
		}
	}
	replayedEvents(t, client, r, names)
}

// replayedEvents compares what was told about each object, in its order. Engines tell about several
// objects in any order.
func replayedEvents(t *testing.T, client *http.Client, r recording, names *naming) {
	_, raw, err := send(client, http.MethodGet, "/v"+r.API+"/events?since=0&until=9999999999", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Type, Action string
			Actor        struct{ ID string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got[e.Actor.ID] = append(got[e.Actor.ID], e.Type+" "+e.Action)
	}
	want := map[string][]string{}
	for _, e := range r.Events {
		e := e.(map[string]any)
		// Engines tell of volumes at every mount, and of each time that somebody reads files.
		if e["Type"] == "volume" || e["Action"] == "archive-path" {
			continue
		}
		id := names.resolve(e["ID"].(string))
		want[id] = append(want[id], fmt.Sprint(e["Type"], " ", e["Action"]))
	}
	for _, id := range sortedNames(want) {
		if diff := cmp.Diff(want[id], got[id]); diff != "" && !strings.HasPrefix(id, "{") {
			t.Errorf("events of %s (-recorded +fake):\n%s", id, diff)
		}
	}
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
