package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Names of the files of a record.
const (
	recordFile = "record.json"
	egressFile = "egress.jsonl"
	outputFile = "output.log"
)

// statement is the form of record.json: an in-toto statement, so that it can be signed as it is.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     *record   `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://sandplan.dev/run/v1"
)

// record is what is kept of a run. No secret and no text of the prompt is in it.
type record struct {
	ID         string          `json:"id"`
	Version    string          `json:"sandplan_version"`
	Scope      string          `json:"scope"`
	Origin     string          `json:"origin"`
	EngineID   string          `json:"engine_id,omitempty"`
	Invocation planner.Address `json:"invocation"`
	Vendor     string          `json:"vendor"`
	Phase      string          `json:"phase"`
	Runner     string          `json:"runner,omitempty"`
	Worktree   string          `json:"worktree,omitempty"`

	Argv     []string `json:"argv"`
	Tools    []string `json:"tools,omitempty"`
	Writable bool     `json:"writable"`
	Hosts    []string `json:"hosts"`
	Command  string   `json:"command_sha256"`
	Prompt   string   `json:"prompt_sha256"`

	Began   time.Time  `json:"began"`
	Running *time.Time `json:"running,omitempty"`
	Ended   time.Time  `json:"ended"`

	Objects []recordObject   `json:"objects"`
	Sources []planner.Source `json:"sources,omitempty"`
	Proxy   *wire.Ready      `json:"proxy,omitempty"`
	Report  *wire.Report     `json:"report,omitempty"`
	Process planner.Process  `json:"process"`
	Tree    *recordTree      `json:"worktree_contents,omitempty"`
	// Events are what the engine said about the objects of the run.
	Events    []planner.Signal `json:"events,omitempty"`
	Egress    Egress           `json:"egress"`
	Exit      recordExit       `json:"exit"`
	Unsettled string           `json:"unsettled,omitempty"`

	data   string // the data directory
	dir    string // this record's
	files  []*os.File
	begun  *os.File // held while it goes on
	failed error
}

type recordObject struct {
	Addr        planner.Address `json:"address"`
	ID          string          `json:"id"`
	Declared    string          `json:"declared_sha256,omitempty"`
	Fingerprint string          `json:"observed_sha256,omitempty"`
}

type recordExit struct {
	Code     int               `json:"code"`
	By       string            `json:"by"`
	Reason   string            `json:"reason,omitempty"`
	Findings []planner.Finding `json:"findings,omitempty"`
	Checks   []wire.Check      `json:"checks,omitempty"`
}

func (r *run) newRecord() *record {
	prompt := sha256.Sum256(r.Prompt)
	rec := &record{
		ID: r.began.UTC().Format("20060102T150405Z") + "-" + newSecret()[:8], Version: r.Version,
		Scope: r.Scope.String(), Origin: r.Origin, Invocation: r.inv,
		Vendor: r.Invocation.Vendor.V, Phase: r.Invocation.Phase.V, Runner: r.Runner, Worktree: r.Invocation.Worktree.V,
		Argv: r.Command.Argv(), Tools: r.Command.Tools(), Writable: r.Command.Writable(), Command: r.Command.Digest(),
		Prompt: hex.EncodeToString(prompt[:]), Began: r.began, Hosts: []string{}, Objects: []recordObject{},
	}
	for _, h := range r.Command.Hosts() {
		rec.Hosts = append(rec.Hosts, fmt.Sprintf("%s:%d", h.Name, h.Port))
	}
	if r.DataDir != "" {
		rec.data, rec.dir = r.DataDir, filepath.Join(r.DataDir, "runs", rec.ID)
	}
	return rec
}

// egress and output are where the two streams are kept, from the first byte on, so that a crash of
// sandplan leaves what had come until then.
func (rec *record) egress() io.Writer { return rec.create(egressFile, 0) }
func (rec *record) output() io.Writer { return rec.create(outputFile, os.O_APPEND) }

// makeDir makes the record's directory, and keeps the data directory out of git: records hold what
// agents wrote, and that is not for publication.
func (rec *record) makeDir() error {
	if err := os.MkdirAll(rec.dir, 0o700); err != nil {
		return err
	}
	ignore, err := os.OpenFile(filepath.Join(rec.data, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = ignore.WriteString("*\n")
	return errors.Join(err, ignore.Close())
}

// create opens a file of the record. Its failure is told once, at the end: a full disk is no reason to
// lose the run itself.
func (rec *record) create(name string, flag int) io.Writer {
	if rec.dir == "" || rec.failed != nil {
		return discard{}
	}
	if rec.failed = rec.makeDir(); rec.failed != nil {
		return discard{}
	}
	f, err := os.OpenFile(filepath.Join(rec.dir, name), os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		rec.failed = err
		return discard{}
	}
	rec.files = append(rec.files, f)
	return f
}

// writeRecord completes and writes the record. A run that was refused before anything was compared has
// none.
func (r *run) writeRecord() {
	rec := r.record
	if rec.dir == "" || r.compiled == nil {
		if err := rec.forget(); err != nil {
			r.unsettled = append(r.unsettled, err)
		}
		return
	}
	rec.Ended, rec.Egress = r.Now(), r.result.Egress
	if !r.running.IsZero() {
		rec.Running = &r.running
	}
	rec.Exit = recordExit{Code: r.result.Code, By: r.result.By, Reason: rec.Exit.Reason}
	if d := r.decision; d != nil {
		rec.Exit.Reason, rec.Exit.Findings, rec.Exit.Checks = d.Error(), publicFindings(d.Findings), d.Checks
	}
	if err := errors.Join(r.unsettled...); err != nil {
		rec.Unsettled = err.Error()
	}
	err := rec.failed
	for _, f := range rec.files {
		err = errors.Join(err, f.Close())
	}
	err = errors.Join(err, rec.write(), rec.letGo())
	if err != nil {
		r.unsettled = append(r.unsettled, fmt.Errorf("the record of the run is not whole: %w", err))
	}
	r.result.RecordDir = rec.dir
}

// compared notes what was there before the start.
func (rec *record) compared(s planner.Snapshot) {
	rec.EngineID = s.EngineID
	for _, o := range s.Objects {
		if inv := o.Addr.Invocation(); inv == "" || inv == rec.Invocation {
			rec.Objects = append(rec.Objects, recordObject{o.Addr, o.ID, o.Digest, o.Fingerprint})
		}
	}
}

// publicFindings are findings without the values of sensitive fields.
func publicFindings(fs []planner.Finding) []planner.Finding {
	out := slices.Clone(fs)
	for i, f := range out {
		if f.Mismatch != nil && f.Mismatch.Field.Sensitive {
			m := *f.Mismatch
			m.Want, m.Got = planner.JSON("(sensitive)"), planner.JSON("(sensitive)")
			out[i].Mismatch = &m
		}
	}
	return out
}

// write puts record.json in place in one step: a reader sees a whole one or none.
func (rec *record) write() error {
	s := statement{Type: statementType, PredicateType: predicateType, Predicate: rec}
	for _, o := range rec.Objects {
		if o.Declared != "" {
			s.Subject = append(s.Subject, subject{string(o.Addr), map[string]string{"sha256": o.Declared}})
		}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := rec.makeDir(); err != nil {
		return err
	}
	tmp := filepath.Join(rec.dir, recordFile+".tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(rec.dir, recordFile))
}
