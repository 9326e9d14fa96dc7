package inside

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// Status is what /proc/self/status says, as far as a sandbox shows in it.
type Status struct {
	uids, gids, groups  []int
	caps                map[string]string
	noNewPrivs, seccomp int
}

// capSets are the capability sets: how the kernel names them, and checks.
var capSets = [][2]string{
	{"CapInh", "cap_inh"}, {"CapPrm", "cap_prm"}, {"CapEff", "cap_eff"}, {"CapBnd", "cap_bnd"}, {"CapAmb", "cap_amb"},
}

// ParseStatus reads /proc/self/status. A line that is absent leaves a value that no check accepts.
func ParseStatus(text string) (Status, error) {
	st := Status{caps: map[string]string{}, noNewPrivs: -1, seccomp: -1}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "Uid":
			st.uids, err = ints(value)
		case "Gid":
			st.gids, err = ints(value)
		case "Groups":
			st.groups, err = ints(value)
		case "NoNewPrivs":
			st.noNewPrivs, err = strconv.Atoi(value)
		case "Seccomp":
			st.seccomp, err = strconv.Atoi(value)
		default:
			if strings.HasPrefix(key, "Cap") {
				st.caps[key] = value
			}
		}
		if err != nil {
			return Status{}, fmt.Errorf("%s of /proc/self/status: %w", key, err)
		}
	}
	return st, nil
}

func ints(s string) ([]int, error) {
	var out []int
	for _, f := range strings.Fields(s) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// Checks hold a process against the user that is declared, and against what no configuration relaxes.
func (s Status) Checks(uid, gid int) []wire.Check {
	var f findings
	f.add("proc.no_new_privs", s.noNewPrivs == 1, "NoNewPrivs is %d, must be 1", s.noNewPrivs)
	f.add("proc.uid", allFour(s.uids, uid), "UIDs are %v, declared %d", s.uids, uid)
	f.add("proc.gid", allFour(s.gids, gid), "GIDs are %v, declared %d", s.gids, gid)
	f.add("proc.groups", !slices.ContainsFunc(s.groups, func(g int) bool { return g != gid }),
		"supplementary groups are %v, declared none but %d", s.groups, gid)
	for _, set := range capSets {
		v := s.caps[set[0]]
		f.add("proc."+set[1], strings.Trim(v, "0") == "" && v != "", "%s is %s, must be empty", set[0], v)
	}
	f.add("proc.seccomp", s.seccomp == 2, "seccomp mode is %d, must be 2 (a filter)", s.seccomp)
	return f
}

// allFour reports whether the real, effective, saved and file system IDs all are id.
func allFour(ids []int, id int) bool {
	return len(ids) == 4 && !slices.ContainsFunc(ids, func(got int) bool { return got != id })
}

// Process is what reports say of it.
func (s Status) Process() wire.Process {
	p := wire.Process{UID: -1, GID: -1, Groups: s.groups, CapEff: s.caps["CapEff"], CapBnd: s.caps["CapBnd"],
		NoNewPrivs: s.noNewPrivs == 1, Seccomp: s.seccomp}
	if len(s.uids) == 4 && len(s.gids) == 4 {
		p.UID, p.GID = s.uids[1], s.gids[1]
	}
	return p
}
