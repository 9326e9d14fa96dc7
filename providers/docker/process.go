package docker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandplan/sandplan/planner"
)

// machine says which boot of which machine this is, and which processes can be seen from here. A process
// ID means something only together with both: a holder in a container, or before a reboot, may have the
// number of a process that has nothing to do with it.
func machine(proc string) (boot, pidNS string, err error) {
	raw, err := os.ReadFile(proc + "/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", err
	}
	if pidNS, err = os.Readlink(proc + "/self/ns/pid"); err != nil {
		return "", "", err
	}
	return strings.TrimSpace(string(raw)), pidNS, nil
}

// processStart is when a process started, in clock ticks since boot, and whether it is over and only
// waits to be collected by its parent (proc(5), /proc/PID/stat).
func processStart(proc, pid string) (start uint64, over bool, err error) {
	raw, err := os.ReadFile(proc + "/" + pid + "/stat")
	if err != nil {
		return 0, false, err
	}
	// The second field is the program's name in parentheses, and may hold spaces and parentheses.
	const stateField, startField = 3, 22
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) <= startField-stateField {
		return 0, false, fmt.Errorf("%s/%s/stat has %d fields", proc, pid, len(fields))
	}
	state := string(fields[0])
	start, err = strconv.ParseUint(string(fields[startField-stateField]), 10, 64)
	return start, state == "Z" || state == "X", err
}

// isDead reports whether the holder of a lock is known to be dead. Only of a process of this boot and
// this pid namespace can that be known; whatever is unclear counts as alive.
func isDead(proc string, self, holder planner.LockInfo) bool {
	if self.BootID == "" || holder.BootID != self.BootID || holder.PIDNS != self.PIDNS || holder.PID <= 0 || holder.StartTime == 0 {
		return false
	}
	// Not by looking for /proc/PID: that is hidden where proc is mounted with hidepid.
	if errors.Is(syscall.Kill(holder.PID, 0), syscall.ESRCH) {
		return true
	}
	start, over, err := processStart(proc, strconv.Itoa(holder.PID))
	// Another start time is another process with the same number.
	return err == nil && (over || start != holder.StartTime)
}
