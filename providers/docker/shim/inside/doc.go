// Package inside holds what a container found out about itself against what is declared of it. The first
// processes of agents and proxies judge with it, and so does whoever reads a proxy's ready line, so that the
// same thing is wrong for all of them. It only judges: it opens no file and asks no kernel.
//
// Start with Proxy, which is everything that a proxy must find.
package inside

import (
	"fmt"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// findings collects checks.
type findings []wire.Check

// add records one. The detail, for one that fails, says what was found and what was declared.
func (f *findings) add(name string, ok bool, format string, args ...any) {
	check := wire.Check{Name: name, OK: ok}
	if !ok {
		check.Detail = fmt.Sprintf(format, args...)
	}
	*f = append(*f, check)
}

// wrong records one that holds when nothing is wrong.
func (f *findings) wrong(name string, wrong []string) {
	f.add(name, len(wrong) == 0, "%s", strings.Join(wrong, "; "))
}
