package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
)

type logsFlags struct {
	follow, json bool
	run          string
}

// Files of a run's record, as package launch writes them.
const (
	runsDir    = "runs"
	runRecord  = "record.json"
	runEgress  = "egress.jsonl"
	followEach = 200 * time.Millisecond
	// maxLogLine is far above what a proxy writes: whatever is longer is no line of its.
	maxLogLine = 1 << 20
)

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [options] ADDRESS",
		Short: "What an invocation's proxy let through and refused",
		Long: `
Prints the egress log of the newest run of an invocation, one line per decision and per closed tunnel. It reads the
run's record, so it works while the run goes on, after its end, and without an engine or a valid configuration.

With -json the lines are the log's own, as docs/schema/egress-log.json describes them.`,
		Example: "sandplan logs invocation.review\nsandplan logs -follow -json 'invocation.login[\"auth\"]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(name(cmd), "logs needs the address of one invocation, such as invocation.review")
			}
			return nil
		},
		RunE: a.action(func(cmd *cobra.Command, args []string) int { return a.logs(cmd.Context(), f, args) }),
	}
	cmd.Flags().BoolVar(&f.follow, "follow", false, "go on until the run has ended; waits for one that has not begun")
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
	runs := filepath.Join(a.dataDir(a.configDir()), runsDir)
	dir, err := findRun(in.ctx, runs, addrs[0], f)
	if err != nil {
		return a.fail(err)
	}
	out := a.renderer(a.stdout)
	show := func(line []byte) {
		var e egress.Entry
		switch {
		case f.json:
			io.WriteString(a.stdout, string(line)+"\n")
		case json.Unmarshal(line, &e) == nil:
			io.WriteString(a.stdout, out.LogLine(e))
		}
	}
	if !f.json {
		io.WriteString(a.stdout, out.LogHeading(filepath.Base(dir)))
	}
	if err := readLog(in.ctx, dir, f.follow, show); err != nil && in.ctx.Err() == nil {
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

// findRun is the directory of the run that is asked for. Following, it waits for one.
func findRun(ctx context.Context, runs string, addr planner.Address, f logsFlags) (string, error) {
	if inv := addr.Invocation(); inv != "" {
		addr = inv // a part of an invocation means its run
	}
	for {
		dir, err := lookForRun(runs, addr, f.run)
		if err == nil || !errors.Is(err, errNoRun) || !f.follow {
			return dir, err
		}
		if !pause(ctx, followEach) {
			return "", errNoRun
		}
	}
}

var errNoRun = errors.New("there is no such run")

func lookForRun(runs string, addr planner.Address, id string) (string, error) {
	entries, err := os.ReadDir(runs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	slices.Reverse(entries) // their names begin with the time
	for _, e := range entries {
		if id != "" && e.Name() != id {
			continue
		}
		dir := filepath.Join(runs, e.Name())
		if _, err := os.Stat(filepath.Join(dir, runEgress)); err != nil {
			continue // a runner has no proxy
		}
		if ran := invocationOf(dir); ran != "" && addr.Contains(ran) {
			return dir, nil
		}
	}
	if id != "" {
		return "", fmt.Errorf("%w: %s has no run %s of %s", errNoRun, runs, id, addr)
	}
	return "", fmt.Errorf("%w: %s has none of %s; sandplan run makes one", errNoRun, runs, addr)
}

// invocationOf reads whose run it is: from the record, which is written last, or from the log's first
// line.
func invocationOf(dir string) planner.Address {
	var record struct {
		Predicate struct {
			Invocation planner.Address `json:"invocation"`
		} `json:"predicate"`
	}
	if b, err := os.ReadFile(filepath.Join(dir, runRecord)); err == nil && json.Unmarshal(b, &record) == nil {
		return record.Predicate.Invocation
	}
	f, err := os.Open(filepath.Join(dir, runEgress))
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxLogLine)).ReadBytes('\n')
	var e egress.Entry
	if err != nil || json.Unmarshal(line, &e) != nil {
		return ""
	}
	return planner.Address(e.Invocation)
}

// readLog hands out the whole lines of a log, and goes on until the run has ended when it follows. It
// fails where the log has a gap, when everything was shown.
func readLog(ctx context.Context, dir string, follow bool, show func([]byte)) error {
	f, err := os.Open(filepath.Join(dir, runEgress))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var part []byte
	var seen sequence
	for !seen.ended {
		// The record is written last: with one there, what there is is all.
		_, unrecorded := os.Stat(filepath.Join(dir, runRecord))
		chunk, err := in.ReadBytes('\n')
		part = append(part, chunk...)
		switch {
		case len(part) > maxLogLine:
			return fmt.Errorf("%s: a line is longer than %d bytes", f.Name(), maxLogLine)
		case err == nil:
			line := bytes.TrimSuffix(part, []byte("\n"))
			seen.take(line)
			show(line)
			part = nil
		case !errors.Is(err, io.EOF):
			return err
		case !follow || unrecorded == nil || !pause(ctx, followEach):
			return seen.err()
		}
	}
	return seen.err()
}

// sequence notices what is missing in a log.
type sequence struct {
	last  uint64
	ended bool
	wrong []string
}

func (s *sequence) take(line []byte) {
	var e egress.Entry
	due := s.last + 1
	switch err := json.Unmarshal(line, &e); {
	case err != nil:
		s.wrong = append(s.wrong, fmt.Sprintf("where line %d should be stands something else", due))
		s.last = due
		return
	case e.Seq != due:
		s.wrong = append(s.wrong, fmt.Sprintf("line %d stands where line %d should", e.Seq, due))
	}
	s.last, s.ended = e.Seq, e.Event == egress.EventEnd
}

func (s *sequence) err() error {
	if len(s.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("the log is not whole: %s", strings.Join(s.wrong[:min(len(s.wrong), 5)], "; "))
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
