package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version [options]",
		Short:   "Versions of sandplan and of the engine",
		Long:    "Prints the version of sandplan, and of the engine with the API that both speak. No engine is no error.",
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
	Engine   *engineVersion `json:"engine,omitempty"`
}

type engineVersion struct {
	Version string `json:"version"`
	API     string `json:"api_version"`
	Arch    string `json:"arch"`
	ID      string `json:"id"`
}

func (a *app) printVersion(ctx context.Context, asJSON bool) int {
	u := a.ui()
	v := versions{Sandplan: a.version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: planner.Schema}
	// The configuration may name the engine; one that cannot be read does not matter here.
	head, _ := hclspec.ReadHead(a.source())
	in := a.watch(ctx, false, nil)
	defer in.done()
	engine, err := a.open(in.ctx, head.Host.V, a.cwd)
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
