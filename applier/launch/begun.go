package launch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// begunFile says from the beginning of a run on whose it is. The process that runs it holds a lock on it
// (flock(2)) until the record is written, which the kernel takes away with the process, however it ends: so a
// run that goes on can be told from one whose sandplan was killed, and nobody has to ask an engine.
const begunFile = "begun.json"

// Begun is what is known of a run before it has a record.
type Begun struct {
	Invocation planner.Address `json:"invocation"`
	Runner     string          `json:"runner,omitempty"`
	// At is when it got its lease. IDs of runs hold when they were asked for: who waits longer begins later.
	At time.Time `json:"at"`
	// Held says that its sandplan may still be there. Without it nothing is written any more.
	Held bool `json:"-"`
}

// ReadBegun reads what a run wrote when it began. What cannot be read of it is empty: a machine may have lost
// its power meanwhile.
func ReadBegun(dataDir, id string) (Begun, error) {
	var b Begun
	f, err := os.Open(filepath.Join(dataDir, "runs", id, begunFile))
	if err != nil {
		return b, err
	}
	defer f.Close()
	if json.NewDecoder(f).Decode(&b) != nil {
		b = Begun{}
	}
	// What is unclear counts as alive, as it does for the locks on the engine.
	b.Held = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
	return b, nil
}

// begin makes the directory of a run, and the file. It has its name only once it is held.
func (rec *record) begin(at time.Time) {
	if rec.dir == "" {
		return
	}
	if rec.failed = rec.makeDir(); rec.failed != nil {
		return
	}
	name := filepath.Join(rec.dir, begunFile)
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		rec.failed = err
		return
	}
	rec.begun = f
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) {
		err = nil // file systems without such locks: no reader gets one either
	}
	if err == nil {
		err = json.NewEncoder(f).Encode(Begun{Invocation: rec.Invocation, Runner: rec.Runner, At: at})
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	rec.failed = err
}

// letGo ends the holding, when all of the record is there.
func (rec *record) letGo() error {
	if rec.begun == nil {
		return nil
	}
	return rec.begun.Close()
}

// forget removes what begin made, of a run that gets no record.
func (rec *record) forget() error {
	if rec.begun == nil {
		return nil
	}
	// The directory first: nobody finds a run here that is over and has nothing.
	return errors.Join(os.RemoveAll(rec.dir), rec.letGo())
}
