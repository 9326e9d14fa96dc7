package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Record is what is kept of a run: the predicate of the statement in record.json, as docs/schema/run.json
// describes it.
type Record = record

// ErrNoRecord says that a run has no record, or not yet.
var ErrNoRecord = errors.New("the run has no record.json")

var runID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$`)

// RunIDs are the runs in a data directory, the oldest first.
func RunIDs(dataDir string) ([]string, error) {
	list, err := os.ReadDir(filepath.Join(dataDir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range list {
		if e.IsDir() && runID.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out) // by the time in them
	return out, err
}

// whyNoRecord says what is known of a run without a record: whether it goes on, or its sandplan was killed.
func whyNoRecord(b Begun, err error) string {
	switch {
	case err != nil:
		return "it goes on, or its sandplan was killed"
	case b.Held:
		return fmt.Sprintf("%s goes on", cmp.Or(string(b.Invocation), "it"))
	}
	return fmt.Sprintf("the sandplan that ran %s was killed", cmp.Or(string(b.Invocation), "it"))
}

// ReadRecord reads the record of one run.
func ReadRecord(dataDir, id string) (*Record, error) {
	if !runID.MatchString(id) {
		return nil, fmt.Errorf("%q is not the ID of a run", id)
	}
	dir := filepath.Join(dataDir, "runs", id)
	begun, berr := ReadBegun(dataDir, id) // before the record: who lets go has written it
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: %s", id, ErrNoRecord, whyNoRecord(begun, berr))
	}
	if err != nil {
		return nil, err
	}
	var s statement
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("the record of %s cannot be read: %w", id, err)
	}
	if s.Type != statementType || s.PredicateType != predicateType || s.Predicate == nil || s.Predicate.ID != id {
		return nil, fmt.Errorf("the record of %s is not one that this version of sandplan writes", id)
	}
	s.Predicate.data, s.Predicate.dir = dataDir, dir
	return s.Predicate, nil
}

// Files are the files of a record that are there, by what they hold.
func (rec *record) Files() map[string]string {
	out := map[string]string{}
	for what, name := range map[string]string{"Output": outputFile, "Egress log": egressFile, "Record": recordFile} {
		path := filepath.Join(rec.dir, name)
		if _, err := os.Lstat(path); err == nil {
			out[what] = path
		}
	}
	return out
}
