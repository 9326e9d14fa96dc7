package docker

import (
	"slices"
	"testing"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// TestHiddenPaths: what any of the tested engines hides by default is hidden on all of them, and looked for
// from the inside.
func TestHiddenPaths(t *testing.T) {
	first := []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/timer_list", "/proc/timer_stats", "/sys/firmware"}
	for engine, hidden := range map[string][]string{
		"20.10": first, "26.1": append(slices.Clone(first), "/sys/devices/virtual/powercap"),
		"28.5": append(slices.Clone(first), "/sys/devices/virtual/powercap", "/proc/interrupts"),
	} {
		for _, path := range hidden {
			if !slices.Contains(maskedPaths(), path) {
				t.Errorf("%s hides %s, and sandplan does not", engine, path)
			}
		}
	}
	if !slices.Equal(maskedPaths(), shim.MaskedPaths()) {
		t.Errorf("declared are %q, and the proof looks for %q", maskedPaths(), shim.MaskedPaths())
	}
	host := hardenedHost(limits{}, AgentSeccomp())
	if !slices.Equal(host.MaskedPaths, maskedPaths()) || !slices.Equal(host.ReadonlyPaths, shim.ReadonlyPaths()) {
		t.Errorf("containers hide %q and write-protect %q", host.MaskedPaths, host.ReadonlyPaths)
	}
}

// TestShimVolumeIsNamedByItsProgram: another program is in another volume, so that an upgrade needs no
// agent to let go of the one that it uses.
func TestShimVolumeIsNamedByItsProgram(t *testing.T) {
	scope := planner.Scope{Project: "p", Workspace: "w"}
	one, two := desiredShim{scope: scope, image: "sha256:1"}, desiredShim{scope: scope, image: "sha256:2"}
	if one.name() == two.name() || one.seedSpec().name == two.seedSpec().name {
		t.Errorf("two programs share the volume %s, or its seed %s", one.name(), one.seedSpec().name)
	}
	if again := (desiredShim{scope: scope, image: "sha256:1"}); again.name() != one.name() {
		t.Errorf("one program is in two volumes: %s, %s", one.name(), again.name())
	}
}
