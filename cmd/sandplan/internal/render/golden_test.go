package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/planner"
)

var update = flag.Bool("update", false, "rewrite the goldens with what is rendered now")

// outputDir is where the goldens of plain text stand, for readers as much as for tests.
const outputDir = "../../../../docs/output"

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s differs (-golden +rendered), -update rewrites it:\n%s", path, d)
	}
	for i, l := range strings.Split(got, "\n") {
		if strings.TrimRight(l, " ") != l {
			t.Errorf("line %d ends with a space: %q", i+1, l)
		}
	}
}

// example is the configuration that the goldens are about.
type example struct {
	t    *testing.T
	name string
	src  []byte
}

func readExample(t *testing.T, name string) example {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return example{t, name, src}
}

// at is the range of the first occurrence of text.
func (e example) at(text string) hcl.Range {
	e.t.Helper()
	i := strings.Index(string(e.src), text)
	if i < 0 {
		e.t.Fatalf("%s does not contain %q", e.name, text)
	}
	pos := func(n int) hcl.Pos {
		before := string(e.src[:n])
		return hcl.Pos{Line: 1 + strings.Count(before, "\n"), Column: n - strings.LastIndex(before, "\n"), Byte: n}
	}
	return hcl.Range{Filename: e.name, Start: pos(i), End: pos(i + len(text))}
}

func (e example) renderer() *Renderer {
	return &Renderer{Sources: map[string][]byte{e.name: e.src}}
}

var codeboost = planner.Scope{Project: "codeboost", Workspace: "default"}

const (
	login   = planner.Address(`invocation.login["auth"]`)
	session = planner.Address(`invocation.login["session"]`)
	tokens  = planner.Address(`invocation.login["tokens"]`)
	title   = "vendor.claude, phase.review"
)

// headline is a field that plans show; built is one that they count.
func headline(label string, v any) planner.Field {
	return planner.Field{Path: "Path." + label, Label: label, Value: planner.JSON(v), Show: planner.Headline}
}

func built(path string, v any) planner.Field {
	return planner.Field{Path: path, Value: planner.JSON(v)}
}

func (e example) attr(attr, path, decl string, v any, unit planner.Unit) planner.Field {
	at := e.at(decl)
	return planner.Field{Path: path, Attr: attr, Decl: &at, Value: planner.JSON(v), Unit: unit, Show: planner.Headline}
}

func ref(label string, a planner.Address) planner.Field {
	return planner.Field{Path: "Path." + label, Label: label, Value: planner.Ref(a), Show: planner.Headline}
}

func network(name, subnet string) []planner.Field {
	arp := planner.Field{Path: "arp_ignore", Value: planner.JSON(1), Class: planner.ClassSet}
	return []planner.Field{arp, built("Internal", true), headline("name", name), headline("subnet", subnet)}
}

func proxy(inv, listen string, hosts ...string) []planner.Field {
	return []planner.Field{
		built("HostConfig.CapDrop", []string{"ALL"}), built("HostConfig.ReadonlyRootfs", true),
		headline("hosts", hosts), ref("image", planner.AddrImage), headline("listen", listen),
		headline("name", "sandplan-codeboost-default-login-"+inv),
	}
}

func (e example) agent(inv planner.Address, name, address, tree string, memory int64) []planner.Field {
	return []planner.Field{
		built("HostConfig.CapDrop", []string{"ALL"}), built("HostConfig.Privileged", false), built("HostConfig.ReadonlyRootfs", true),
		headline("address", address),
		headline("command", []string{"claude", "-p", "--tools", "Read,Glob,Grep", "--restricted", "--setting-sources=", "--strict-mcp-config"}),
		ref("image", planner.VendorImage("claude")), headline("name", name), ref("network", inv.With(planner.PartNetwork)),
		e.attr("timeout", "timeout", `timeout  = "30m"`, int64(30*60*1e9), planner.UnitDuration),
		headline("user", "1000:1000"),
		e.attr("worktree", "Mounts./work", `worktree = "../checkout/${each.key}"`, tree+" (read-only)", planner.UnitNone),
		e.attr("limits.memory", "HostConfig.Memory", `memory = "2GiB"`, memory, planner.UnitBytes),
		e.attr("limits.memory", "HostConfig.MemorySwap", `memory = "2GiB"`, memory, planner.UnitBytes),
		e.attr("limits.cpus", "HostConfig.NanoCpus", `cpus   = 1.5`, int64(1.5e9), planner.UnitNanoCPUs),
		headline2("limits.pids", "HostConfig.PidsLimit", 256),
	}
}

// headline2 is an attribute that stands at its default.
func headline2(attr, path string, v any) planner.Field {
	return planner.Field{Path: path, Attr: attr, Value: planner.JSON(v), Show: planner.Headline}
}

func (e example) runner(name string, argv ...string) []planner.Field {
	return []planner.Field{
		built("HostConfig.NetworkMode", "none"), built("HostConfig.ReadonlyRootfs", true),
		e.attr("argv", "Config.Cmd", `argv  = ["npm", "test", "--", "--run"]`, argv, planner.UnitNone),
		ref("image", planner.RunnerImage("review", "test")), headline("name", name),
	}
}

func because(code planner.ReasonCode, text string) []planner.Reason {
	return []planner.Reason{{Code: code, Text: text}}
}

func create(a planner.Address, k planner.Kind, after []planner.Field) planner.Change {
	return planner.Change{Addr: a, Kind: k, Title: titleOf(a), Action: planner.ActionCreate, After: after,
		Reasons: because(planner.ReasonAbsent, "because nothing is there")}
}

func destroy(a planner.Address, k planner.Kind, before []planner.Field, reasons []planner.Reason) planner.Change {
	return planner.Change{Addr: a, Kind: k, Title: titleOf(a), Action: planner.ActionDelete, Before: before,
		Object: planner.Object{ID: "1c77d0aa11bb22"}, Reasons: reasons}
}

func titleOf(a planner.Address) string {
	if a.Invocation() == "" {
		return ""
	}
	return title
}

// with returns fields in which the one with the path has another value.
func with(fields []planner.Field, path string, v any) []planner.Field {
	out := append([]planner.Field{}, fields...)
	for i := range out {
		if out[i].Path == path {
			out[i].Value = planner.JSON(v)
		}
	}
	return out
}
