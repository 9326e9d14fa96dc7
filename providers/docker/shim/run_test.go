package shim_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/providers/docker/shim"
	"github.com/sandplan/sandplan/providers/docker/shim/wire"
)

// A sandbox as declared: nothing fails, the command runs, its bytes and its code come out, and the
// report names what only the host can compare.
func TestAgentRuns(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "say=hello", "warn=careful", "write=/work/marker:x", "exit=42")
	o := b.run(t, l)
	for _, c := range o.report.Failed() {
		t.Errorf("%s: %s", c.Name, c.Detail)
	}
	if o.out != "hello\n" || o.err != "careful\n" || o.code != 42 {
		t.Errorf("out %q, err %q, code %d", o.out, o.err, o.code)
	}
	want := wire.Exit{Token: "s3cret", By: wire.ByAgent, Code: 42, Stdout: 6, Stderr: 8}
	if o.exit == nil || *o.exit != want {
		t.Errorf("exit %+v, want %+v", o.exit, want)
	}
	info, err := os.Stat(filepath.Join(b.worktree, "marker"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != testUID {
		t.Errorf("the command's file on the host: %v, %+v", err, info)
	}
	compareMounts(t, o.report, map[string]string{"/work": b.worktree, "/work/.git": filepath.Join(b.worktree, ".git")})
	// Beside its own loopback, which has ::1 as well on engines 26.1 and 28.5.
	outside := slices.DeleteFunc(slices.Clone(o.report.Addresses), func(a wire.Address) bool { return a.Interface == "lo" })
	if len(outside) != 1 || outside[0].Prefix != agentAddr+"/29" {
		t.Errorf("addresses %+v", o.report.Addresses)
	}
	t.Logf("proof %d ms, start to report %s", o.report.Millis, o.took.Round(time.Millisecond))
	// Packets that must find no way take 80 ms. The rest is for machines that do something else too.
	if o.report.Millis > soon.Milliseconds()/4 {
		t.Errorf("the proof took %d ms", o.report.Millis)
	}
}

// compareMounts compares device and inode with the host's view, as the gate does.
func compareMounts(t *testing.T, rep *wire.Report, want map[string]string) {
	t.Helper()
	for _, m := range rep.Mounts {
		source, ok := want[m.Path]
		if !ok {
			continue
		}
		delete(want, m.Path)
		var st syscall.Stat_t
		if err := syscall.Stat(source, &st); err != nil || st.Dev != m.Dev || st.Ino != m.Inode {
			t.Errorf("%s is %d:%d, %s on the host %d:%d (%v)", m.Path, m.Dev, m.Inode, source, st.Dev, st.Ino, err)
		}
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
}

func TestRunnerRuns(t *testing.T) {
	l := engineLab(t)
	b := runnerBox(t, l, "say=tested")
	b.shim.Argv[0], b.shim.Env = "agent", []string{"HOME=/tmp", "PATH=work:/absent:/"}
	o := b.run(t, l)
	for _, c := range o.report.Failed() {
		t.Errorf("%s: %s", c.Name, c.Detail)
	}
	if o.out != "tested\n" || o.exit == nil || o.exit.By != wire.ByAgent || o.code != 0 {
		t.Errorf("out %q, err %q, exit %+v", o.out, o.err, o.exit)
	}
}

// What the bundle brings reaches the command and nothing else.
func TestHandover(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "stdin", "env", "cat=/run/sandplan/credentials/FILE", "cat=/run/sandplan/prompt", "cat=/tmp/deep/conf")
	b.shim.PromptToStdin = true
	sum := sha256.Sum256([]byte("do it\n"))
	b.shim.PromptSHA256 = hex.EncodeToString(sum[:])
	b.shim.Credentials = []shim.Credential{{Name: "ENV", Env: "TOKEN"}, {Name: "FILE", Path: "/run/sandplan/credentials/FILE"}}
	b.shim.Files = []shim.File{{Path: "/tmp/deep/conf", Mode: 0o444, Content: []byte("configured\n")}}
	b.bundle = wire.Bundle{Prompt: []byte("do it\n"), Credentials: map[string][]byte{"ENV": []byte("e-secret"), "FILE": []byte("f-secret\n")}}
	o := b.run(t, l)
	want := "do it\nHOME=/home/agent\nPATH=/usr/bin:/bin\nTOKEN=e-secret\nf-secret\ndo it\nconfigured\n"
	if o.out != want {
		t.Errorf("the command saw %q, want %q (stderr %q, %+v)", o.out, want, o.err, o.exit)
	}
}

func TestHandoverIsExact(t *testing.T) {
	l := engineLab(t)
	for name, c := range map[string]struct {
		do     func(b *box)
		detail string
		reason string
	}{
		"other prompt": {func(b *box) { b.bundle.Prompt = []byte("other") }, "not the one that is declared",
			"the digest of the prompt is part of the declaration"},
		"credential missing": {func(b *box) { b.shim.Credentials = []shim.Credential{{Name: "KEY", Env: "KEY"}} }, "did not come",
			"a CLI without it fails late and unclearly"},
		"credential more": {func(b *box) { b.bundle.Credentials = map[string][]byte{"KEY": nil} }, "1 credentials came, 0 are declared",
			"a secret that nobody asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			b := agentBox(t, l, "say=executed")
			b.shim.PromptSHA256 = hex.EncodeToString(make([]byte, 32))
			if name != "other prompt" {
				b.shim.PromptSHA256 = ""
			}
			c.do(b)
			o := b.run(t, l)
			if strings.Contains(o.out, "executed") || o.exit == nil || o.exit.Cause != wire.CauseInternal || !strings.Contains(o.exit.Detail, c.detail) {
				t.Errorf("out %q, exit %+v (%s)", o.out, o.exit, c.reason)
			}
		})
	}
}

