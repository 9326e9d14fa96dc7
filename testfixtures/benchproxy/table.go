package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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

// title is the row's name with the unit of its values.
func (k kind) title() string {
	if k.unit == "" {
		return k.row
	}
	return k.row + ", " + k.unit
}

// ours is the name of sandplan's proxy among the contenders, and direct that of no proxy at all.
const (
	direct = "direct"
	ours   = "sandplan"
)

// Names of the contenders, in the order of the columns.
func columns() []string {
	return []string{direct, ours, "relay, copy", "relay, splice", "squid", "tinyproxy"}
}

// cell are the values of one contender, by round. A round in which it failed has none: it is left out, and
// counts neither for nor against anybody.
type cell struct {
	values   map[int]float64
	failures []string // what failed, one for each round
}

// rounds are how many rounds it took part in.
func (c *cell) rounds() int { return len(c.values) + len(c.failures) }

// failed says that too few rounds are left to be held against: more than a third are missing.
func (c *cell) failed() bool { return 3*len(c.failures) > c.rounds() }

func (c *cell) value() float64 { return median(slices.Collect(maps.Values(c.values))) }

// median leaves the values as they are; that of none is no number.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// over is the ratio of two contenders, the median of the rounds that both have: in a round both met the same
// machine.
func (c *cell) over(other *cell) float64 {
	var ratios []float64
	for round, v := range c.values {
		if o, ok := other.values[round]; ok {
			ratios = append(ratios, v/o)
		}
	}
	return median(ratios)
}

// why says how often it failed in how many rounds, and of what, the most frequent first.
func (c *cell) why() string {
	often := map[string]int{}
	for _, f := range c.failures {
		often[f]++
	}
	kinds := slices.SortedFunc(maps.Keys(often), func(a, b string) int {
		return cmp.Or(often[b]-often[a], strings.Compare(a, b))
	})
	for i, k := range kinds {
		if len(kinds) > 1 {
			kinds[i] = fmt.Sprintf("%d × %s", often[k], k)
		}
	}
	return fmt.Sprintf("failed %d of %d: %s", len(c.failures), c.rounds(), strings.Join(kinds, ", "))
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

func (t *table) cell(k kind, contender string) *cell {
	r := t.row(k)
	if r.cells[contender] == nil {
		r.cells[contender] = &cell{values: map[int]float64{}}
	}
	return r.cells[contender]
}

func (t *table) add(k kind, contender string, round int, value float64) {
	t.cell(k, contender).values[round] = value
}

// fail notes that a contender has no value in a round.
func (t *table) fail(k kind, contender, why string) {
	c := t.cell(k, contender)
	c.failures = append(c.failures, why)
}

// lost says whether a contender has failed so often that it fails of all these rounds: more of them need
// not be waited for.
func (t *table) lost(k kind, contender string, rounds int) bool {
	c := t.row(k).cells[contender]
	return c != nil && 3*len(c.failures) > rounds
}

// text is a value, with its ratio to the direct way where there is one.
func (r *row) text(contender string) string {
	c := r.cells[contender]
	switch {
	case c == nil:
		return "-"
	case c.failed():
		return fmt.Sprintf("failed %d of %d", len(c.failures), c.rounds())
	}
	s := fmt.Sprintf("%.3g", c.value())
	if c.value() >= 1000 {
		s = fmt.Sprintf("%.0f", c.value())
	}
	if d := r.cells[direct]; d != nil && contender != direct {
		s += fmt.Sprintf(" %.2f×", c.over(d))
	}
	if len(c.failures) > 0 {
		s += " *"
	}
	return s
}
