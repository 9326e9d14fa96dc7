package docker

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

// recordingFormat is the version of the file's own layout.
const recordingFormat = "sandplan-snapshot-1"

// maxRecording bounds what a file may unpack to.
const maxRecording = 512 << 20

// Recording is all that drift and plan read of an engine and of the host, to be looked at anywhere and later.
// Nothing in it is secret: credentials are on no engine, and the engine's own inspect shows all of it.
type Recording struct {
	Format string
	// Version is the sandplan that made it, Taken the moment, Where the host and directory.
	Version string
	Taken   time.Time
	Where   string
	Engine  Info
	Scope   planner.Scope
	Objects []recordedObject
	// Duplicates and the others are as in planner.Snapshot.
	Duplicates  []recordedObject   `json:",omitempty"`
	Foreign     []planner.Conflict `json:",omitempty"`
	TakenRanges []planner.Taken    `json:",omitempty"`
	Leases      []planner.Lease    `json:",omitempty"`
	Unchecked   []string           `json:",omitempty"`
	Elsewhere   []planner.Scope    `json:",omitempty"`
	Facts       *facts             `json:",omitempty"`
}

// recordedObject is an object with the values of its rows. What the rows are the program knows.
type recordedObject struct {
	Addr                           planner.Address
	Kind                           planner.Kind
	ID, Name, Schema, Digest, From string
	Status                         planner.Status  `json:",omitempty"`
	Observed                       json.RawMessage // planner.Declared of what was observed
	Declared                       json.RawMessage `json:",omitempty"` // of its label, null where that is the same
	Unreadable                     bool            `json:",omitempty"` // its label says nothing
	Extra                          []planner.Extra `json:",omitempty"`
	Shared                         bool            `json:",omitempty"`
	Fingerprint                    string
}

// facts are what compiling a configuration learns of images and worktrees.
type facts struct {
	Tool       string // the ID of sandplan.image
	ToolSHA256 string
	Images     []factImage
	Trees      []factTree
}

type factImage struct {
	Ref, ID string
	Config  hclspec.ImageConfig
	Pull    string `json:",omitempty"`
	Present bool
}

func (f factImage) image() pinnedImage {
	return pinnedImage{ref: f.Ref, id: f.ID, config: f.Config, pull: f.Pull, present: f.Present}
}

type factTree struct {
	Given, Path     string
	UID, GID        uint32
	Git             gitKind
	Pointer, Common string   `json:",omitempty"`
	ReadOnly        []string `json:",omitempty"` // mounted over it where it is writable
}

func (f factTree) tree() worktree {
	// Whether the user may read there was found out when it was recorded.
	return worktree{place: place{path: f.Path, uid: f.UID, gid: f.GID, mode: modeDir | 0o777},
		git: gitDir{kind: f.Git, pointer: f.Pointer, common: f.Common}}
}

// gather is what compiling has learned.
func (b *builder) gather() *facts {
	if b.tool == nil || b.tool.binary == nil {
		return nil
	}
	f := &facts{Tool: b.tool.ID, ToolSHA256: b.tool.binary.sha256}
	for key, found := range b.images {
		if p := found.image; found.err == nil && !slices.ContainsFunc(f.Images, func(i factImage) bool { return i.Ref == key.ref }) {
			f.Images = append(f.Images, factImage{Ref: p.ref, ID: p.id, Config: p.config, Pull: p.pull, Present: p.present})
		}
	}
	for given, found := range b.trees {
		if w := found.tree; found.err == nil {
			f.Trees = append(f.Trees, factTree{Given: given, Path: w.path, UID: w.uid, GID: w.gid, Git: w.git.kind, Pointer: w.git.pointer,
				Common: w.git.common, ReadOnly: b.overlays[w.path]})
		}
	}
	slices.SortFunc(f.Images, func(a, b factImage) int { return strings.Compare(a.Ref, b.Ref) })
	slices.SortFunc(f.Trees, func(a, b factTree) int { return strings.Compare(a.Given, b.Given) })
	return f
}

