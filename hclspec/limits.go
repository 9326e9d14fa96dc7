package hclspec

import (
	"fmt"
	"math"

	"github.com/zclconf/go-cty/cty"
)

var limitsShape = &shape{optional: []string{"memory", "cpus", "pids", "output", "upload", "download", "tunnels", "tunnels_per_second"}, once: true}

// Defaults of the limits block.
const (
	defaultMemory = 2 << 30
	defaultCPUs   = 2
	defaultPIDs   = 256
	defaultOutput = 10 << 20
	defaultUpload = 64 << 20

	defaultTunnels          = 256
	defaultTunnelsPerSecond = 100
)

// NoBound is the value of a size that nothing bounds: that of limits.download where it is left out.
const NoBound = 0

// MaxTunnels is what a proxy can hold whatever goes through: its container has 4,096 descriptors, and a tunnel
// that carries much both ways takes six. Were there fewer, new tunnels would fail for want of a descriptor
// instead of being refused for their number. Of its 128 MiB so many idle tunnels took 33, and their buffers, when
// all of them are full, are 40 more.
const MaxTunnels = 640

// cpus is a number of CPUs in hundredths.
var cpus = format[float64]{summary: InvalidNumber, want: cty.Number, parse: func(v cty.Value) (float64, error) {
	n, _ := v.AsBigFloat().Float64()
	// 0.07 has no exact binary form, so the nearest hundredth is compared with a margin.
	hundredths := n * 100
	if n < 0.01 || n > 1024 || math.Abs(hundredths-math.Round(hundredths)) > 1e-6 {
		return 0, fmt.Errorf("%s is not a number of CPUs: from 0.01 to 1024, in steps of 0.01", v.AsBigFloat().Text('g', 10))
	}
	return n, nil
}}

// decodeLimits reads the limits block of an invocation. Without one, the defaults hold.
func decodeLimits(r *reader) Limits {
	lr := r.inside(&section{shape: limitsShape, block: r.block})
	if b := r.inner("limits"); len(b) > 0 {
		lr = r.inside(b[0])
	}
	l := Limits{
		Memory: read(lr, "memory", size(64<<20, 1<<40), defaultMemory),
		CPUs:   read(lr, "cpus", cpus, defaultCPUs),
		// The shim and the CLI's own threads need more than a dozen.
		PIDs:   read(lr, "pids", wholeNumber(16, 1<<20), defaultPIDs),
		Output: read(lr, "output", size(1<<10, 1<<40), defaultOutput),
		Upload: read(lr, "upload", size(1<<10, 1<<40), defaultUpload),
		// What comes in carries nothing out: only who wants a bound has one.
		Download:         read(lr, "download", size(1<<10, 1<<40), NoBound),
		Tunnels:          read(lr, "tunnels", wholeNumber(1, MaxTunnels), defaultTunnels),
		TunnelsPerSecond: read(lr, "tunnels_per_second", wholeNumber(1, 10_000), defaultTunnelsPerSecond),
	}
	r.diags = append(r.diags, lr.diags...)
	return l
}
