package main

import (
	"fmt"
	"os/exec"
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

// count counts all of it.
func count() (map[string]int, error) {
	out := map[string]int{}
	for _, k := range kept {
		b, err := exec.Command(k.command[0], k.command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(k.command, " "), err)
		}
		table, seen := "", map[string]bool{}
		for _, line := range strings.Split(string(b), "\n") {
			if line == "" || strings.HasPrefix(line, "#") { // iptables-save writes the time as a comment
				continue
			}
			if strings.HasPrefix(line, "*") {
				table = line
			}
			// Once each: engine 20.10 adds its jump to DOCKER-USER twice when two networks are made at one moment.
			if !seen[table+line] {
				seen[table+line] = true
				out[k.what]++
			}
		}
	}
	return out, nil
}

// back waits a moment for the kernel to take the last interfaces away, and compares.
func back(before map[string]int) error {
	var wrong []string
	for range 20 {
		now, err := count()
		if err != nil {
			return err
		}
		wrong = nil
		for _, k := range kept {
			if now[k.what] != before[k.what] {
				wrong = append(wrong, fmt.Sprintf("%d %s, before %d", now[k.what], k.what, before[k.what]))
			}
		}
		if len(wrong) == 0 {
			for _, k := range kept {
				fmt.Printf("%-28s %10d as before\n", k.what, now[k.what])
			}
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("something is left: %s", strings.Join(wrong, "; "))
}