// Record is a recording of one look. compiled may be nil: then it serves an audit without configuration.
func (e *Engine) Record(s planner.Snapshot, compiled *Compiled, taken time.Time) *Recording {
	r := &Recording{Format: recordingFormat, Version: e.options.Version, Taken: taken.UTC().Truncate(time.Second), Where: e.options.Origin,
		Engine: e.info, Scope: s.Scope, Foreign: s.Foreign, TakenRanges: s.Taken, Leases: s.Leases, Unchecked: s.Unchecked, Elsewhere: s.Elsewhere,
		Objects: recordObjects(s.Objects), Duplicates: recordObjects(s.Duplicates)}
	if compiled != nil {
		r.Facts = compiled.facts
	}
	return r
}

func recordObjects(objects []planner.Object) []recordedObject {
	var out []recordedObject
	for _, o := range objects {
		if o.Kind == planner.KindPinned {
			continue // the facts have it
		}
		one := recordedObject{Addr: o.Addr, Kind: o.Kind, ID: o.ID, Name: o.Name, Schema: o.Schema, Digest: o.Digest, From: o.Origin, Status: o.Status,
			Observed: planner.Declared(o.Observed), Unreadable: o.Declared == nil, Extra: o.Extra, Shared: o.Shared, Fingerprint: o.Fingerprint}
		if declared := planner.Declared(o.Declared); o.Declared != nil && !bytes.Equal(declared, one.Observed) {
			one.Declared = declared
		}
		out = append(out, one)
	}
	return out
}

// snapshot is what was recorded, in the rows of this program.
func (r *Recording) snapshot() (planner.Snapshot, error) {
	e := &Engine{kinds: kinds()}
	s := planner.Snapshot{EngineID: r.Engine.ID, Scope: r.Scope, Foreign: r.Foreign, Taken: r.TakenRanges, Leases: r.Leases, Unchecked: r.Unchecked, Elsewhere: r.Elsewhere}
	var err error
	if s.Objects, err = e.replay(r.Objects); err != nil {
		return s, err
	}
	s.Duplicates, err = e.replay(r.Duplicates)
	return s, err
}

func (e *Engine) replay(recorded []recordedObject) ([]planner.Object, error) {
	var out []planner.Object
	for _, one := range recorded {
		k, err := e.kind(one.Kind)
		if err != nil {
			return nil, fmt.Errorf("read the snapshot: %w", err)
		}
		o := planner.Object{Addr: one.Addr, Kind: one.Kind, ID: one.ID, Name: one.Name, Schema: one.Schema, Digest: one.Digest, Origin: one.From,
			Status: one.Status, Extra: one.Extra, Shared: one.Shared, Fingerprint: one.Fingerprint}
		if o.Observed, err = k.table.read(one.Observed); err != nil {
			return nil, fmt.Errorf("read %s in the snapshot: %w", one.Addr, err)
		}
		switch {
		case one.Unreadable:
		case one.Declared == nil:
			o.Declared = o.Observed
		default:
			if o.Declared, err = k.table.read(one.Declared); err != nil {
				return nil, fmt.Errorf("read %s in the snapshot: %w", one.Addr, err)
			}
		}
		o.DependsOn = e.needs(o)
		out = append(out, o)
	}
	return out, nil
}

// read turns values by path into rows.
func (t *table) read(raw json.RawMessage) ([]planner.Field, error) {
	values, err := parseDeclared(raw)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 && t != nil {
		return nil, nil // an object that could not be looked at has no rows at all
	}
	return t.declared(values), nil
}

// Encode writes the recording. The same look gives the same bytes, but for the moment in it.
func (r *Recording) Encode(w io.Writer) error {
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return fmt.Errorf("encode the snapshot: %w", err)
	}
	return z.Close()
}

// DecodeRecording reads what Encode wrote.
func DecodeRecording(from io.Reader) (*Recording, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("it is not a snapshot (%w)", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxRecording+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is damaged (%w)", err)
	case len(text) > maxRecording:
		return nil, fmt.Errorf("it unpacks to more than %d MiB", maxRecording>>20)
	}
	var head struct{ Format string }
	if err := json.Unmarshal(text, &head); err != nil || head.Format == "" {
		return nil, errors.New("it is not a snapshot")
	}
	if head.Format != recordingFormat {
		return nil, fmt.Errorf("it has the format %q, and this sandplan reads %q", head.Format, recordingFormat)
	}
	r := &Recording{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, fmt.Errorf("it is damaged (%w)", err)
	}
	if _, err := r.snapshot(); err != nil {
		return nil, err
	}
	return r, nil
}
