package planner

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// planFormat is the version of the file's own layout.
const planFormat = "sandplan-plan-1"

// maxPlanSize bounds what a file may unpack to: 500 invocations with their sources need some 5 MB.
const maxPlanSize = 256 << 20

// SavedPlan is what `plan -out` writes and `apply FILE` reads. It holds what the plan was made from and
// what must still be true, and nothing that is executed: whoever applies it seals and compiles the
// specification again. Variables are part of the specification, so the file is as secret as they are.
type SavedPlan struct {
	// Version is the sandplan that made it. Rows differ between versions, so no other may apply it.
	Version  string
	EngineID string
	Scope    Scope
	Options  Options
	// Spec is the evaluated configuration, in a form that only its own package reads.
	Spec []byte
	// Sources are the files that it was read from, for messages.
	Sources    map[string][]byte
	Allocation Allocation
	// Digests are those of everything wanted.
	Digests map[Address]string
	// Seen is every object of the scope that was observed, sorted.
	Seen []Seen
}

// Seen is one object as it was when the plan was made.
type Seen struct {
	Addr        Address
	ID          string
	Status      Status
	Fingerprint string
}

// Remember records in f what must still hold when it is applied: what is wanted and what was seen.
func (f *SavedPlan) Remember(want []Resource, s Snapshot) {
	f.EngineID, f.Scope = s.EngineID, s.Scope
	f.Digests, f.Seen = digests(want), seen(s)
}

func digests(want []Resource) map[Address]string {
	out := make(map[Address]string, len(want))
	for _, r := range want {
		// Not r.Digest: what a compiled resource says of itself proves nothing about its rows.
		out[r.Addr] = Digest(r.Fields)
	}
	return out
}

func seen(s Snapshot) []Seen {
	var out []Seen
	for _, o := range slices.Concat(s.Objects, s.Duplicates) {
		// Images are the engine's: another scope may load or remove them at any time. Their ID is their
		// content, so one that came or went changes nothing but what has to be loaded.
		if !labelled(o.Kind) {
			continue
		}
		out = append(out, Seen{Addr: o.Addr, ID: o.ID, Status: o.Status, Fingerprint: o.Fingerprint})
	}
	for _, c := range s.Conflicts {
		out = append(out, Seen{Addr: c.Addr, ID: c.ID, Fingerprint: "conflict: " + c.Name})
	}
	slices.SortFunc(out, compareSeen)
	return out
}

func compareSeen(a, b Seen) int {
	if n := compareAddresses(a.Addr, b.Addr); n != 0 {
		return n
	}
	return strings.Compare(a.ID, b.ID)
}

// PlanFault is what is wrong with a saved plan.
type PlanFault string

// The faults.
const (
	PlanStale     PlanFault = "stale"         // the engine's objects are not those that it was made from
	PlanEngine    PlanFault = "other engine"  // it was made for another engine
	PlanVersion   PlanFault = "other version" // it was made by another version of sandplan
	PlanTampered  PlanFault = "tampered"      // it does not describe what it says it does
	PlanMalformed PlanFault = "malformed"     // it is not a plan at all, or a damaged one
)

// PlanError says why a saved plan is not applied.
type PlanError struct {
	Fault PlanFault
	// Objects are the addresses that it is about, sorted.
	Objects []Address
	// Text says what was found, and what to do, in full sentences.
	Text string
}

func (e *PlanError) Error() string { return e.Text }

// VerifyVersion fails when another version of sandplan made the plan.
func (f *SavedPlan) VerifyVersion(version string) error {
	if f.Version == version {
		return nil
	}
	return &PlanError{Fault: PlanVersion, Text: fmt.Sprintf("The plan was made by sandplan %s, and this is %s: "+
		"what they declare may differ. Plan again with this one.", orNone(f.Version), version)}
}

// VerifyEngine fails when the plan was made for another engine or scope.
func (f *SavedPlan) VerifyEngine(s Snapshot) error {
	switch {
	case f.EngineID != s.EngineID:
		return &PlanError{Fault: PlanEngine, Text: fmt.Sprintf("The plan was made for engine %s, and this is engine %s. "+
			"Plan and apply in one job, with the same engine.", orNone(f.EngineID), orNone(s.EngineID))}
	case f.Scope != s.Scope:
		return &PlanError{Fault: PlanEngine, Text: fmt.Sprintf("The plan was made for the scope %s, and this is %s.",
			f.Scope, s.Scope)}
	}
	return nil
}

