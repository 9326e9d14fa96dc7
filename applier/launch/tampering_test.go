package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

// TestRealTampering changes one thing behind sandplan's back, and then runs: it must refuse, and the
// agent must never have been started.
func TestRealTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, map[string][]string{"job": {"say=ran"}}, nil)
	w.apply()
	const agent, proxy = "invocation.job.agent", "invocation.job.proxy"
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		tamper func(t *testing.T) error
		want   string
	}{
		{"network connect", func(*testing.T) error {
			return w.cli.NetworkConnect(ctx, "bridge", w.container(agent).ID, nil)
		}, "bridge"},
		{"update of the agent", func(*testing.T) error {
			_, err := w.cli.ContainerUpdate(ctx, w.container(agent).ID, container.UpdateConfig{Resources: container.Resources{Memory: 8 << 30, MemorySwap: 8 << 30}})
			return err
		}, "memory"},
		{"network replaced under its name", func(*testing.T) error {
			old, err := w.cli.NetworkInspect(ctx, w.network("invocation.job.network"), network.InspectOptions{})
			if err != nil {
				return err
			}
			if err := w.cli.NetworkRemove(ctx, old.ID); err != nil {
				return err
			}
			_, err = w.cli.NetworkCreate(ctx, old.Name, network.CreateOptions{Driver: old.Driver, IPAM: &old.IPAM, Options: old.Options, Labels: old.Labels})
			return err
		}, "Internal"},
		{"proxy replaced under its name", func(*testing.T) error {
			old, err := w.cli.ContainerInspect(ctx, w.container(proxy).ID)
			if err != nil {
				return err
			}
			if err := w.cli.ContainerRemove(ctx, old.ID, container.RemoveOptions{}); err != nil {
				return err
			}
			old.Config.Cmd = append(old.Config.Cmd[:1:1], "{}")
			_, err = w.cli.ContainerCreate(ctx, old.Config, old.HostConfig, nil, nil, strings.TrimPrefix(old.Name, "/"))
			return err
		}, "proxy"},
		{"shim volume written", func(t *testing.T) error { return w.writeShim(t) }, "sandplan.shim"},
		{"agent started by hand", func(*testing.T) error {
			return w.cli.ContainerStart(ctx, w.container(agent).ID, container.StartOptions{})
		}, "started outside a run"},
		{"pruned", func(*testing.T) error {
			return w.cli.ContainerRemove(ctx, w.container(agent).ID, container.RemoveOptions{})
		}, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.tamper(t); err != nil {
				t.Fatal(err)
			}
			e := w.sandplan("run", "invocation.job")
			if e.code != 125 || strings.Contains(e.stdout, "ran") {
				t.Errorf("exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
			}
			if !strings.Contains(e.stderr, c.want) || !strings.HasPrefix(e.last(), "sandplan:") {
				t.Errorf("the refusal does not name %q:\n%s", c.want, e.stderr)
			}
			switch c.name {
			case "pruned":
			case "agent started by hand":
				took := within(t, 7*time.Second, "its first process ends, with nobody at its standard input", w.stopped(w.container(agent).ID))
				t.Logf("ended after %s", took)
			default:
				if w.everRan(w.container(agent).ID) {
					t.Error("the agent was started")
				}
			}
			w.must("apply", "-auto-approve")
			if e := w.sandplan("run", "invocation.job"); e.code != 0 || e.stdout != "ran\n" || !strings.Contains(e.stderr, "Armed again") {
				t.Errorf("after apply: exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
			}
		})
	}
	t.Run("run -apply", func(t *testing.T) {
		if err := w.cli.NetworkConnect(ctx, "bridge", w.container(agent).ID, nil); err != nil {
			t.Fatal(err)
		}
		if e := w.sandplan("run", "-apply", "invocation.job"); e.code != 0 || e.stdout != "ran\n" {
			t.Errorf("exit code %d, stdout %q\n%s", e.code, e.stdout, e.stderr)
		}
	})
}

func (w *world) network(address string) string {
	w.t.Helper()
	list, err := w.cli.NetworkList(w.t.Context(), network.ListOptions{Filters: w.filter()})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range list {
		if n.Labels["dev.sandplan.address"] == address {
			return n.ID
		}
	}
	w.t.Fatalf("no network at %s", address)
	return ""
}

// writeShim changes one byte of the binary that agents start with, on the host's file system.
func (w *world) writeShim(t *testing.T) error {
	t.Helper()
	agent, err := w.cli.ContainerInspect(t.Context(), w.container("invocation.job.agent").ID)
	if err != nil {
		return err
	}
	for _, m := range agent.HostConfig.Mounts {
		if m.Target != "/.sandplan" {
			continue
		}
		v, err := w.cli.VolumeInspect(t.Context(), m.Source)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(v.Mountpoint, "sandplan"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("x")
		return joinClose(err, f)
	}
	return fmt.Errorf("the agent has no shim among %d mounts", len(agent.HostConfig.Mounts))
}

func joinClose(err error, f *os.File) error {
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
