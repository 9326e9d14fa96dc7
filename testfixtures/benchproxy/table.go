package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// order says which of two values is the better one.
type order bool

const (
	more order = true
	less order = false
)

type cell struct {
	value  float64
	failed string
	set    bool
}

type row struct {
	name   string
	unit   string
	better order
	cells  map[string]cell
}

// table are all figures, in the order in which they were taken.
type table struct{ rows []*row }

func (t *table) row(name string) *row {
	for _, r := range t.rows {
		if r.name == name {
			return r
		}
	}
	r := &row{name: name, cells: map[string]cell{}}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) add(name, contender string, better order, unit string, values []float64) {
	slices.Sort(values)
	r := t.row(name)
	r.better, r.unit = better, unit
	r.cells[contender] = cell{value: values[len(values)/2], set: true}
}

func (t *table) fail(name, contender, why string) {
	t.row(name).cells[contender] = cell{failed: why, set: true}
}

// rival is who a row is held against, and how: by a factor that ours has to reach.
type rival struct {
	name   string
	factor float64
}

// rivals are the goals: as many new tunnels as the relay that copies, the throughput of the one that
// splices, and better than squid and tinyproxy in every row.
func rivals(row string) []rival {
	out := []rival{{"squid", 1}, {"tinyproxy", 1}}
	switch {
	case strings.HasPrefix(row, "processor"):
		return []rival{{"relay, copy", 1}}
	case strings.HasPrefix(row, "new tunnels"):
		out = append([]rival{{"relay, copy", 1}}, out...)
	case strings.HasPrefix(row, "throughput"):
		out = append([]rival{{"relay, splice", 1}}, out...)
	}
	return out
}

// Names of the contenders, in the order of the columns.
func columns() []string {
	return []string{"direct", "sandplan", "relay, copy", "relay, splice", "squid", "tinyproxy"}
}

// bounds are the goals of rows that only sandplan's proxy has.
func bounds() map[string]float64 {
	return map[string]float64{"start to ready": 50, "share of a core, no descriptors": 0.05}
}

// goals prints the figures and one line for each goal, and says whether all were met.
func (t *table) goals(w io.Writer) bool {
	fmt.Fprintf(w, "%-36s", "")
	for _, c := range columns() {
		fmt.Fprintf(w, "%20s", c)
	}
	fmt.Fprintln(w)
	for _, r := range t.rows {
		fmt.Fprintf(w, "%-36s", r.name)
		for _, c := range columns() {
			fmt.Fprintf(w, "%20s", r.text(c))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%-36s %-24s %10s %10s\n", "", "goal", "value", "")
	all := true
	line := func(name, goal string, value float64, met bool) {
		verdict := "met"
		if !met {
			verdict, all = "missed", false
		}
		fmt.Fprintf(w, "%-36s %-24s %10.2f %10s\n", name, goal, value, verdict)
	}
	for _, r := range t.rows {
		ours := r.cells["sandplan"]
		if most, ok := bounds()[r.name]; ok {
			line(r.name, fmt.Sprintf("≤ %g %s", most, r.unit), ours.value, ours.value <= most)
			continue
		}
		for _, v := range rivals(r.name) {
			other := r.cells[v.name]
			switch {
			case !other.set:
				continue
			case ours.failed != "":
				line(r.name, "any", 0, false)
			case other.failed != "":
				line(r.name, "against "+v.name+": "+other.failed, 0, true)
			case r.better == more:
				line(r.name, fmt.Sprintf("≥ %.2f × %s", v.factor, v.name), ours.value/other.value, ours.value >= v.factor*other.value)
			default:
				line(r.name, fmt.Sprintf("≤ %.2f × %s", v.factor, v.name), ours.value/other.value, ours.value <= v.factor*other.value)
			}
		}
	}
	return all
}

// text is a value, with its ratio to the direct way where there is one.
func (r *row) text(contender string) string {
	c := r.cells[contender]
	switch {
	case !c.set:
		return "-"
	case c.failed != "":
		return c.failed
	}
	s := fmt.Sprintf("%.3g %s", c.value, r.unit)
	if c.value >= 1000 {
		s = fmt.Sprintf("%.0f %s", c.value, r.unit)
	}
	if d := r.cells["direct"]; d.set && contender != "direct" {
		s += fmt.Sprintf(" %.2f×", c.value/d.value)
	}
	return s
}
