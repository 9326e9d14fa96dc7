//go:build linux

package shim

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// cgroupDir is where engines show a container its own control group.
const cgroupDir = "/sys/fs/cgroup"

// noLimit is what wire.Limits has for a limit that does not exist.
const noLimit = -1

// proveLimits compares the limits of the container's control group, of version 1 or 2.
func proveLimits(cfg *Config, out *wire.Limits) checks {
	var c checks
	got, swap, err := readLimits(func(name string) (string, error) {
		b, err := os.ReadFile(cgroupDir + "/" + name)
		return strings.TrimSpace(string(b)), err
	})
	*out = got
	if err != nil {
		c.fail("limits", err)
		return c
	}
	want := cfg.Limits
	if want.Memory > 0 {
		// The kernel rounds down to pages.
		c.add("limits.memory", got.Memory > 0 && got.Memory <= want.Memory, "memory %d, declared %d", got.Memory, want.Memory)
		c.add("limits.swap", swap <= 0 && swap != noLimit, "swap %d (-1: without limit), declared none", swap)
	}
	if want.PIDs > 0 {
		c.add("limits.pids", got.PIDs > 0 && got.PIDs <= want.PIDs, "processes %d, declared %d", got.PIDs, want.PIDs)
	}
	if want.NanoCPUs > 0 {
		cpus := float64(want.NanoCPUs) / 1e9
		// Quotas are in microseconds.
		c.add("limits.cpus", got.CPUs > 0 && got.CPUs <= cpus+0.001, "CPUs %.3f, declared %.3f", got.CPUs, cpus)
	}
	return c
}

// readLimits returns the limits, and how much swap may be used beyond memory. A kernel that does not
// account swap at all has no file for it; the engine says so when it starts, and the shim cannot.
func readLimits(read func(string) (string, error)) (l wire.Limits, swap int64, err error) {
	l = wire.Limits{Memory: noLimit, PIDs: noLimit, CPUs: noLimit}
	if _, v2 := read("cgroup.controllers"); v2 == nil {
		return readLimitsV2(read)
	}
	memory, err := number(read("memory/memory.limit_in_bytes"))
	if err != nil {
		return l, 0, err
	}
	l.Memory = memory
	if both, err := number(read("memory/memory.memsw.limit_in_bytes")); err == nil {
		if swap = both - memory; both == noLimit {
			swap = noLimit
		}
	}
	if l.PIDs, err = number(read("pids/pids.max")); err != nil {
		return l, 0, err
	}
	quota, err := number(read("cpu/cpu.cfs_quota_us"))
	if err != nil {
		return l, 0, err
	}
	period, err := number(read("cpu/cpu.cfs_period_us"))
	if err != nil {
		return l, 0, err
	}
	l.CPUs = cpus(quota, period)
	return l, swap, nil
}

func readLimitsV2(read func(string) (string, error)) (l wire.Limits, swap int64, err error) {
	l = wire.Limits{Memory: noLimit, PIDs: noLimit, CPUs: noLimit}
	if l.Memory, err = number(read("memory.max")); err != nil {
		return l, 0, err
	}
	if n, err := number(read("memory.swap.max")); err == nil {
		swap = n
	}
	if l.PIDs, err = number(read("pids.max")); err != nil {
		return l, 0, err
	}
	text, err := read("cpu.max")
	if err != nil {
		return l, 0, err
	}
	quotaText, periodText, _ := strings.Cut(text, " ")
	quota, err := number(quotaText, nil)
	if err != nil {
		return l, 0, err
	}
	period, err := number(periodText, nil)
	if err != nil {
		return l, 0, err
	}
	l.CPUs = cpus(quota, period)
	return l, swap, nil
}

// number reads a limit: "max", a negative number and one above any machine are none.
func number(text string, err error) (int64, error) {
	if err != nil {
		return noLimit, err
	}
	if text == "max" {
		return noLimit, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return noLimit, fmt.Errorf("a limit that is no number: %w", err)
	}
	if n < 0 || n >= math.MaxInt64/4096*4096 {
		return noLimit, nil
	}
	return n, nil
}

func cpus(quota, period int64) float64 {
	if quota <= 0 || period <= 0 {
		return noLimit
	}
	return float64(quota) / float64(period)
}

// oomKills counts how often the kernel has killed a process of the container for want of memory.
func oomKills() int64 {
	for _, name := range []string{"/memory.events", "/memory/memory.oom_control"} {
		b, err := os.ReadFile(cgroupDir + name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				return n
			}
		}
	}
	return 0
}
