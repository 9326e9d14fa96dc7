package docker

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"github.com/sandplan/sandplan/planner/policy"
)

// home is what files of the declaration are named relative to, so that two checkouts of one repository
// declare the same.
func (b *builder) home() string {
	if p := b.engine.paper; p != nil && p.root != "" {
		return p.root
	}
	return b.spec.Dir
}

// sourceOf stands for where a credential comes from, as a digest: the container shows it to the agent, and it
// is in labels, plans and snapshots, where neither a path of the host belongs, nor a secret that somebody
// wrote in place of the name of a variable. Its 128 bits are enough that nobody finds another path or name with
// the same digest: whoever may write the declaration has all the time to look for one.
func sourceOf(c policy.Credential, home string) string {
	kind, name := "env", c.SourceEnv
	if c.SourceFile != "" {
		kind, name = "file", c.SourceFile
		if rel, err := filepath.Rel(home, name); err == nil && home != "" && within(home, name) {
			name = "./" + rel
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s:%.16x", kind, sha256.Sum256([]byte(name)))
}
