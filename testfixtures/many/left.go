package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// kept is what must be as it was: the name of it, and the command whose lines are counted.
var kept = []struct {
	what    string
	command []string
}{
	{"iptables rules", []string{"iptables-save"}},
	{"bridges", []string{"ip", "-o", "link", "show", "type", "bridge"}},
	{"veth pairs", []string{"ip", "-o", "link", "show", "type", "veth"}},
	{"containers", []string{"docker", "ps", "-aq"}},
	{"networks", []string{"docker", "network", "ls", "-q"}},
	{"volumes", []string{"docker", "volume", "ls", "-q"}},
	{"images", []string{"docker", "image", "ls", "-aq"}},
}

// lines are what there is of each, by what it is.
type lines map[string]map[string]bool

// count lists all of it.
func count() (lines, error) {
	out := lines{}
	for _, k := range kept {
		b, err := exec.Command(k.command[0], k.command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(k.command, " "), err)
		}
		table, seen := "", map[string]bool{}
		out[k.what] = seen
		for _, line := range strings.Split(string(b), "\n") {
			if line == "" || strings.HasPrefix(line, "#") { // iptables-save writes the time as a comment
				continue
			}
			if strings.HasPrefix(line, "*") {
				table = line
			}
			// Once each: engine 20.10 adds its jump to DOCKER-USER twice when two networks are made at one moment.
			seen[table+line] = true
		}
	}
	return out, nil
}

// back waits a moment for the kernel to take the last interfaces away, and compares.
func back(before lines) error {
	var wrong []string
	for range 20 {
		now, err := count()
		if err != nil {
			return err
		}
		wrong = nil
		for _, k := range kept {
			if n, was := len(now[k.what]), len(before[k.what]); n != was {
				wrong = append(wrong, fmt.Sprintf("%d %s, before %d%s", n, k.what, was, others(before[k.what], now[k.what])))
			}
		}
		if len(wrong) == 0 {
			for _, k := range kept {
				fmt.Printf("%-28s %10d as before\n", k.what, len(now[k.what]))
			}
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("something is left, or somebody else uses this engine: %s", strings.Join(wrong, "; "))
}

// others names a few of what was not there before: it may be somebody else's.
func others(before, now map[string]bool) string {
	var out []string
	for line := range now {
		if !before[line] {
			out = append(out, strings.TrimSpace(line))
		}
	}
	slices.Sort(out)
	const most = 5
	return fmt.Sprintf(": %q", out[:min(most, len(out))])
}
