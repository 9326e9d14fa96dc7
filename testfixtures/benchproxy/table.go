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

// kind is what a row is about.
type kind struct {
	row    string
	unit   string
	better order
}

// cell are the values of one contender, one for each round.
type cell struct {
	values []float64
	failed string
}

func (c *cell) value() float64 { return median(c.values) }

// median leaves the values as they are.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// over is the ratio of two contenders, the median of the rounds: in a round both met the same machine.
func (c *cell) over(other *cell) float64 {
	if len(c.values) != len(other.values) {
		return c.value() / other.value()
	}
	ratios := make([]float64, len(c.values))
	for i, v := range c.values {
		ratios[i] = v / other.values[i]
	}
	return median(ratios)
}

type row struct {
	kind
	cells map[string]*cell
}

// table are all figures, in the order in which they were taken.
type table struct {
	rows []*row
	// taken are all measurements, disturbed those during which other programs ran.
	taken, disturbed int
}

func (t *table) row(k kind) *row {
	for _, r := range t.rows {
		if r.kind.row == k.row {
			return r
		}
	}
	r := &row{kind: k, cells: map[string]*cell{}}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) add(k kind, contender string, values ...float64) {
	r := t.row(k)
	if r.cells[contender] == nil {
		r.cells[contender] = &cell{}
	}
	c := r.cells[contender]
	c.values = append(c.values, values...)
}

func (t *table) fail(k kind, contender, why string) {
	t.row(k).cells[contender] = &cell{failed: why}
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
		fmt.Fprintf(w, "%-36s", r.kind.row)
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
		if most, ok := bounds()[r.kind.row]; ok {
			line(r.kind.row, fmt.Sprintf("≤ %g %s", most, r.unit), ours.value(), ours.value() <= most)
			continue
		}
		for _, v := range rivals(r.kind.row) {
			other := r.cells[v.name]
			switch {
			case other == nil:
				continue
			case ours.failed != "":
				line(r.kind.row, "any", 0, false)
			case other.failed != "":
				line(r.kind.row, "against "+v.name+": "+other.failed, 0, true)
			case r.better == more:
				line(r.kind.row, fmt.Sprintf("≥ %.2f × %s", v.factor, v.name), ours.over(other), ours.over(other) >= v.factor)
			default:
				line(r.kind.row, fmt.Sprintf("≤ %.2f × %s", v.factor, v.name), ours.over(other), ours.over(other) <= v.factor)
			}
		}
	}
	if t.disturbed > 0 {
		fmt.Fprintf(w, "\n%d of %d figures were taken while other programs ran: a quiet machine says more.\n", t.disturbed, t.taken)
	}
	return all
}

// text is a value, with its ratio to the direct way where there is one.
func (r *row) text(contender string) string {
	c := r.cells[contender]
	switch {
	case c == nil:
		return "-"
	case c.failed != "":
		return c.failed
	}
	s := fmt.Sprintf("%.3g %s", c.value(), r.unit)
	if c.value() >= 1000 {
		s = fmt.Sprintf("%.0f %s", c.value(), r.unit)
	}
	if d := r.cells["direct"]; d != nil && contender != "direct" {
		s += fmt.Sprintf(" %.2f×", c.over(d))
	}
	return s
}
