package docker

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/permission"
	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// Permissions are what the declarations of objects let each agent do: the rows of what is wanted, or those
// of the labels of what is there. Both sides are read by this one function, so that nothing differs but
// what was declared. Invocations without a readable agent have no entry.
func Permissions(declared map[planner.Address][]planner.Field) []permission.Set {
	byInvocation := map[planner.Address]*permission.Set{}
	var order []planner.Address
	addrs := make([]planner.Address, 0, len(declared))
	for a := range declared {
		addrs = append(addrs, a)
	}
	planner.SortAddresses(addrs)
	for _, a := range addrs { // an invocation's agent comes before its runners
		inv, rows := a.Invocation(), newRowReader(declared[a])
		switch {
		case inv == "" || len(declared[a]) == 0:
		case a.Part() == planner.PartAgent:
			s := rows.agent(inv)
			proxy := newRowReader(declared[inv.With(planner.PartProxy)])
			s.Reach, s.DNS = proxy.texts("Config.Cmd[1].hosts"), proxy.texts("Config.Cmd[1].dns")
			s.Vendor = strings.TrimPrefix(proxy.text("Config.Cmd[1].declaration"), "vendor.")
			proxy.bounds(&s.Limits)
			byInvocation[inv], order = s, append(order, inv)
		case strings.HasPrefix(a.Part(), "runner[") && byInvocation[inv] != nil:
			name := strings.Trim(strings.TrimPrefix(a.Part(), "runner"), `[]"`)
			byInvocation[inv].Runners = append(byInvocation[inv].Runners, permission.Runner{
				Name: name, Argv: rows.texts("Config.Cmd[1].argv"), Image: rows.text("Image"),
				Timeout: time.Duration(rows.number("Config.Cmd[1].bounds.timeout_ms")) * time.Millisecond})
		}
	}
	var out []permission.Set
	for _, inv := range order {
		out = append(out, *byInvocation[inv])
	}
	return out
}

// Wanted are the rows of resources, for Permissions.
func Wanted(resources []planner.Resource) map[planner.Address][]planner.Field {
	out := map[planner.Address][]planner.Field{}
	for _, r := range resources {
		out[r.Addr] = r.Fields
	}
	return out
}

// Declared are the rows of the objects' own labels, for Permissions.
func Declared(s planner.Snapshot) map[planner.Address][]planner.Field {
	out := map[planner.Address][]planner.Field{}
	for _, o := range s.Objects {
		out[o.Addr] = o.Declared
	}
	return out
}

// rowReader reads values by their paths. What is not there, or of another type, reads as nothing: then it
// differs from whatever the other side has.
type rowReader []planner.Field

func newRowReader(fields []planner.Field) rowReader {
	if !slices.IsSortedFunc(fields, byPath) { // they nearly always are, and there are many
		fields = sortFields(slices.Clone(fields))
	}
	return fields
}

func (r rowReader) at(path string) planner.Value {
	i, found := slices.BinarySearchFunc(r, path, func(f planner.Field, path string) int { return strings.Compare(f.Path, path) })
	if !found {
		return planner.Value{}
	}
	return r[i].Value
}

func (r rowReader) text(path string) string {
	if a, isRef := r.at(path).Ref(); isRef {
		return string(a)
	}
	if what, isUnknown := r.at(path).Unknown(); isUnknown {
		return "(known after apply: " + what + ")"
	}
	var s string
	if r.at(path).Decode(&s) != nil {
		return r.at(path).Text()
	}
	return s
}

func (r rowReader) number(path string) int64 {
	var n int64
	if r.at(path).Decode(&n) != nil {
		return 0
	}
	return n
}

// bounds are those that the proxy holds its agent to.
func (r rowReader) bounds(l *permission.Limits) {
	const at = "Config.Cmd[1].limits."
	l.Upload, l.Download = r.number(at+"upload_bytes"), r.number(at+"download_bytes")
	if l.Download == 0 && !r.at(at+"download_bytes").IsZero() {
		l.Download = permission.Unbounded
	}
	l.Tunnels, l.TunnelsPerSecond = r.number(at+"tunnels"), r.number(at+"tunnels_per_second")
}

func (r rowReader) texts(path string) []string {
	var list []string
	if r.at(path).Decode(&list) != nil {
		return nil
	}
	return list
}

func (r rowReader) agent(inv planner.Address) *permission.Set {
	const arg = "Config.Cmd[1]."
	s := &permission.Set{
		Invocation: inv, Image: r.text("Image"), User: r.text("Config.User"), Command: r.texts(arg + "argv"),
		AnyPrompt: r.text(arg+"prompt_sha256") == "",
		Limits: permission.Limits{
			Memory: r.number(arg + "limits.memory"), NanoCPUs: r.number(arg + "limits.nano_cpus"), PIDs: r.number(arg + "limits.pids"),
			Output: r.number(arg + "bounds.output"), Timeout: time.Duration(r.number(arg+"bounds.timeout_ms")) * time.Millisecond,
		},
	}
	s.Values = map[string]string{}
	for _, pair := range r.texts(arg + "env") {
		name, value, _ := strings.Cut(pair, "=")
		s.Env = append(s.Env, name)
		if !isProxyVariable(name) { // where the proxy is follows from the network
			s.Values[name] = value
		}
	}
	var files []shim.File
	if r.at(arg+"files").Decode(&files) == nil {
		for _, f := range files {
			// The content counts: the file of a name decides what the CLI may do.
			s.Files = append(s.Files, fmt.Sprintf("%s (sha256:%.16x)", f.Path, sha256.Sum256(f.Content)))
		}
	}
	s.Sources = map[string]string{}
	var creds []shim.Credential
	if r.at(arg+"credentials").Decode(&creds) == nil {
		for _, c := range creds {
			as := c.Name + " as " + c.Env + c.Path
			s.Credentials, s.Sources[as] = append(s.Credentials, as), c.Source
		}
	}
	r.mounted(s)
	return s
}

func isProxyVariable(name string) bool {
	return slices.ContainsFunc(policy.ProxyEnv(netip.AddrPort{}), func(e policy.Env) bool { return e.Name == name && e.Value != "" })
}

// mounted are the host's paths that a container binds, by whether it may write to them.
func (r rowReader) mounted(s *permission.Set) {
	for i := range r {
		path := r[i].Path
		at, isSource := strings.CutSuffix(path, ".Source")
		if !isSource || !strings.HasPrefix(path, "HostConfig.Mounts") || r.text(at+".Type") != "bind" {
			continue
		}
		source, mode := r.text(path), r.text(at+".ReadOnly")
		switch {
		case mode != "true" && mode != "read-only":
			s.Write = append(s.Write, source)
		case filepath.Base(source) == ".git":
			s.Git = append(s.Git, source)
		default:
			s.Read = append(s.Read, source)
		}
	}
	slices.Sort(s.Read)
	slices.Sort(s.Git)
	slices.Sort(s.Write)
}
