package main

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

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

// TestFailuresOfContenders: a rival's failure is a figure that is missing, in a round that is left out; one of
// the direct way ends the run; ours may not fail even while it warms up.
func TestFailuresOfContenders(t *testing.T) {
	timeout := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{Port: 1}, Err: os.ErrDeadlineExceeded}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	run := func(fails func(name string, call int) error) (*table, map[string]int, error) {
		w, tab, calls := &world{}, &table{}, map[string]int{}
		for _, name := range []string{direct, ours, "squid"} {
			w.contenders = append(w.contenders, contender{name: name})
		}
		err := w.inTurn(options{rounds: 6}, tab, []kind{rate, {"processor", "µs", less}}, func(c contender) ([]float64, error) {
			calls[c.name]++ // the first is the warm-up
			return []float64{float64(calls[c.name]), 1}, fails(c.name, calls[c.name])
		})
		return tab, calls, err
	}
	at := func(who string, err error, rounds ...int) func(string, int) error {
		return func(name string, call int) error {
			if name == who && slices.Contains(rounds, call-1) {
				return err
			}
			return nil
		}
	}
	t.Run("a rival", func(t *testing.T) {
		tab, _, err := run(at("squid", timeout, 0, 2, 5))
		c := tab.row(rate).cells["squid"]
		if err != nil || len(c.failures) != 2 || c.failures[0] != "read: i/o timeout" || len(c.values) != 4 || c.values[3] != 4 || c.failed() {
			t.Errorf("%v, %+v", err, c)
		}
		if second := tab.rows[1].cells["squid"]; len(second.failures) != 2 {
			t.Errorf("the other figure of the measurement: %+v", second)
		}
	})
	t.Run("a rival, too often", func(t *testing.T) {
		tab, calls, err := run(at("squid", refused, 1, 2, 3, 4, 5, 6))
		if c := tab.row(rate).cells["squid"]; err != nil || c.why() != "failed 3 of 3: dial: connection refused" || calls["squid"] != 4 {
			t.Errorf("%v, %s after %d calls", err, c.why(), calls["squid"])
		}
		if n := len(tab.row(rate).cells[ours].values); n != 6 {
			t.Errorf("%d rounds of ours", n)
		}
	})
	t.Run("ours in the warm-up", func(t *testing.T) {
		tab, _, err := run(at(ours, io.ErrUnexpectedEOF, 0))
		if c := tab.row(rate).cells[ours]; err != nil || c.why() != "failed 1 of 7: closed without an answer" {
			t.Errorf("%v, %s", err, c.why())
		}
	})
	t.Run("the direct way", func(t *testing.T) {
		if _, _, err := run(at(direct, timeout, 3)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: without it there is nothing to measure by", err)
		}
	})
}
