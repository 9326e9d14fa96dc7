package verify

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

const session = "0123456789ab"

func at4(run int, id string) probe.Token {
	t := probe.Token{Session: session, Run: run}
	if id != "" {
		t = t.For(id)
	}
	return t
}

// world is evidence in which one attempt was made, held inside, and worked where it should.
type world struct{ *evidence }

func newWorld(id string) world {
	said := func(outcomes ...probe.Outcome) *collector {
		c := newCollector()
		for _, o := range outcomes {
			c.outcomes[o.ID] = o
		}
		return c
	}
	e := &evidence{
		token: at4(runSubjects, ""), openToken: at4(runOpen, ""), hostToken: at4(runHost, ""), secondToken: at4(runSecond, ""),
		bridge: "sp-own", networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/22")}, applies: func(probe.Needs) bool { return true }, guarded: true, secret: "content",
		subject:   said(probe.Outcome{ID: id, Detail: "refused"}, probe.Outcome{ID: "", Through: true}),
		open:      said(probe.Outcome{ID: id, Through: true, Detail: "content"}),
		second:    said(probe.Outcome{ID: id, Through: true}),
		canary:    said(probe.Outcome{ID: id, Through: true, Detail: "it is seen"}),
		openFiles: map[string]string{id: "it is on the host"}, subjectFiles: map[string]string{},
	}
	for _, run := range []int{runOpen, runHost} {
		e.canary.sightings = append(e.canary.sightings, probe.Sighting{Token: at4(run, id), How: "TCP connection"})
	}
	e.canary.sightings = append(e.canary.sightings, probe.Sighting{Token: e.token, How: "the declared way"})
	e.second.sightings = []probe.Sighting{{Token: at4(runSecond, id), How: "TCP connection"}}
	return world{e}
}

// TestEverythingIsHeld: in a world without a flaw every attempt is.
func TestEverythingIsHeld(t *testing.T) {
	for _, a := range probe.Attempts() {
		if status, detail, proof := newWorld(a.ID).result(a); status != Held || detail != "refused" || proof == "" {
			t.Errorf("%s is %s (%s), by %q", a.ID, status, detail, proof)
		}
	}
}

// TestNothingIsHeldWithoutItsControl takes the control of every attempt away.
func TestNothingIsHeldWithoutItsControl(t *testing.T) {
	for _, a := range probe.Attempts() {
		w := newWorld(a.ID)
		w.open, w.openFiles = newCollector(), nil
		w.second, w.canary = newCollector(), newCollector()
		if status, detail, _ := w.result(a); status != Unproven {
			t.Errorf("%s is %s (%s) without anything that shows that it works", a.ID, status, detail)
		}
	}
}

// TestWithoutAProxy: of a runner, what goes through a proxy is not tried, and all else is.
func TestWithoutAProxy(t *testing.T) {
	moot := 0
	for _, a := range probe.Attempts() {
		w := newWorld(a.ID)
		w.applies = (&verification{spec: &hclspec.Spec{}}).applies(box{runner: "test"})
		w.bridge = noBridge
		status, detail, _ := w.result(a)
		if byProxy := strings.HasPrefix(a.ID, "proxy-"); byProxy != (status == Moot && strings.HasSuffix(detail, "a proxy")) && a.Needs != probe.NeedsGit {
			t.Errorf("%s is %s (%s)", a.ID, status, detail)
		}
		if status == Moot {
			moot++
		}
		// It is on no network: a packet of its own is out of the sandbox wherever it is seen.
		if a.Where != probe.AtHost || status == Moot {
			continue
		}
		w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, a.ID), How: "packet", Interface: "eth0"})
		if status, _, _ := w.result(a); status != Escaped {
			t.Errorf("%s is %s, and its packet was seen", a.ID, status)
		}
	}
	if moot > 12 {
		t.Errorf("%d attempts are not made in a runner", moot)
	}
}

