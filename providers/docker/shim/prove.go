//go:build linux

package shim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandplan/sandplan/providers/docker/shim/inside"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// proof is what was found inside, and what it was found from: the guard compares with it later.
type proof struct {
	report wire.Report
	mounts []mountLine
	links  []link
	// resolver answers the command's lookups for as long as the proof is worth something.
	resolver *resolver
}

// checks collects what one part of the proof found.
type checks []wire.Check

// add records one finding. The detail, for one that fails, says what was found and what was declared.
func (c *checks) add(name string, ok bool, format string, args ...any) {
	check := wire.Check{Name: name, OK: ok}
	if !ok {
		check.Detail = fmt.Sprintf(format, args...)
	}
	*c = append(*c, check)
}

// fail records that something could not be found out. What is not known is not proven.
func (c *checks) fail(name string, err error) { c.add(name, false, "%v", err) }

// prove tries everything. No part waits for another: most of the time goes into packets that must
// find no way.
func prove(cfg *Config, ch wire.Challenge) *proof {
	began := time.Now()
	p := &proof{report: wire.Report{Nonce: ch.Nonce}}
	rep := &p.report
	first := proveAlone() // before the other parts open files
	var err error
	if p.resolver, err = startResolver(); err != nil {
		first.fail("dns.listen", err)
	}
	parts := []func() checks{
		func() checks { return proveProcess(cfg, &rep.Process) },
		func() checks { return proveSeccomp(cfg) },
		proveDevices,
		func() checks { return proveMounts(cfg, p) },
		func() checks { return proveTrees(cfg) },
		func() checks { return proveLimits(cfg, &rep.Limits) },
		func() checks { return proveResolver(cfg, ch, p) },
		func() checks { return proveNetwork(cfg, ch, p) },
	}
	found := make([]checks, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { found[i] = part() })
	}
	wg.Wait()
	rep.Checks = slices.Concat(append([]checks{first}, found...)...)
	rep.Millis = time.Since(began).Milliseconds()
	return p
}

// proveProcess reads what the process runs as.
func proveProcess(cfg *Config, out *wire.Process) checks {
	var c checks
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		c.fail("proc.status", err)
		return c
	}
	st, err := inside.ParseStatus(string(text))
	if err != nil {
		c.fail("proc.status", err)
		return c
	}
	*out = st.Process()
	c = append(c, st.Checks(cfg.UID, cfg.GID)...)
	extra := undeclared(os.Environ(), cfg.Env)
	c.add("proc.env", len(extra) == 0, "the container's environment has what is not declared: %s", strings.Join(extra, ", "))
	info, err := os.Stat(cfg.Dir)
	c.add("proc.dir", err == nil && info.IsDir(), "working directory %s: %v", cfg.Dir, err)
	return c
}

// proveAlone looks for other processes, and for descriptors that lead out of the container.
func proveAlone() checks {
	var c checks
	others, err := otherProcesses()
	if err != nil {
		c.fail("proc.alone", err)
	} else {
		c.add("proc.alone", len(others) == 0, "other processes: %v", others)
	}
	leaked, err := leakedDescriptors()
	if err != nil {
		c.fail("proc.descriptors", err)
	} else {
		c.add("proc.descriptors", len(leaked) == 0, "files that are open already: %v", leaked)
	}
	return c
}

// undeclared are the names of the variables of got that are not in want with the same value. Values
// are not told: they may be what somebody hoped to smuggle out.
func undeclared(got, want []string) []string {
	var names []string
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		// Engines set these three themselves. None of them reaches the command or changes the shim.
		if name == "PATH" || name == "HOME" || name == "HOSTNAME" {
			continue
		}
		if !slices.Contains(want, kv) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
