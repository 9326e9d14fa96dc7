package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// goal is one line of the report: a value and what it must not exceed.
type goal struct {
	name  string
	value float64
	limit float64
	unit  string // "×", "s", "MB"
	note  string
}

func (g goal) met() bool { return g.value <= g.limit }

// report prints every goal and says whether all were met.
func report(w io.Writer, goals []goal) bool {
	all := true
	fmt.Fprintf(w, "\n%-44s %10s %10s  %s\n", "", "goal", "value", "")
	for _, g := range goals {
		verdict := "met"
		if !g.met() {
			verdict, all = "missed", false
		}
		fmt.Fprintf(w, "%-44s %10s %10s  %-6s  %s\n", g.name, fmt.Sprintf("≤ %.4g %s", g.limit, g.unit),
			fmt.Sprintf("%.3g %s", g.value, g.unit), verdict, g.note)
	}
	return all
}

func median(ds []time.Duration) time.Duration {
	sorted := slices.Clone(ds)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// sideBySide runs the two alternately, so that both meet the same machine, and returns their medians.
func sideBySide(rounds int, a, b func() (time.Duration, error)) (ma, mb time.Duration, err error) {
	var as, bs []time.Duration
	for range rounds {
		da, err := a()
		if err != nil {
			return 0, 0, err
		}
		db, err := b()
		if err != nil {
			return 0, 0, err
		}
		as, bs = append(as, da), append(bs, db)
	}
	return median(as), median(bs), nil
}
