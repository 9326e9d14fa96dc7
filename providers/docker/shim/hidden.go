//go:build linux

package shim

import (
	"os"
	"slices"
	"strings"
)

// MaskedPaths are the paths that containers must not see: what any engine from 20.10 to 28.5 hides by
// itself. A path that the kernel does not have is hidden as it is.
func MaskedPaths() []string {
	return []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"}
}

// ReadonlyPaths are the parts of proc that containers may read and not write.
func ReadonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// proveHidden compares the mount table with both lists.
func proveHidden(lines []mountLine) checks {
	bare := func(paths []string, ok func(m mountLine) bool) (open []string) {
		for _, p := range paths {
			covered := slices.ContainsFunc(lines, func(m mountLine) bool { return m.path == p && ok(m) })
			if _, err := os.Lstat(p); err == nil && !covered {
				open = append(open, p)
			}
		}
		return open
	}
	var c checks
	open := bare(MaskedPaths(), func(m mountLine) bool { return m.fsType != "proc" && m.masks() })
	c.add("proc.masked", len(open) == 0, "not hidden: %s", strings.Join(open, ", "))
	open = bare(ReadonlyPaths(), func(m mountLine) bool { return m.masks() })
	c.add("proc.readonly", len(open) == 0, "not read-only: %s", strings.Join(open, ", "))
	return c
}
