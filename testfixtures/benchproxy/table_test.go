package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestGoalsCompareWithinRounds: a machine that was slow for a round was slow for everybody in it.
func TestGoalsCompareWithinRounds(t *testing.T) {
	rate := kind{"new tunnels, 1 clients", "/s", more}
	for _, tt := range []struct {
		name         string
		ours, theirs []float64
		met          bool
		reason       string
	}{
		{"ahead in each round", []float64{11, 110, 22}, []float64{10, 100, 20}, true, "1.1 each time"},
		{"behind in most rounds", []float64{9, 90, 90}, []float64{10, 100, 20}, false, "the median of ours is higher, and says nothing"},
		{"equal", []float64{5, 6, 7}, []float64{5, 6, 7}, true, "at least is enough"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var table table
			table.add(rate, "sandplan", tt.ours...)
			table.add(rate, "relay, copy", tt.theirs...)
			table.add(rate, "squid", 1, 1, 1)
			var out strings.Builder
			if met := table.goals(&out); met != tt.met {
				t.Errorf("met: %t, want %t: %s\n%s", met, tt.met, tt.reason, &out)
			}
		})
	}
}

// TestOthersAreSeen: what the bench itself uses is no disturbance, and the rest is.
func TestOthersAreSeen(t *testing.T) {
	w := &world{}
	before := w.others()
	start := cpu(os.Getpid())
	for deadline := time.Now().Add(time.Minute); cpu(os.Getpid()) < start+0.05 && time.Now().Before(deadline); {
		_ = strings.Repeat("x", 1<<10)
	}
	mine, machine := cpu(os.Getpid()), machineTime()
	if mine < start+0.05 || machine < mine {
		t.Errorf("%.2f s of the machine's %.2f s are this test's", mine, machine)
	}
	if others := w.others() - before; others > machine {
		t.Errorf("others took %.2f s of %.2f s", others, machine)
	}
}
