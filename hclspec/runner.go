package hclspec

import (
	"sort"
	"time"
)

var runnerShape = &shape{label: "name", required: []string{"argv", "image"}, optional: []string{"timeout"}}

// decodeRunners reads the runner blocks of a phase.
func decodeRunners(r *reader) []Runner {
	sections, diags := unique(r.inner("runner"), "runner")
	r.diags = append(r.diags, diags...)
	var out []Runner
	for _, s := range sections {
		rr := r.inside(s)
		rr.diags = append(rr.diags, s.checkName()...)
		out = append(out, Runner{
			Name:    s.name,
			Argv:    read(rr, "argv", argv, nil),
			Image:   read(rr, "image", image, ""),
			Timeout: read(rr, "timeout", timeout, 10*time.Minute),
			Range:   s.block.DefRange,
		})
		r.diags = append(r.diags, rr.diags...)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
