package docker

import (
	"slices"
	"strings"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/planner/policy"
)

// What stands for a property that says the same as others do. Where it does not, the property stays
// as it is, and so differs.
const (
	sameAsConfig = "as Config says"
	sameAsHost   = "as HostConfig says"
	sameAsIPAM   = "as IPAMConfig says"
)

// arrangeContainer brings a container's tree into the form that rows describe: lists that are sets by name
// become objects, the one JSON argument of sandplan's own programs becomes what it says, and what repeats
// other properties is checked against them. It changes v in place, and an arranged tree not at all.
func arrangeContainer(v tree, dataDir string) { arrangeBy(v, dataDir, decodeArgument) }

// arrangeWanted does the same to the tree of a request, whose argument was written by its own program.
func arrangeWanted(v tree) { arrangeBy(v, "", takeArgument) }

func arrangeBy(v tree, dataDir string, argument func(any) any) {
	config, _ := v["Config"].(map[string]any)
	host, _ := v["HostConfig"].(map[string]any)
	if config == nil || host == nil {
		return
	}
	arrangeProcess(v, config)
	if s, ok := v["Name"].(string); ok {
		v["Name"] = strings.TrimPrefix(s, "/")
	}
	if asked, ok := config["Image"].(string); ok && asked == v["Image"] {
		config["Image"] = sameAsImage
	}
	config["Env"] = envByName(config["Env"])
	config["Cmd"] = argument(config["Cmd"])

	mounts, ok := host["Mounts"].([]any)
	if host["Mounts"] == nil {
		mounts, ok = []any{}, true
	}
	if ok {
		if sameMounts(mounts, v["Mounts"], dataDir) {
			v["Mounts"] = sameAsHost
		}
		host["Mounts"] = mountsByTarget(mounts)
	}
	settings, _ := v["NetworkSettings"].(map[string]any)
	networks, _ := settings["Networks"].(map[string]any)
	id, _ := v["Id"].(string)
	name, _ := v["Name"].(string)
	hostname, _ := config["Hostname"].(string)
	for _, e := range networks {
		if e, ok := e.(map[string]any); ok {
			arrangeEndpoint(e, shortID(id), name, hostname)
		}
	}
}

// sameAsImage: Config.Image repeats what was asked for. We ask by ID, so it is the image's.
const sameAsImage = "as Image says"

// arrangeProcess checks what the engine runs against what it was told to run. A wanted tree has no
// Path: it is what follows from the request.
func arrangeProcess(v tree, config map[string]any) {
	if v["Path"] == nil && v["Args"] == nil {
		v["Path"], v["Args"] = sameAsConfig, sameAsConfig
		return
	}
	entry, _ := config["Entrypoint"].([]any)
	cmd, _ := config["Cmd"].([]any)
	args, _ := v["Args"].([]any)
	run := append([]any{v["Path"]}, args...)
	// Nothing but texts: any other value in their place stays where it is, and differs.
	sameText := func(a, b any) bool { _, isText := a.(string); return isText && a == b }
	if slices.EqualFunc(run, append(slices.Clone(entry), cmd...), sameText) {
		v["Path"], v["Args"] = sameAsConfig, sameAsConfig
	}
}

// envByName turns NAME=value into an object; a bare NAME takes the variable of the image away and
// becomes null. A name that is there twice leaves the list as it is.
func envByName(v any) any {
	items, ok := v.([]any)
	if v == nil {
		return map[string]any{}
	}
	if !ok {
		return v
	}
	out := make(map[string]any, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return v
		}
		name, value, has := strings.Cut(s, "=")
		if _, twice := out[name]; twice {
			return v
		}
		out[name] = nil
		if has {
			out[name] = value
		}
	}
	return out
}

// mountsByTarget turns the list of mounts into an object: those that every agent has by their target,
// all others together. A target that is there twice leaves the list as it is.
func mountsByTarget(list []any) any {
	out, others := map[string]any{}, map[string]any{}
	seen := map[any]bool{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		target, ok := m["Target"].(string)
		if !ok || seen[target] {
			return list
		}
		seen[target] = true
	}
	for _, item := range list {
		m := item.(map[string]any)
		target := m["Target"].(string)
		into := others
		if slices.Contains(commonTargets(), target) {
			into = out
		}
		delete(m, "Target") // it is the key now
		into[target] = m
	}
	out[otherMounts] = others
	return out
}

// otherMounts is where mounts stand that only some containers have: a configuration directory, the
// repository of a linked worktree.
const otherMounts = "others"

// commonTargets have rows with the user's attributes.
func commonTargets() []string { return []string{policy.Worktree, policy.Worktree + "/.git", toolDir} }

// sameMounts reports whether the mounts that the engine resolved are those that it was asked for.
func sameMounts(asked []any, resolved any, dataDir string) bool {
	if resolved == nil && dataDir == "" {
		return true // a wanted tree: what the engine makes of the request is not known yet
	}
	got, ok := resolved.([]any)
	if !ok || len(got) != len(asked) {
		return false
	}
	expected := map[planner.Value]bool{}
	for _, item := range asked {
		m, _ := item.(map[string]any)
		expected[planner.JSON(mountPoint(m, dataDir))] = true
	}
	for _, item := range got {
		v := planner.JSON(item)
		if !expected[v] {
			return false
		}
		delete(expected, v) // one for one
	}
	return len(expected) == 0
}

// mountPoint is how the engine shows a bind or a volume that it was asked for.
func mountPoint(m map[string]any, dataDir string) map[string]any {
	readOnly, _ := m["ReadOnly"].(bool)
	options, _ := m["BindOptions"].(map[string]any)
	propagation, _ := options["Propagation"].(string)
	out := map[string]any{"Type": m["Type"], "Source": m["Source"], "Destination": m["Target"], "Mode": "", "RW": !readOnly, "Propagation": propagation}
	if m["Type"] == "volume" {
		name, _ := m["Source"].(string)
		out["Name"], out["Driver"], out["Mode"] = name, "local", "z"
		out["Source"] = dataDir + "/volumes/" + name + "/_data"
	}
	return out
}

// arrangeEndpoint takes away what the engine fills in by itself while a container runs: the address
// that it was given, and names that are the container's own anyway.
func arrangeEndpoint(e map[string]any, names ...string) {
	ipam, _ := e["IPAMConfig"].(map[string]any)
	fixed, _ := ipam["IPv4Address"].(string)
	switch e["IPAddress"] {
	case nil, "", fixed:
		e["IPAddress"] = sameAsIPAM
	}
	// Both are chosen by the engine while the container runs, and nobody's before and after.
	if live, _ := e["EndpointID"].(string); live != "" {
		if hardwareAddress(e["MacAddress"]) {
			e["MacAddress"] = ""
		}
		if ipv4Address(e["Gateway"]) {
			e["Gateway"] = ""
		}
	}
	for _, key := range []string{"Aliases", "DNSNames"} {
		list, ok := e[key].([]any)
		if !ok {
			continue
		}
		e[key] = slices.DeleteFunc(slices.Clone(list), func(name any) bool {
			s, ok := name.(string)
			return ok && slices.Contains(names, s)
		})
	}
}
