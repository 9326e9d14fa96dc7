package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var rate = kind{"new tunnels, 1 client", "/s", more}

// series adds values round by round; what is 0 is a round in which the contender failed.
func series(t *table, k kind, contender string, values ...float64) {
	for round, v := range values {
		if v == 0 {
			t.fail(k, contender, "read: i/o timeout")
			continue
		}
		t.add(k, contender, round, v)
	}
}

// TestGoalsCompareWithinRounds: a machine that was slow for a round was slow for everybody in it.
func TestGoalsCompareWithinRounds(t *testing.T) {
	for _, tt := range []struct {
		name         string
		ours, theirs []float64
		met          bool
		says         string // the verdict on the goal
		reason       string
	}{
		{"ahead in each round", []float64{11, 110, 22}, []float64{10, 100, 20}, true, "1.10  met", "1.1 each time"},
		{"behind in most rounds", []float64{9, 90, 90}, []float64{10, 100, 20}, false, "0.90  missed", "the median of ours is higher, and says nothing"},
		{"equal", []float64{5, 6, 7}, []float64{5, 6, 7}, true, "1.00  met", "at least is enough"},
		{"of two, both count", []float64{5, 20}, []float64{10, 10}, true, "1.25  met", "the median of an even number lies in the middle"},
		{"a rival failed in the round in which it was ahead of us", []float64{9, 110, 22, 33}, []float64{0, 100, 20, 30}, true, "1.10  met",
			"no ratio of one round to another: the first would be 0.09"},
		{"a rival failed, and is ahead in the others", []float64{11, 9, 90, 9}, []float64{10, 0, 100, 10}, false, "0.90  missed",
			"a failure is not for us, either"},
		{"a rival failed in a third", []float64{9, 9, 9}, []float64{10, 0, 10}, false, "0.90  missed", "two thirds are enough to be held against"},
		{"a rival failed in more", []float64{9, 9, 9, 9, 9}, []float64{10, 0, 10, 10, 0}, true, "-  met: rival failed 2 of 5: read: i/o timeout",
			"it cannot be held against us, and is told"},
		{"a rival failed always", []float64{9, 9}, []float64{0, 0}, true, "-  met: rival failed 2 of 2: read: i/o timeout", "the same"},
		{"ours failed once", []float64{0, 110, 22, 33, 44, 55}, []float64{1, 1, 1, 1, 1, 1}, false,
			"44.00  missed: sandplan failed 1 of 6: read: i/o timeout", "what fails is not fast"},
		{"ours failed always", []float64{0, 0}, []float64{1, 1}, false, "-  missed: sandplan failed 2 of 2", "and has no value"},
		{"both failed", []float64{0, 0}, []float64{0, 0}, false, "-  missed: sandplan failed 2 of 2", "ours counts first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var table table
			series(&table, rate, ours, tt.ours...)
			series(&table, rate, "relay, copy", tt.theirs...)
			var out strings.Builder
			if met := table.report(&out); met != tt.met {
				t.Errorf("met: %t, want %t: %s\n%s", met, tt.met, tt.reason, &out)
			}
			if !strings.Contains(out.String(), "≥ 1.00 × relay, copy") || !strings.Contains(out.String(), tt.says) {
				t.Errorf("no line says %q: %s\n%s", tt.says, tt.reason, &out)
			}
		})
	}
}

// TestBoundsFailToo: rows without a rival are missed, too, when ours fails in one of their rounds.
func TestBoundsFailToo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		met    bool
		says   string
	}{
		{"in bounds", []float64{20, 30, 60}, true, "≤ 50  30.00  met"},
		{"out of bounds", []float64{60, 70, 20}, false, "≤ 50  60.00  missed"},
		{"failed once", []float64{20, 0, 20, 20}, false, "≤ 50  20.00  missed: sandplan failed 1 of 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var table table
			series(&table, kind{"start to ready", "ms", less}, ours, tt.values...)
			var out strings.Builder
			if met := table.report(&out); met != tt.met || !strings.Contains(out.String(), tt.says) {
				t.Errorf("met: %t, want %t and %q\n%s", met, tt.met, tt.says, &out)
			}
		})
	}
}

// TestFailuresAreTold: in the cell how often, and below the table of what.
func TestFailuresAreTold(t *testing.T) {
	var table table
	series(&table, rate, direct, 20, 20, 20, 20)
	series(&table, rate, ours, 10, 10, 10, 10)
	series(&table, rate, "squid", 5, 0, 5, 5)
	table.fail(rate, "tinyproxy", "dial: connection refused")
	table.fail(rate, "tinyproxy", "read: i/o timeout")
	table.fail(rate, "tinyproxy", "read: i/o timeout")
	table.add(rate, "tinyproxy", 3, 1)
	var out strings.Builder
	table.report(&out)
	for _, want := range []string{
		"5 0.25× *", "failed 3 of 4\n",
		"new tunnels, 1 client, squid failed 1 of 4: read: i/o timeout (* those rounds are left out)",
		"new tunnels, 1 client, tinyproxy failed 3 of 4: 2 × read: i/o timeout, 1 × dial: connection refused\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, &out)
		}
	}
}

// TestLost: whoever has failed in more than a third of all rounds need not be waited for in the others.
func TestLost(t *testing.T) {
	var table table
	for i := range 6 {
		if table.lost(rate, "squid", 15) {
			t.Errorf("given up after %d of 15", i)
		}
		table.fail(rate, "squid", "x")
	}
	if !table.lost(rate, "squid", 15) || !table.row(rate).cells["squid"].failed() {
		t.Error("six of fifteen are more than a third")
	}
	if table.lost(rate, "tinyproxy", 15) {
		t.Error("who has not begun has not failed")
	}
}

// TestColumnsStandBelowEachOther, whatever is in them, and fit a terminal of a usual width.
func TestColumnsStandBelowEachOther(t *testing.T) {
	const width = 120
	var table table
	for _, k := range []kind{rate, {"processor per tunnel, 256 clients", "µs", less}} {
		for _, c := range columns() {
			series(&table, k, c, 12345, 12345, 12345)
		}
	}
	series(&table, kind{"5000 idle tunnels, descriptors", "", less}, ours, 10000)
	for _, c := range []string{"squid", "tinyproxy"} {
		for range 15 {
			table.fail(kind{"5000 idle tunnels, descriptors", "", less}, c, "only 812, read: i/o timeout")
		}
	}
	var out strings.Builder
	table.figures(&out)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n != utf8.RuneCountInString(lines[0]) || n > width {
			t.Errorf("a line of %d, the first of %d, and %d are to be had:\n%s", n, utf8.RuneCountInString(lines[0]), width, &out)
		}
	}
	// Each name ends where the cells below it end.
	end := utf8.RuneCountInString(lines[0][:strings.Index(lines[0], "squid")]) + len("squid")
	for _, line := range lines[1:] {
		if r := []rune(line); r[end-1] == ' ' || r[end] != ' ' {
			t.Errorf("the cell of squid does not end at %d:\n%s", end, &out)
		}
	}
}
