package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// bounds are the goals of rows that only sandplan's proxy has.
func bounds() map[string]float64 {
	return map[string]float64{"start to ready": 50, "share of a core, no descriptors": 0.05}
}

// goal is one line of the report.
type goal struct {
	row, goal string
	value     float64 // no number where there is none to hold against
	met       bool
	remark    string // behind the verdict
}

// goals are those of a row. When ours failed, even once, none of them is met; when a rival did, the goal
// cannot be missed, and says so.
func (r *row) goals() (out []goal) {
	mine := r.cells[ours]
	if mine == nil {
		mine = &cell{}
	}
	line := func(what string, value float64, met bool, remark string) {
		if len(mine.failures) > 0 || mine.rounds() == 0 {
			met, remark = false, ours+" "+mine.why()
		}
		out = append(out, goal{r.title(), what, value, met, remark})
	}
	if most, ok := bounds()[r.kind.row]; ok {
		line(fmt.Sprintf("≤ %g", most), mine.value(), mine.value() <= most, "")
		return out
	}
	for _, v := range rivals(r.kind.row) {
		other := r.cells[v.name]
		if other == nil {
			continue // nobody asked for it
		}
		sign, ratio := "≤", mine.over(other)
		met := ratio <= v.factor
		if r.better == more {
			sign, met = "≥", ratio >= v.factor
		}
		what := fmt.Sprintf("%s %.2f × %s", sign, v.factor, v.name)
		if other.failed() {
			line(what, math.NaN(), true, "rival "+other.why())
			continue
		}
		line(what, ratio, met, "")
	}
	return out
}

// report prints the figures, what failed, and one line for each goal, and says whether all were met.
func (t *table) report(w io.Writer) bool {
	t.figures(w)
	t.failures(w)
	lines, all := [][]string{{"", "goal", "value", ""}}, true
	for _, r := range t.rows {
		for _, g := range r.goals() {
			verdict := "met"
			if !g.met {
				verdict, all = "missed", false
			}
			if g.remark != "" {
				verdict += ": " + g.remark
			}
			value := "-"
			if !math.IsNaN(g.value) {
				value = fmt.Sprintf("%.2f", g.value)
			}
			lines = append(lines, []string{g.row, g.goal, value, verdict})
		}
	}
	fmt.Fprintln(w)
	align(w, lines, 2)
	if t.disturbed > 0 {
		fmt.Fprintf(w, "\n%d of %d figures were taken while other programs ran: a quiet machine says more.\n", t.disturbed, t.taken)
	}
	return all
}

// figures prints a line for each row and a column for each contender that took part.
func (t *table) figures(w io.Writer) {
	names := slices.DeleteFunc(columns(), func(name string) bool {
		return !slices.ContainsFunc(t.rows, func(r *row) bool { return r.cells[name] != nil })
	})
	lines, numbers := [][]string{append([]string{""}, names...)}, []int{}
	for i := range names {
		numbers = append(numbers, i+1)
	}
	for _, r := range t.rows {
		line := []string{r.title()}
		for _, name := range names {
			line = append(line, r.text(name))
		}
		lines = append(lines, line)
	}
	align(w, lines, numbers...)
}

// failures prints what failed in which row. The columns have no room for it.
func (t *table) failures(w io.Writer) {
	gap := "\n"
	for _, r := range t.rows {
		for _, name := range columns() {
			c := r.cells[name]
			if c == nil || len(c.failures) == 0 {
				continue
			}
			rest := ""
			if !c.failed() {
				rest = " (* those rounds are left out)"
			}
			fmt.Fprintf(w, "%s%s, %s %s%s\n", gap, r.kind.row, name, c.why(), rest)
			gap = ""
		}
	}
}

// align prints lines in columns that are as wide as they need to be, those named flush right. The last one
// may be as long as it likes.
func align(w io.Writer, lines [][]string, right ...int) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, s := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if slices.Contains(right, i) {
				s = pad + s
			} else {
				s += pad
			}
			b.WriteString("  " + s)
		}
		fmt.Fprintln(w, strings.TrimRight(b.String()[2:], " "))
	}
}