// How a run ends: who decided, why, with which code of the process, and how soon.
func TestEnds(t *testing.T) {
	l := engineLab(t)
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			b := agentBox(t, l, c.argv...)
			if c.do != nil {
				c.do(b)
			}
			c.compare(t, b.run(t, l))
		})
	}
}

type end struct {
	argv   []string
	do     func(b *box)
	want   wire.Exit
	code   int64
	out    string // what standard output begins with
	reason string
}

// soon is far less than the commands would run by themselves, and enough for an engine that is busy.
const soon = 100 * time.Second

// anyCode stands for a code that the test does not care for.
const anyCode = -1

// compare holds an outcome against what is wanted. Counts of bytes are compared where they are known,
// and of the detail a part.
func (c end) compare(t *testing.T, o outcome) {
	t.Helper()
	if o.exit == nil {
		t.Fatalf("no exit record; code %d, stderr %q (%s)", o.code, o.err, c.reason)
	}
	got, want := *o.exit, c.want
	if !strings.Contains(got.Detail, want.Detail) {
		t.Errorf("detail %q, want %q in it (%s)", got.Detail, want.Detail, c.reason)
	}
	if c.code == anyCode { // a program that cannot go on may end in several ways
		got.Code, got.Signal, c.code = want.Code, want.Signal, o.code
	}
	if want.Stdout == 0 {
		got.Stdout, got.Stderr = 0, 0
	}
	got.Token, got.Detail, want.Detail = "", "", ""
	if got != want || o.code != c.code || !strings.HasPrefix(o.out, c.out) {
		t.Errorf("exit %+v, code %d, out %.100q; want %+v, %d, %q (%s)", got, o.code, o.out, want, c.code, c.out, c.reason)
	}
	if o.ended > soon {
		t.Errorf("it took %s (%s)", o.ended, c.reason)
	}
}

