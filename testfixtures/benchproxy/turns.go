package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tolerable is how much of a core other programs may take while a figure is taken.
const tolerable = 0.15

// inTurn measures every contender in each round: what slows the machine down for a while slows all of them
// down, and ratios within a round stay what they are. Each round begins with another contender, since the one
// before leaves the processors awake or asleep. The first round warms up and does not count, but for ours,
// which may not fail in it either. Without the direct way there is nothing to measure by.
func (w *world) inTurn(o options, t *table, of []kind, measure func(contender) ([]float64, error)) error {
	for round := range o.rounds + 1 {
		for i := range w.contenders {
			c := w.contenders[(i+round)%len(w.contenders)]
			if t.lost(of[0], c.name, o.rounds) {
				continue
			}
			values, err := w.quietly(t, func() ([]float64, error) { return measure(c) })
			if err != nil && c.name == direct {
				return fmt.Errorf("%s, %s: %w", of[0].row, c.name, err)
			}
			for j, k := range of {
				switch {
				case err != nil && (round > 0 || c.name == ours):
					t.fail(k, c.name, cause(err))
				case round > 0 && j < len(values):
					t.add(k, c.name, round, values[j])
				}
			}
		}
	}
	return nil
}

// cause is what failed, without the addresses, which are others each time.
func cause(err error) string {
	var op *net.OpError
	var call *os.SyscallError
	switch {
	case errors.As(err, &op) && errors.As(op.Err, &call):
		return op.Op + ": " + call.Err.Error()
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "closed without an answer"
	}
	return err.Error()
}

// quietly takes figures when no other program runs, and again when one did, while there is patience left. It
// counts those that stay disturbed.
func (w *world) quietly(t *table, measure func() ([]float64, error)) (values []float64, err error) {
	t.taken++
	for {
		const moment = 50 * time.Millisecond
		for w.patience > 0 && w.disturbed(func() { time.Sleep(moment) }) {
			w.patience -= moment
		}
		start := time.Now()
		if !w.disturbed(func() { values, err = measure() }) || err != nil {
			return values, err
		}
		if w.patience -= time.Since(start); w.patience <= 0 {
			t.disturbed++
			return values, nil
		}
	}
}

// disturbed says whether other programs ran while something was done.
func (w *world) disturbed(do func()) bool {
	others, start := w.others(), time.Now()
	do()
	return w.others()-others > tolerable*time.Since(start).Seconds()
}

// others is the processor time so far, in seconds, that nothing of the bench has used.
func (w *world) others() float64 {
	used := machineTime() - cpu(os.Getpid())
	for _, p := range w.procs {
		used -= cpu(p.Process.Pid)
	}
	return used
}

// machineTime is the processor time of the machine so far, in seconds.
func machineTime() float64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	total := 0.0
	for i, s := range strings.Fields(line) {
		// user, nice, system, then idle and waiting, then interrupts; guests stand in user already.
		if n, err := strconv.ParseFloat(s, 64); err == nil && i != 4 && i != 5 && i < 8 {
			total += n / 100
		}
	}
	return total
}

// cpu is the processor time of a process so far, in seconds.
func cpu(pid int) float64 {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	total := 0.0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has just ended
		}
		var ns float64
		if _, err := fmt.Sscan(string(b), &ns); err == nil {
			total += ns / 1e9
		}
	}
	return max(total, cpuTicks(pid))
}

// cpuTicks counts threads that have ended too, in hundredths of a second.
func cpuTicks(pid int) float64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses, which may hold anything.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // USER_HZ, on every architecture that we know
}
