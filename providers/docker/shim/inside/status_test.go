package inside

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// goodStatus is that of user 7:8.
const goodStatus = "Name:\tsandplan\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t8 \nNoNewPrivs:\t1\nSeccomp:\t2\n" +
	"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n"

func TestStatus(t *testing.T) {
	const uids, gids = "Uid:\t7\t7\t7\t7\n", "Gid:\t8\t8\t8\t8\n"
	for _, tt := range []struct {
		from, to string
		fails    string
		reason   string
	}{
		{"", "", "", "as declared"},
		{"Groups:\t8 \n", "Groups:\t \n", "", "engines give the group or none"},
		{uids, "Uid:\t7\t7\t0\t7\n", "proc.uid", "a saved UID of root comes back with setuid"},
		{uids, "Uid:\t7\t7\t7\n", "proc.uid", "a line of another shape"},
		{uids, "Uid:\n", "proc.uid", "nothing is no proof"},
		{uids, "Uid:\t4294967295\t7\t7\t7\n", "proc.uid", "the overflow UID"},
		{uids, strings.Repeat("Uid:\t7\t7\n", 2), "proc.uid", "cut lines"},
		{uids, "Uid:\t7\t7\t7\t7\t7\n", "proc.uid", "more than there are"},
		{uids, "Uid:\t0\t0\t0\t0\n", "proc.uid", "root"},
		{uids, "Uid:\t9\t9\t9\t9\n", "proc.uid", "an agent's user"},
		{gids, "Gid:\t8\t0\t8\t8\n", "proc.gid", "root's files"},
		{"Groups:\t8", "Groups:\t8 0", "proc.groups", "docker's group, perhaps"},
		{"NoNewPrivs:\t1\n", "NoNewPrivs:\t0\n", "proc.no_new_privs", "set-uid programs work"},
		{"NoNewPrivs:\t1\n", "", "proc.no_new_privs", "a kernel that does not say it"},
		{"Seccomp:\t2", "Seccomp:\t0", "proc.seccomp", "the whole kernel"},
		{"Seccomp:\t2", "Seccomp:\t1", "proc.seccomp", "another mode"},
		{"Seccomp:\t2\n", "", "proc.seccomp", "a kernel that does not say it"},
		{"CapInh:\t0000000000000000", "CapInh:\t0000000000000400", "proc.cap_inh", "it comes back with a program"},
		{"CapPrm:\t0000000000000000", "CapPrm:\t0000000000001000", "proc.cap_prm", "it can be taken"},
		{"CapEff:\t0000000000000000", "CapEff:\t0000003fffffffff", "proc.cap_eff", "privileged"},
		{"CapBnd:\t0000000000000000", "CapBnd:\t00000000a80425fb", "proc.cap_bnd", "what a set-uid program could regain"},
		{"CapAmb:\t0000000000000000\n", "", "proc.cap_amb", "a set that nobody tells"},
	} {
		st, err := ParseStatus(strings.Replace(goodStatus, tt.from, tt.to, 1))
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		var failed []string
		checks := st.Checks(7, 8)
		for _, c := range checks {
			if !c.OK {
				failed = append(failed, c.Name)
			}
		}
		if strings.Join(failed, ",") != tt.fails || len(checks) != 10 {
			t.Errorf("%q: %v of %d fail, want %q (%s)", tt.to, failed, len(checks), tt.fails, tt.reason)
		}
	}
	if _, err := ParseStatus("Uid:\tx\n"); err == nil || !strings.Contains(err.Error(), "Uid") {
		t.Errorf("a UID that is no number: %v", err)
	}
}

func TestProcess(t *testing.T) {
	st, err := ParseStatus(strings.Replace(goodStatus, "Uid:\t7\t7", "Uid:\t7\t3", 1))
	if err != nil {
		t.Fatal(err)
	}
	p := st.Process()
	if p.UID != 3 || p.GID != 8 || !slices.Equal(p.Groups, []int{8}) || !p.NoNewPrivs || p.Seccomp != 2 || p.CapEff != p.CapBnd || p.CapEff == "" {
		t.Errorf("%+v; the effective user counts", p)
	}
	if p := (Status{}).Process(); p.UID != -1 || p.GID != -1 {
		t.Errorf("who is not known is %s", fmt.Sprint(p.UID, p.GID))
	}
}
