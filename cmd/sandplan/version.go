package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version [options]",
		Short:   "Versions of sandplan and of the engine",
		Long:    "Prints the version of sandplan, and of the engine with the API that both speak. No engine is no error. With -json it says what the binary was built from, too: commit, toolchain, settings, and every module with its checksum.",
		Example: "sandplan version -json",
		Args:    noArguments,
		RunE: a.action(func(cmd *cobra.Command, _ []string) int {
			return a.printVersion(cmd.Context(), asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// versions is what version -json prints.
type versions struct {
	Sandplan string         `json:"sandplan_version"`
	Platform string         `json:"platform"`
	Schema   string         `json:"schema_version"`
	Build    *origin        `json:"build,omitempty"`
	Engine   *engineVersion `json:"engine,omitempty"`
}

// origin is what a binary was built from, as the toolchain wrote it down.
type origin struct {
	Go       string   `json:"go_version"`
	Module   string   `json:"module"`
	Revision string   `json:"revision,omitempty"`
	Time     string   `json:"time,omitempty"`
	Modified bool     `json:"modified"`
	Settings []string `json:"settings"`
	// Modules are all that is linked into it, with their versions and checksums.
	Modules []moduleVersion `json:"modules"`
}

type moduleVersion struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// builtFrom reads it from the binary itself; nil where that says nothing.
func builtFrom() *origin {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	o := &origin{Go: info.GoVersion, Module: info.Main.Path, Settings: []string{}, Modules: []moduleVersion{}}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs":
		case "vcs.revision":
			o.Revision = s.Value
		case "vcs.time":
			o.Time = s.Value
		case "vcs.modified":
			o.Modified = s.Value == "true"
		default:
			o.Settings = append(o.Settings, s.Key+"="+s.Value)
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		o.Modules = append(o.Modules, moduleVersion{m.Path, m.Version, m.Sum})
	}
	return o
}

type engineVersion struct {
	Version string `json:"version"`
	API     string `json:"api_version"`
	Arch    string `json:"arch"`
	ID      string `json:"id"`
}

func (a *app) printVersion(ctx context.Context, asJSON bool) int {
	u := a.ui()
	v := versions{Sandplan: a.version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: planner.Schema, Build: builtFrom()}
	// The configuration may name the engine; one that cannot be read does not matter here.
	host, err := a.engineHost(u)
	in := a.watch(ctx, false, nil)
	defer in.done()
	var engine *docker.Engine
	if err == nil {
		engine, err = a.open(in.ctx, host, a.cwd)
	}
	if err == nil {
		info := engine.Info()
		engine.Close()
		v.Engine = &engineVersion{info.Version, info.API, info.Arch, info.ID}
	}
	if asJSON {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return a.fail(err)
		}
		u.print(string(b) + "\n")
		return exitOK
	}
	u.print(fmt.Sprintf("sandplan %s on %s\n", v.Sandplan, v.Platform))
	if v.Engine == nil {
		u.print("no engine: " + err.Error() + "\n")
		return exitOK
	}
	u.print(fmt.Sprintf("engine %s, API %s\n", v.Engine.Version, v.Engine.API))
	return exitOK
}
