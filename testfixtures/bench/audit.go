package main

import (
	"fmt"
	"time"
)

// auditLimit is what an audit may take beside the calls that it needs.
const auditLimit = 1.3

// audit measures drift of a scope in which nothing has drifted, beside its bare calls: those of a plan, since
// both look at the same.
func (b *bench) audit(n int) ([]goal, error) {
	start, err := b.processStart()
	if err != nil {
		return nil, err
	}
	var goals []goal
	for _, one := range []struct {
		name string
		args []string
	}{{"drift audit", []string{"drift"}}, {"drift audit as SARIF", []string{"drift", "-format=sarif"}}} {
		ours, bare, err := sideBySide(7, func() (time.Duration, error) {
			u, err := b.sandplan(one.args...) // fails unless all is as declared
			if err != nil {
				return 0, err
			}
			return u.wall, nil
		}, func() (time.Duration, error) {
			t := time.Now()
			err := b.engine.barePlan(project)
			return time.Since(t) + start, err
		})
		if err != nil {
			return nil, err
		}
		goals = append(goals, goal{fmt.Sprintf("%s of %d invocations / bare calls", one.name, n), ours.Seconds() / bare.Seconds(), auditLimit, "×",
			fmt.Sprintf("%.0f ms, bare %.0f ms", ours.Seconds()*1000, bare.Seconds()*1000)})
	}
	return goals, nil
}