func TestResult(t *testing.T) {
	for _, tc := range []struct {
		name, reason, id string
		change           func(world)
		want             Status
		detail           string
	}{
		{"seen by a listener", "what has arrived has escaped", "host-tcp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "host-tcp4"), How: "TCP connection to 172.17.0.1"})
		}, Escaped, "172.17.0.1"},
		{"packet elsewhere", "a packet on another interface has left the sandbox", "egress-udp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "egress-udp4"), How: "packet on eth0", Interface: "eth0", Bridge: "eth0"})
		}, Escaped, "eth0"},
		{"another verification's packet", "the first packet of TCP has no room to say whose it is", "egress-tcp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "egress-tcp4"), Interface: "eth0", Bridge: "eth0", From: "10.9.0.2"})
		}, Held, "refused"},
		{"a packet of its own", "the same from a network of this verification", "egress-tcp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "egress-tcp4"), How: "packet on eth0", Interface: "eth0", Bridge: "eth0", From: "10.1.0.2"})
		}, Escaped, "eth0"},
		{"packet at home", "on its own bridge it has reached nobody", "egress-udp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "egress-udp4"), How: "packet", Interface: "veth1", Bridge: "sp-own"})
		}, Held, "refused"},
		{"packet of an unknown interface", "what cannot be told apart is not at home", "egress-udp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects, "egress-udp4"), How: "packet on interface 7", Interface: "interface 7"})
		}, Escaped, "interface 7"},
		{"another subject's packet", "each is judged by its own", "egress-udp4", func(w world) {
			w.canary.sightings = append(w.canary.sightings, probe.Sighting{Token: at4(runSubjects+1, "egress-udp4"), Interface: "eth0"})
		}, Held, "refused"},
		{"own word", "a probe that says so has no reason to lie", "mount", func(w world) {
			w.subject.outcomes["mount"] = probe.Outcome{ID: "mount", Through: true, Detail: "mounted"}
		}, Escaped, "mounted"},
		{"escape without a control", "what was seen needs no proof that it can be", "mount", func(w world) {
			w.subject.outcomes["mount"] = probe.Outcome{ID: "mount", Through: true, Detail: "mounted"}
			delete(w.open.outcomes, "mount")
		}, Escaped, "mounted"},
		{"file on the host", "the host's own look decides", "worktree-write", func(w world) {
			w.subjectFiles["worktree-write"] = "/tree/x is on the host"
		}, Escaped, "/tree/x"},
		{"seen by the second invocation", "it is as good a witness", "second-agent", func(w world) {
			w.second.sightings = append(w.second.sightings, probe.Sighting{Token: at4(runSubjects, "second-agent"), How: "UDP datagram"})
		}, Escaped, "UDP datagram"},
		{"in the second proxy's log", "its log is written by the proxy, not by who asks", "second-proxy", func(w world) {
			w.log = []string{at4(runSubjects, "second-proxy").String() + ".test:443"}
		}, Escaped, "proxy was asked"},
		{"says nothing", "an attempt that was never made is not held", "mount", func(w world) {
			delete(w.subject.outcomes, "mount")
		}, Unproven, "before it could say"},
		{"not tried", "the same, with the probe's reason", "memory", func(w world) {
			w.subject.outcomes["memory"] = probe.Outcome{ID: "memory", Untried: true, Detail: "too little memory"}
		}, Unproven, "too little memory"},
		{"fails without the boundary", "then its failure inside means nothing", "bpf", func(w world) {
			w.open.outcomes["bpf"] = probe.Outcome{ID: "bpf", Detail: "EPERM"}
		}, Unproven, "EPERM"},
		{"not seen without the boundary", "the canary may be blind", "host-udp4", func(w world) {
			w.canary.sightings = nil
		}, Unproven, "did not see it either"},
		{"the machine has none", "there is nothing to hold", "io-uring", func(w world) {
			w.open.outcomes["io-uring"] = probe.Outcome{ID: "io-uring", Absent: true, Detail: "ENOSYS"}
		}, Moot, "ENOSYS"},
		{"inside it looks absent", "our own filter answers so; only the control can tell", "io-uring", func(w world) {
			w.subject.outcomes["io-uring"] = probe.Outcome{ID: "io-uring", Absent: true, Detail: "ENOSYS"}
		}, Held, "ENOSYS"},
		{"not declared", "a writable worktree may be written", "worktree-write", func(w world) {
			w.applies = func(n probe.Needs) bool { return n != probe.NeedsReadOnly }
		}, Moot, "read-only worktree"},
		{"broken proxy", "a proxy that lets nothing through proves nothing by refusing", "proxy-sni", func(w world) {
			w.subject.outcomes[""] = probe.Outcome{Detail: "502"}
		}, Unproven, "502"},
		{"somebody else answers", "the declared way has to lead to the canary, which must have seen it", "proxy-sni", func(w world) {
			w.canary.sightings = nil
		}, Unproven, "declared way"},
		{"packets were lost", "one of them may have been the one", "egress-udp4", func(w world) {
			w.canary.lost = 3
		}, Unproven, "3 packets"},
		{"another file", "what was read must be what stands there", "host-file", func(w world) {
			delete(w.openFiles, "host-file")
			w.secret = "other"
		}, Unproven, "nothing was seen"},
		{"the guard has no last word", "only the guard knows its token", "kill-guard", func(w world) {
			w.guarded = false
		}, Unproven, "own word"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(tc.id)
			tc.change(w)
			attempt := probe.Attempts()[probe.Number(tc.id)-1]
			status, detail, _ := w.result(attempt)
			if status != tc.want || !strings.Contains(detail, tc.detail) {
				t.Errorf("%s: %s (%s), want %s with %q", tc.reason, status, detail, tc.want, tc.detail)
			}
		})
	}
}
