package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// post makes a call as anybody may make it, past the client and its courtesies.
func (e *Engine) post(ctx context.Context, path string, query url.Values, body any) (tree, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "http", Host: "docker", Path: "/v" + e.info.API + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	var d net.Dialer
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", e.info.Socket)
	}}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if raw, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("POST %s: %s: %s", path, resp.Status, raw)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	return decodeTree(raw)
}

// containerMutant is a container that was made, with the request that made it.
func containerMutant(t *testing.T, w *world, c *Compiled, ids planner.IDs, addr planner.Address) *mutant {
	t.Helper()
	want := c.resource(addr)
	k, err := w.engine.kind(want.Kind)
	if err != nil {
		t.Fatal(err)
	}
	spec := c.desired[addr].(containerSpec)
	config := spec.config
	config.Labels = maps.Clone(config.Labels)
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	maps.Copy(config.Labels, labelsFor(w.scope(), w.engine.options.Origin, want))
	host := spec.host
	mode, err := resolveRef(string(host.NetworkMode), ids)
	if err != nil {
		t.Fatal(err)
	}
	request := tree{"Name": spec.name, "Config": map[string]any(treeOf(config)), "HostConfig": map[string]any(treeOf(host))}
	request = putAt(map[string]any(request), mustParsePath("HostConfig.NetworkMode"), func(any) any { return mode }).(map[string]any)
	networks := map[string]any{}
	for _, e := range spec.endpoints {
		networks[e.role] = map[string]any(treeOf(e.settings))
	}
	if len(networks) == 0 {
		networks[roleNone] = map[string]any(treeOf(network.EndpointSettings{}))
	}
	request["NetworkSettings"] = map[string]any{"Networks": networks}
	m := &mutant{engine: w.engine, kind: k, want: want, all: c.Resources(), base: c.Complete(w.observe(t.Context())), id: ids[addr],
		request: request, shape: shapeOf(want.Kind), replaced: []planner.Address{addr}, run: addr.Invocation()}
	switch want.Kind {
	case planner.KindRunner:
		m.run = addr
	case planner.KindProxy: // its agent is made last
		m.replaced = append(m.replaced, addr.Invocation().With(planner.PartAgent))
	}
	m.remake = func(t *testing.T, request tree) error { return m.remakeContainer(t, spec, ids, request) }
	m.look = func(t *testing.T) planner.Object {
		t.Helper()
		s, err := w.engine.Recheck(t.Context(), w.scope(), []planner.Address{addr})
		if err != nil {
			t.Fatal(err)
		}
		o, ok := s.Object(addr)
		if !ok {
			t.Fatalf("%s is not seen", addr)
		}
		return o
	}
	var pristine []byte
	m.show = func(t *testing.T, edit func(tree) tree) planner.Object {
		t.Helper()
		if pristine == nil {
			if err := m.remake(t, m.request); err != nil {
				t.Fatal(err)
			}
			if pristine, err = w.engine.get(t.Context(), "/containers/"+m.id+"/json", nil); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := decodeTree(pristine)
		if err != nil {
			t.Fatal(err)
		}
		l := &look{engine: w.engine, scope: w.scope(), refs: map[string]planner.Address{}}
		for a, id := range ids {
			l.refs[id] = a
		}
		roles(raw, l.rolesOf(addr))
		raw = edit(raw)
		roles(raw, map[string]string{roleUplink: objectName(w.scope(), planner.AddrUplink),
			roleNetwork: objectName(w.scope(), addr.Invocation().With(planner.PartNetwork))})
		// As a reply, along rows that remember the replies of all edits before.
		text, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		r, err := k.table.decode(text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := l.objectOf(t.Context(), k, r)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	return m
}

// shapeOf is the type of everything that can be asked for of a container.
func shapeOf(kind planner.Kind) reflect.Type {
	type endpoints struct {
		Networks map[string]network.EndpointSettings
	}
	if kind == planner.KindProxy {
		return reflect.TypeFor[struct {
			Config          withArgument[egress.Config]
			HostConfig      container.HostConfig
			NetworkSettings endpoints
		}]()
	}
	return reflect.TypeFor[struct {
		Config          withArgument[shim.Config]
		HostConfig      container.HostConfig
		NetworkSettings endpoints
	}]()
}

// withArgument is a Config whose command line is the argument of one of sandplan's programs.
type withArgument[A any] struct {
	Cmd []A
	container.Config
}

// roles renames the networks of a container in the engine's answer.
func roles(raw tree, names map[string]string) {
	settings := raw["NetworkSettings"].(map[string]any)
	out := map[string]any{}
	for name, endpoint := range settings["Networks"].(map[string]any) {
		if as := names[name]; as != "" {
			name = as
		}
		out[name] = endpoint
	}
	settings["Networks"] = out
}

// remakeContainer removes the container and makes it as the request says: created on the first network,
// connected to the second.
func (m *mutant) remakeContainer(t *testing.T, spec containerSpec, ids planner.IDs, request tree) error {
	t.Helper()
	ctx := t.Context()
	if m.id != "" {
		if err := m.engine.Delete(ctx, planner.Object{Kind: m.want.Kind, ID: m.id}); err != nil {
			t.Fatal(err)
		}
	}
	m.id = ""
	body := maps.Clone(request["Config"].(map[string]any))
	body["HostConfig"] = request["HostConfig"]
	host := request["HostConfig"].(map[string]any)
	networks := request["NetworkSettings"].(map[string]any)["Networks"].(map[string]any)
	first := roleNone
	if len(spec.endpoints) > 0 {
		first = spec.endpoints[0].role
	}
	if endpoint := networks[first]; endpoint != nil {
		body["NetworkingConfig"] = map[string]any{"EndpointsConfig": map[string]any{fmt.Sprint(host["NetworkMode"]): endpoint}}
	}
	query := url.Values{"name": {request["Name"].(string)}}
	if platform, ok := request["Platform"].(string); ok {
		query.Set("platform", platform)
	}
	for _, ours := range []string{"Path", "Args", "AppArmorProfile", "MountLabel", "ProcessLabel"} {
		if v, ok := request[ours]; ok {
			body[ours] = v // what inspect shows beside Config, sent as if it could be asked for
		}
	}
	made, err := m.engine.post(ctx, "/containers/create", query, body)
	if err != nil {
		return err
	}
	m.id = treeID(made)
	for i := 1; i < len(spec.endpoints); i++ {
		e := spec.endpoints[i]
		if _, err := m.engine.post(ctx, "/networks/"+ids[e.network]+"/connect", nil,
			map[string]any{"Container": m.id, "EndpointConfig": networks[e.role]}); err != nil {
			_ = m.engine.Delete(ctx, planner.Object{Kind: m.want.Kind, ID: m.id})
			m.id = ""
			return err
		}
	}
	return nil
}

// censusWorld is a configuration with something in every row: an image that sets all that can be
// inherited, a writable worktree that holds its own configuration, a runner, a prompt, limits.
func censusWorld(t *testing.T, pool string) (*world, *Compiled, planner.IDs) {
	t.Helper()
	w := newWorld(t)
	w.dir = filepath.Join(w.repo, "config")
	mkdir(t, w.dir)
	s := w.load(w.config(pool, fmt.Sprintf(`
phase "fix" {
  runner "test" {
    argv  = ["/agent", "test"]
    image = %q
  }
}

invocation "one" {
  vendor   = vendor.local
  phase    = phase.fix
  worktree = %q
  prompt   = "Look around."
  user     = "1000:1000"
  timeout  = "20m"
  env      = { FOO = "mine" }

  limits {
    memory = "1GiB"
    cpus   = 1
    pids   = 100
    output = "8MiB"
    upload = "8MiB"

    download           = "1GiB"
    tunnels            = 64
    tunnels_per_second = 16
  }
}
`, w.agent, w.repo)))
	c := w.compile(s)
	return w, c, w.apply(c)
}

// TestCensusOfContainers mutates every row of an agent, a proxy and a runner.
func TestCensusOfContainers(t *testing.T) {
	t.Parallel()
	w, c, ids := censusWorld(t, "10.231.112.0/20")
	var all tally
	for _, addr := range []planner.Address{"invocation.one.agent", "invocation.one.proxy", `invocation.one.runner["test"]`} {
		t.Run(string(addr), func(t *testing.T) {
			m := containerMutant(t, w, c, ids, addr)
			if err := m.remake(t, m.request); err != nil {
				t.Fatal(err)
			}
			if got := m.paths(m.look(t)); len(got) != 0 {
				t.Fatalf("made by hand, as it should be, it differs at %q", got)
			}
			n := m.census(t, containerRecipes(t, w, addr))
			fieldsOfTomorrow(t, m)
			if err := m.remake(t, m.request); err != nil {
				t.Fatal(err)
			}
			ids[addr] = m.id
			all.add(n)
			t.Logf("%s: %s", addr, n)
		})
	}
	report(t, "containers", w.engine, all)
}

// fieldsOfTomorrow: what a newer engine shows and no row covers differs, wherever it decides over the
// container.
func fieldsOfTomorrow(t *testing.T, m *mutant) {
	t.Helper()
	role := map[planner.Kind]string{planner.KindAgent: roleNetwork, planner.KindProxy: roleUplink, planner.KindRunner: roleNone}[m.want.Kind]
	places := []string{"Config", "HostConfig", "HostConfig.LogConfig", "HostConfig.RestartPolicy", "NetworkSettings.Networks." + role,
		"NetworkSettings.Networks." + role + ".IPAMConfig"}
	if m.want.Kind != planner.KindProxy {
		places = append(places, mountPath("/work"), mountPath("/work")+".BindOptions", mountPath(toolDir), "Mounts[0]")
	}
	for _, at := range places {
		for _, value := range []string{"true", "1", `"on"`, `["x"]`, `{"a":{"b":1}}`} {
			o := m.show(t, func(raw tree) tree {
				return putAt(map[string]any(raw), mustParsePath(at+".FieldOfTomorrow"), as(value)).(map[string]any)
			})
			if got := m.paths(o); len(got) != 1 || !strings.HasPrefix(at+".FieldOfTomorrow", got[0]) && !strings.HasPrefix(got[0], at) {
				t.Errorf("%s: %s.FieldOfTomorrow is %s, and seen is %q", m.kind.name, at, value, got)
			}
			if at == "Config" && !m.refusedAndMended(t, m.paths(o)[0], o) {
				t.Errorf("%s: %s is let through", m.kind.name, at)
			}
		}
		o := m.show(t, func(raw tree) tree {
			return putAt(map[string]any(raw), mustParsePath(at+".FieldOfTomorrow"), as(`{"a":0,"b":[],"c":""}`)).(map[string]any)
		})
		if got := m.paths(o); len(got) != 0 && !strings.HasSuffix(at, "BindOptions") && at != "Mounts[0]" {
			t.Errorf("%s: %s.FieldOfTomorrow says nothing, and seen is %q", m.kind.name, at, got)
		}
	}
}

// report says what became of the rows, and which calls the engine does not take.
func report(t *testing.T, what string, e *Engine, all tally) {
	t.Helper()
	summary := fmt.Sprintf("census of %s on engine %s: %s", what, e.info.Version, all)
	t.Logf("%s\n  %s", summary, strings.Join(all.calls, "\n  "))
	// go test says nothing of what passes: `make test` prints this file at the end.
	if name := os.Getenv("SANDPLAN_CENSUS"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintln(f, summary)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if all.found+all.refused != all.rows {
		t.Errorf("%s: %d rows of %d are unaccounted for", what, all.rows-all.found-all.refused, all.rows)
	}
}
