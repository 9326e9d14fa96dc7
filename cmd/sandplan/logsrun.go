package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/egress"
)

// loggedRun is a run whose log can be asked for.
type loggedRun struct {
	data, id   string
	invocation planner.Address
	runner     bool      // it has no proxy
	began      time.Time // when it got its lease
}

func (r loggedRun) log() string { return filepath.Join(r.data, "runs", r.id, "egress.jsonl") }

// record is the run's record, or nil while it has none that can be read.
func (r loggedRun) record() *launch.Record {
	rec, err := launch.ReadRecord(r.data, r.id)
	if err != nil {
		return nil
	}
	return rec
}

// over says that nothing is written any more: the record is, or its sandplan is not there any more. A run
// holds what it wrote when it began before it makes its log.
func (r loggedRun) over() bool {
	if _, err := launch.ReadRecord(r.data, r.id); !errors.Is(err, launch.ErrNoRecord) {
		return true
	}
	b, err := launch.ReadBegun(r.data, r.id)
	return err == nil && !b.Held || errors.Is(err, fs.ErrNotExist)
}

var errNoRun = errors.New("there is no such run")

// findRun is the run that is asked for. Following, it waits for the first one of an invocation.
func findRun(ctx context.Context, data string, addr planner.Address, f logsFlags) (loggedRun, error) {
	if inv := addr.Invocation(); inv != "" {
		addr = inv // a part of an invocation means its run
	}
	runs := loggedRuns{data: data, known: map[string]loggedRun{}}
	for {
		run, err := runs.find(addr, f.run)
		// Nobody knows the ID of a run that is still to come.
		if err == nil || !errors.Is(err, errNoRun) || !f.follow || f.run != "" || !pause(ctx, followEach) {
			return run, err
		}
	}
}

// loggedRuns are the runs in a data directory.
type loggedRuns struct {
	data  string
	known map[string]loggedRun // by ID: no run changes its invocation
}

// find is the run with an ID, or the one that began last.
func (l loggedRuns) find(addr planner.Address, id string) (loggedRun, error) {
	var newest loggedRun
	ids, err := launch.RunIDs(l.data)
	if err != nil {
		return newest, err
	}
	for _, i := range ids {
		if id != "" && i != id {
			continue
		}
		// IDs hold the second in which a run was asked for, so they alone do not say which one is newer.
		if run := l.run(i); run.invocation != "" && !run.runner && addr.Contains(run.invocation) && !run.began.Before(newest.began) {
			newest = run
		}
	}
	runs := filepath.Join(l.data, "runs")
	switch {
	case newest.id != "":
		return newest, nil
	case id != "":
		return newest, fmt.Errorf("%w: %s has no run %s of %s", errNoRun, runs, id, addr)
	}
	return newest, fmt.Errorf("%w: %s has none of %s; sandplan run makes one", errNoRun, runs, addr)
}

// run is the run with an ID, without an invocation where that is not known, or not yet.
func (l loggedRuns) run(id string) loggedRun {
	if run, ok := l.known[id]; ok {
		return run
	}
	run := loggedRun{data: l.data, id: id}
	stamp, _, _ := strings.Cut(id, "-")
	run.began, _ = time.Parse("20060102T150405Z", stamp)
	b, err := launch.ReadBegun(l.data, id)
	rec := run.record()
	switch {
	case err == nil && b.Invocation != "":
		run.invocation, run.runner, run.began = b.Invocation, b.Runner != "", b.At
	case rec != nil:
		run.invocation, run.runner = rec.Invocation, rec.Runner != ""
	default:
		run.invocation = firstSpeaker(run.log())
	}
	if run.invocation != "" {
		l.known[id] = run
	}
	return run
}

// firstSpeaker is the invocation that the first line of a log names.
func firstSpeaker(log string) planner.Address {
	f, err := os.Open(log)
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