// VerifyFresh fails when an object was changed, removed or added since the plan was made.
func (f *SavedPlan) VerifyFresh(s Snapshot) error {
	now := seen(s)
	was := map[Seen]bool{}
	for _, o := range f.Seen {
		was[o] = true
	}
	var lines []string
	var at []Address
	note := func(o Seen, what string) {
		if !slices.Contains(at, o.Addr) {
			at = append(at, o.Addr)
			lines = append(lines, string(o.Addr)+" "+what)
		}
	}
	for _, o := range now {
		switch {
		case was[o]:
		case slices.ContainsFunc(f.Seen, func(p Seen) bool { return p.Addr == o.Addr && p.ID == o.ID }):
			note(o, "has changed")
		case slices.ContainsFunc(f.Seen, func(p Seen) bool { return p.Addr == o.Addr }):
			note(o, "is another object")
		default:
			note(o, "is new")
		}
	}
	for _, o := range f.Seen {
		if !slices.ContainsFunc(now, func(p Seen) bool { return p.Addr == o.Addr && p.ID == o.ID }) {
			note(o, "is gone")
		}
	}
	if len(at) == 0 {
		return nil
	}
	SortAddresses(at)
	return &PlanError{Fault: PlanStale, Objects: at, Text: "The plan is stale; since it was made, " +
		strings.Join(lines, ", ") + ". Plan again."}
}

// VerifyWanted fails when the specification in the file does not compile to what the file says it does.
func (f *SavedPlan) VerifyWanted(want []Resource) error {
	now := digests(want)
	var at []Address
	for a, digest := range now {
		if f.Digests[a] != digest {
			at = append(at, a)
		}
	}
	for a := range f.Digests {
		if _, ok := now[a]; !ok {
			at = append(at, a)
		}
	}
	if len(at) == 0 {
		return nil
	}
	SortAddresses(at)
	return &PlanError{Fault: PlanTampered, Objects: at, Text: fmt.Sprintf("What the plan says of %s is not what its "+
		"configuration compiles to: the file was changed after it was made, or the worktrees and images that it "+
		"is about were. Plan again.", listAddresses(at))}
}

func listAddresses(as []Address) string {
	const most = 3
	var names []string
	for _, a := range as {
		names = append(names, string(a))
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(as)-most))
	}
	return strings.Join(names, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// envelope is the file: the layout's version beside the plan, so that it can be read first.
type envelope struct {
	Format string
	Plan   json.RawMessage
}

// Encode writes the plan as it stands in a file. The same plan gives the same bytes.
func (f *SavedPlan) Encode(w io.Writer) error {
	plan, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(envelope{Format: planFormat, Plan: plan}); err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	return z.Close()
}

// DecodePlan reads what Encode wrote. Anything else is a *PlanError.
func DecodePlan(r io.Reader) (*SavedPlan, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, malformed("it is not a saved plan (%v)", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxPlanSize+1))
	switch {
	case err != nil:
		return nil, malformed("it is damaged (%v)", err)
	case len(text) > maxPlanSize:
		return nil, malformed("it unpacks to more than %d MiB", maxPlanSize>>20)
	}
	var e envelope
	if err := decodeStrictly(text, &e); err != nil {
		return nil, malformed("it is not a saved plan (%v)", err)
	}
	if e.Format != planFormat {
		return nil, &PlanError{Fault: PlanVersion, Text: fmt.Sprintf("The plan has the format %q, and this sandplan reads %q. "+
			"Plan again with this one.", e.Format, planFormat)}
	}
	f := &SavedPlan{}
	if err := decodeStrictly(e.Plan, f); err != nil {
		return nil, malformed("it is damaged (%v)", err)
	}
	return f, nil
}

func malformed(format string, args ...any) error {
	return &PlanError{Fault: PlanMalformed, Text: "The file cannot be applied: " + fmt.Sprintf(format, args...) + "."}
}

// decodeStrictly reads one JSON value and nothing else. What it does not know is an error: nothing in a plan
// may be without effect.
func decodeStrictly(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

// WritePlan puts the plan into a file that only its owner can read. The file is there as a whole or not
// at all, whatever happens on the way.
func WritePlan(path string, f *SavedPlan) error { return WriteWhole(path, "plan", f.Encode) }

// WriteWhole writes a file in the way of WritePlan; what says in errors what it is.
func WriteWhole(path, what string, encode func(io.Writer) error) (err error) {
	// Renaming over a device, a FIFO or a link would take it away from everybody: as root, -out=/dev/null
	// would cost the machine its /dev/null.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("write the %s: %s is there already and no regular file; -out takes the name of a new file, or of an older %s", what, path, what)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".sandplan-"+what+"-*") // mode 0600
	if err != nil {
		// Not the name of the temporary file, which nobody has heard of.
		var wrong *os.PathError
		if errors.As(err, &wrong) {
			err = wrong.Err
		}
		return fmt.Errorf("write the %s %s: %w", what, path, err)
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
			err = fmt.Errorf("write the %s: %w", what, err)
		}
	}()
	if err = encode(tmp); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// ReadPlan reads a file that WritePlan wrote.
func ReadPlan(path string) (*SavedPlan, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w; a plan is saved by sandplan plan -out=FILE", err)
	}
	defer file.Close()
	return DecodePlan(file)
}
