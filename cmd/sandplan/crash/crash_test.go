// Package crash_test kills sandplan after every single call that it makes to the engine, and sees
// whether the next command finds its way back.
package crash_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// lanes crash side by side, each in a project of its own: the engine's answers are what takes time.
const lanes = 3

// TestKilledAfterEachCall ends apply and destroy with SIGKILL after call n, for n = 1 … until the
// command ends by itself. After each death the next plan must say exactly what apply then does, apply
// must converge, and destroy must leave nothing.
func TestKilledAfterEachCall(t *testing.T) {
	w := newWorld(t, dockertest.Socket(t))
	first := w.lane(0)
	calls := deaths{apply: first.count("apply", "-auto-approve")}
	image := first.toolImage()
	calls.destroy = first.count("destroy", "-auto-approve")
	first.nothingLeft()

	var wg sync.WaitGroup
	results := make([]deaths, lanes)
	for i := range lanes {
		wg.Go(func() { results[i] = w.lane(i).crash(1+i, lanes) })
	}
	wg.Wait()
	died := deaths{}
	for _, r := range results {
		died.apply, died.destroy = died.apply+r.apply, died.destroy+r.destroy
	}
	// While others work on the engine a command may look twice: the least that was seen counts.
	for i := range lanes {
		calls.apply = min(calls.apply, w.lane(i).undisturbed.apply)
		calls.destroy = min(calls.destroy, w.lane(i).undisturbed.destroy)
	}
	t.Logf("apply died after each of %d calls (%d undisturbed), destroy after each of %d (%d undisturbed)",
		died.apply, calls.apply, died.destroy, calls.destroy)
	if died.apply < calls.apply-1 || died.destroy < calls.destroy-1 {
		t.Errorf("fewer deaths than calls: the loop ended before it had tried them all")
	}
	if w.engine.has("/images/" + image + "/json") {
		t.Errorf("image %s is left although no container uses it", image)
	}
}

// deaths counts calls, or the runs that were killed after one.
type deaths struct{ apply, destroy int }

// crash tries n = from, from+step, … until both commands end by themselves.
func (l *lane) crash(from, step int) (died deaths) {
	applying, destroying := true, true
	for n := from; applying || destroying; n += step {
		if applying {
			if applying = l.killed(n, &l.undisturbed.apply, "apply", "-auto-approve"); applying {
				died.apply++
				l.converges(fmt.Sprintf("apply killed after call %d", n))
			}
		}
		l.must("apply", "-auto-approve")
		if destroying {
			if destroying = l.killed(n, &l.undisturbed.destroy, "destroy", "-auto-approve"); destroying {
				died.destroy++
				l.converges(fmt.Sprintf("destroy killed after call %d", n))
			}
		}
		l.must("destroy", "-auto-approve")
		l.nothingLeft()
	}
	return died
}

var (
	planned = regexp.MustCompile(`Plan: (\d+) to add, (\d+) to change, (\d+) to destroy\.`)
	applied = regexp.MustCompile(`Resources: (\d+) added, (\d+) changed, (\d+) destroyed\.`)
)

// converges holds the next plan to its word: apply does what it says, and then nothing is left to do.
func (l *lane) converges(when string) {
	t := l.w.t
	out, code := l.sandplan(nil, "plan", "-detailed-exitcode")
	if code != 0 && code != 2 {
		t.Errorf("%s: plan ends with %d:\n%s", when, code, out)
		return
	}
	said := planned.FindStringSubmatch(out)
	if (said != nil) != (code == 2) {
		t.Errorf("%s: plan ends with %d and says:\n%s", when, code, out)
	}
	out, code = l.sandplan(nil, "apply", "-auto-approve")
	did := applied.FindStringSubmatch(out)
	switch {
	case code != 0 || said != nil && did == nil:
		t.Errorf("%s: apply does not converge (exit code %d):\n%s", when, code, out)
	case said != nil && fmt.Sprint(said[1:]) != fmt.Sprint(did[1:]):
		t.Errorf("%s: the plan says %q, apply does %q", when, said[0], did[0])
	}
	if out, code = l.sandplan(nil, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("%s: apply leaves something to do (exit code %d):\n%s", when, code, out)
	}
}

// killed runs a command that is to die after call n, and reports whether it did. One that ended by
// itself must have made fewer calls than that; how many goes to undisturbed.
func (l *lane) killed(n int, undisturbed *int, args ...string) bool {
	file := filepath.Join(l.dir, "calls")
	out, code := l.sandplan([]string{"SANDPLAN_TEST_KILL_AT=" + strconv.Itoa(n), "SANDPLAN_TEST_CALLS=" + file}, args...)
	switch code {
	case killedCode:
		l.settle()
		return true
	case 0:
		if *undisturbed = l.calls(file); *undisturbed >= n {
			l.w.t.Errorf("%s made %d calls and was not killed after call %d", args[0], *undisturbed, n)
		}
		return false
	}
	l.w.t.Errorf("%s with a kill after call %d ends with %d:\n%s", args[0], n, code, out)
	return false
}

// count runs a command and returns how many calls it made.
func (l *lane) count(args ...string) int {
	file := filepath.Join(l.dir, "calls")
	if out, code := l.sandplan([]string{"SANDPLAN_TEST_CALLS=" + file}, args...); code != 0 {
		l.w.t.Fatalf("%s ends with %d:\n%s", args[0], code, out)
	}
	return l.calls(file)
}

func (l *lane) calls(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		l.w.t.Error(err)
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 5 {
		l.w.t.Errorf("a command made %q calls", text)
	}
	return n
}

func (l *lane) must(args ...string) {
	began := time.Now()
	defer func() { l.took = time.Since(began) }()
	if out, code := l.sandplan(nil, args...); code != 0 {
		l.w.t.Errorf("%s ends with %d:\n%s", args[0], code, out)
	}
}

// killedCode stands for a death by SIGKILL.
const killedCode = -9

func (l *lane) sandplan(env []string, args ...string) (output string, code int) {
	cmd := exec.Command(l.binary, append([]string{"-chdir=" + l.dir}, args...)...)
	cmd.Env = append(os.Environ(), append(env, "DOCKER_HOST=unix://"+l.w.engine.socket)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return string(out), 0
	case !errors.As(err, &exit):
		l.w.t.Errorf("sandplan %s: %v", args[0], err)
		return string(out), -1
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
		return string(out), killedCode
	}
	return string(out), exit.ExitCode()
}
