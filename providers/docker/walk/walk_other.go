//go:build !linux

package walk

import (
	"errors"
	"time"

	"github.com/sandplan/sandplan/planner"
)

// errNotLinux: a safe walk needs openat2.
var errNotLinux = errors.New("worktrees can be looked over on Linux only")

type (
	look struct {
		*Walker
		budget
		began time.Time
	}
	special struct{ budget }
)

func (l look) tree() (planner.Tree, error) { return planner.Tree{}, errNotLinux }

func (s special) tree(string) ([]planner.Mark, error) { return nil, errNotLinux }