var ends = map[string]end{
	"success":   {[]string{"say=done"}, nil, wire.Exit{By: wire.ByAgent, Stdout: 5}, 0, "done\n", "the usual"},
	"not found": {nil, func(b *box) { b.shim.Argv = []string{"/absent"} }, wire.Exit{By: wire.ByShim, Cause: wire.CauseNotFound, Detail: "/absent"}, 127, "", "a wrong image"},
	"not in PATH": {nil, func(b *box) { b.shim.Argv = []string{"agent"} }, wire.Exit{By: wire.ByShim, Cause: wire.CauseNotFound, Detail: "agent"}, 127, "",
		"PATH is the command's, not the shim's"},
	"not executable": {nil, func(b *box) { b.shim.Argv = []string{"/noexec"} }, wire.Exit{By: wire.ByShim, Cause: wire.CauseNotExecutable, Detail: "permission denied"}, 126, "", "a mode lost on the way"},
	"no interpreter": {nil, func(b *box) { b.shim.Argv = []string{"/script"} }, wire.Exit{By: wire.ByShim, Cause: wire.CauseNotExecutable, Detail: "interpreter or loader"}, 126, "",
		"ENOENT for a file that is there puzzles everybody"},
	"killed": {[]string{"abort"}, nil, wire.Exit{By: wire.ByAgent, Code: 137, Signal: 9}, 137, "", "a signal is told from a code"},
	"out of memory": {[]string{"eat=1GiB"}, nil, wire.Exit{By: wire.ByAgent, Code: 137, Signal: 9, Detail: "out of memory"}, 137, "",
		"the kernel kills the command, not the shim that can tell"},
	"timeout": {[]string{"sleep=5m"}, func(b *box) { b.shim.Bounds.TimeoutMS = 500 }, wire.Exit{By: wire.ByShim, Cause: wire.CauseTimeout, Detail: "500ms"}, 124, "",
		"SIGTERM suffices"},
	"timeout ignored": {[]string{"ignore", "sleep=5m"}, func(b *box) { b.shim.Bounds.TimeoutMS = 500 }, wire.Exit{By: wire.ByShim, Cause: wire.CauseTimeout, Detail: "500ms"}, 124, "",
		"SIGKILL after the grace"},
	"output bound": {[]string{"say=first", "print=2GiB"}, func(b *box) { b.shim.Bounds.Output = 1000 }, wire.Exit{By: wire.ByShim, Cause: wire.CauseOutput, Detail: "1000 bytes"}, 119,
		"first\nxxx", "2 GB would fill the disk"},
	"fork bomb": {[]string{"spawn=200"}, nil, wire.Exit{By: wire.ByAgent}, anyCode, "child",
		"the process limit leaves room for the guard"},
	"signal from outside": {[]string{"say=up", "sleep=5m"}, func(b *box) {
		b.during = func(l *lab, id string) error { return l.cli.ContainerKill(context.Background(), id, "TERM") }
	}, wire.Exit{By: wire.ByAgent, Code: 143, Signal: 15}, 143, "", "process 1 hands on what it is sent"},
	"orphans": {[]string{"spawn=5", "exit=7"}, nil, wire.Exit{By: wire.ByAgent, Code: 7}, 7, "child",
		"children in sessions of their own hold the output open"},
	"stop": {[]string{"sleep=5m"}, func(b *box) { b.after = func(p peer) { pause(); _ = p.Stop() } }, wire.Exit{By: wire.ByShim, Cause: wire.CauseStop}, 130, "", "asked for"},
	"stop ignored": {[]string{"spawn=1", "ignore", "sleep=5m"}, func(b *box) { b.after = func(p peer) { pause(); _ = p.Stop() } }, wire.Exit{By: wire.ByShim, Cause: wire.CauseStop}, 130, "",
		"grace and kill, children too"},
	"lease dropped": {[]string{"ignore", "sleep=5m"}, func(b *box) { b.after = func(p peer) { pause(); _ = p.hangUp() } },
		wire.Exit{By: wire.ByShim, Cause: wire.CauseLease, Detail: "standard input ended"}, 122, "", "sandplan was killed"},
	"silence": {[]string{"ignore", "sleep=5m"}, func(b *box) { b.shim.Bounds.SilenceMS = 6000; b.after = func(p peer) { p.silence() } },
		wire.Exit{By: wire.ByShim, Cause: wire.CauseLease, Detail: "nothing was heard for 6s"}, 122, "", "the link hangs"},
	"protocol broken": {[]string{"ignore", "sleep=5m"}, func(b *box) { b.after = func(p peer) { pause(); _, _ = p.raw.Write(make([]byte, 64)) } },
		wire.Exit{By: wire.ByShim, Cause: wire.CauseLease, Detail: "protocol broken"}, 122, "", "a second attacher's bytes mix in"},
}

// pause lets the command begin.
func pause() { time.Sleep(300 * time.Millisecond) }

func TestOutputIsCutWithAMark(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "print=3000", "sleep=5m")
	b.shim.Bounds.Output = 2000
	o := b.run(t, l)
	text, mark, ok := strings.Cut(o.out, "\nsandplan: cut here, the output bound of 2000 bytes is used up\n")
	if !ok || len(text) != 2000 || mark != "" {
		t.Errorf("%d bytes, then %q", len(text), mark)
	}
	if o.exit == nil || o.exit.Stdout != 3000 {
		t.Errorf("exit %+v, want 3000 bytes counted", o.exit)
	}
}

