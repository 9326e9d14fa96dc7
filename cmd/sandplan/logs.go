package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/providers/docker/egress"
)

type logsFlags struct {
	follow, json bool
	run          string
}

// followEach is how often it is looked for more.
const followEach = 200 * time.Millisecond

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [options] ADDRESS",
		Short: "What an invocation's proxy let through and refused",
		Long: `
Prints the egress log of the newest run of an invocation, one line per decision and per closed tunnel. It reads the
run's record, so it works while the run goes on, after its end, and without an engine or a valid configuration.

With -json the lines are the log's own, as docs/schema/egress-log.json describes them. What is missing in the log of a
run that is over, also of one whose sandplan was killed, is told when everything was shown, and the exit code is 1.`,
		Example: "sandplan logs invocation.review\nsandplan logs -follow -json 'invocation.login[\"auth\"]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "logs needs the address of one invocation, such as invocation.review")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, args []string) int { return a.logs(cmd.Context(), f, args) }),
	}
	cmd.Flags().BoolVar(&f.follow, "follow", false, "go on until the run is over; waits for one where there is none yet")
	cmd.Flags().BoolVar(&f.json, "json", false, "the lines as they are: one JSON object each")
	cmd.Flags().StringVar(&f.run, "run", "", "another run than the newest, by the `id` of its record")
	return cmd
}

func (a *app) logs(ctx context.Context, f logsFlags, args []string) int {
	u := a.ui()
	addrs, diags := addresses("the command line", args)
	if u.report(diags) {
		return exitError
	}
	in := a.watch(ctx, false, nil)
	defer in.done()
	run, err := findRun(in.ctx, a.dataDir(a.configDir()), addrs[0], f)
	if err != nil {
		return a.fail(err)
	}
	out := a.renderer(a.stdout)
	show := func(line []byte, e egress.Entry) {
		if f.json {
			io.WriteString(a.stdout, string(line)+"\n")
		} else {
			io.WriteString(a.stdout, out.LogLine(e))
		}
	}
	if !f.json {
		io.WriteString(a.stdout, out.LogHeading(run.id))
	}
	// Whoever ends a -follow is told what was missing until then.
	if err := readLog(in.ctx, run, f.follow, show); err != nil {
		return a.fail(err)
	}
	return exitOK
}

// configDir is where the configuration is, whether or not it can be read.
func (a *app) configDir() string {
	path := a.global.config
	if path == "" {
		return a.cwd
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.cwd, path)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// pause waits, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
