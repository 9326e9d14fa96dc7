//go:build !linux

package probe

import (
	"fmt"
	"io"
)

// Main exists where containers run.
func Main(_ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "sandplan: probe: it runs on Linux only")
	return 125
}

// StartOf is when a process was started; nothing is known of that here.
func StartOf(int) string { return "" }