// What happens to a sandbox while the command runs ends the run.
func TestSandboxChangesWhileItRuns(t *testing.T) {
	l := engineLab(t)
	for name, c := range map[string]struct {
		during func(t *testing.T, b *box) func(l *lab, id string) error
		cause  wire.Cause
		detail string
		reason string
	}{
		"network connected": {func(t *testing.T, _ *box) func(*lab, string) error {
			second := secondNetwork(t, l, true)
			return func(l *lab, id string) error { return l.cli.NetworkConnect(context.Background(), second, id, nil) }
		}, wire.CauseProof, "interfaces have changed", "a way out, made while nobody looks"},
		".git replaced": {func(_ *testing.T, b *box) func(*lab, string) error {
			return func(*lab, string) error {
				git := filepath.Join(b.worktree, ".git")
				if err := os.Remove(git); err != nil {
					return err
				}
				return os.Mkdir(git, 0o777)
			}
		}, wire.CauseMount, "the mount at /work/.git is gone", "the host removes what a mount covers, and the mount goes with it"},
		"neighbour appears": {func(t *testing.T, _ *box) func(*lab, string) error {
			t.Cleanup(func() { l.remove(t, testName+"neighbour") })
			return func(l *lab, id string) error {
				if err := l.startProxy(context.Background(), "neighbour", l.net, "10.234.0.5"); err != nil {
					return err
				}
				// The neighbour may have been noticed by now, and then there is nothing left to enter.
				_ = inside(l, id, "bash", "-c", "echo > /dev/udp/10.234.0.5/9")
				return nil
			}
		}, wire.CauseProof, "10.234.0.5 answers on eth0", "a container with another way out"},
	} {
		t.Run(name, func(t *testing.T) {
			b := agentBox(t, l, "say=up", "sleep=5m")
			b.during = c.during(t, b)
			o := b.run(t, l)
			if o.exit == nil || o.exit.By != wire.ByShim || o.exit.Cause != c.cause || !strings.Contains(o.exit.Detail, c.detail) || o.code != 121 {
				t.Errorf("exit %+v, code %d, failed %+v (%s)", o.exit, o.code, o.report.Failed(), c.reason)
			}
			if o.ended > soon {
				t.Errorf("it took %s (%s)", o.ended, c.reason)
			}
		})
	}
}

func TestProxyDiesWhileItRuns(t *testing.T) {
	l := engineLab(t)
	second := secondNetwork(t, l, true)
	if err := setBridge("second", "1"); err != nil {
		t.Fatal(err)
	}
	if err := l.startProxy(context.Background(), "neighbour", second, "10.234.0.10", vendorHost); err != nil {
		t.Fatal(err)
	}
	b := agentBox(t, l, "say=up", "sleep=5m")
	b.host.NetworkMode, b.net = container.NetworkMode(second), endpoint(second, "10.234.0.11")
	b.shim.Network.Address, b.shim.Network.Proxy = "10.234.0.11/29", "10.234.0.10:3128"
	b.during = func(l *lab, _ string) error {
		return l.cli.ContainerKill(context.Background(), testName+"neighbour", "KILL")
	}
	o := b.run(t, l)
	if o.exit == nil || o.exit.Cause != wire.CauseProxy || o.code != 123 || o.ended > soon {
		t.Errorf("exit %+v, code %d after %s; failed %+v", o.exit, o.code, o.ended, o.report.Failed())
	}
}

// The command has the user of process 1, and must get neither at its memory nor stop it.
func TestProcessOneHoldsOut(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l)
	b.shim.Argv = []string{"/bin/attack"}
	o := b.run(t, l)
	if o.exit == nil || o.exit.By != wire.ByAgent || o.exit.Code != 0 {
		t.Fatalf("exit %+v, out %q, err %q", o.exit, o.out, o.err)
	}
	for _, want := range []string{
		"open /proc/1/mem: open /proc/1/mem: permission denied\n",
		"open /proc/1/environ: open /proc/1/environ: permission denied\n",
		"open /proc/1/fd/0: open /proc/1/fd/0: permission denied\n",
		"ptrace: operation not permitted\n",
		"process_vm_writev: operation not permitted\n",
		"process 1 lives: true\n",
	} {
		if !strings.Contains(o.out, want) {
			t.Errorf("missing: %q", want)
		}
	}
	t.Log(fmt.Sprint("\n", o.out))
}

// A bundle that comes before the report is not taken.
func TestEarlyBundleIsNoBundle(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "write=/work/marker:x")
	b.early = true
	o := b.run(t, l)
	if _, err := os.Lstat(filepath.Join(b.worktree, "marker")); err == nil {
		t.Error("the command ran")
	}
	if o.exit == nil || o.exit.Cause != wire.CauseLease || o.code != 122 {
		t.Errorf("exit %+v, code %d", o.exit, o.code)
	}
}

// Started by hand, with nobody at its standard input, it ends by itself.
func TestNobodyAttached(t *testing.T) {
	l := engineLab(t)
	b := agentBox(t, l, "write=/work/marker:x")
	b.shim.Bounds.SilenceMS = 1500
	b.alone = true
	o := b.run(t, l)
	if _, err := os.Lstat(filepath.Join(b.worktree, "marker")); err == nil || o.report != nil || o.code != 122 {
		t.Errorf("report %+v, code %d, stderr %q", o.report, o.code, o.err)
	}
}
