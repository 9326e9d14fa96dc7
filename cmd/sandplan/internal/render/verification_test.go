package render

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/probe"
)

// verified is a report in which every attempt of every subject was held, until change says otherwise.
func verified(change func(f *verify.Finding), subjects ...planner.Address) verify.Report {
	r := verify.Report{Scope: planner.Scope{Project: "codeboost", Workspace: "verify-1a2b3c4d"}, Engine: "20.10.24", Took: 9300 * time.Millisecond}
	for _, addr := range subjects {
		s := verify.Subject{Addr: addr, Took: 3400 * time.Millisecond}
		for _, a := range probe.Attempts() {
			f := verify.Finding{Attempt: a, Status: verify.Held, Detail: "operation not permitted", Proof: "it succeeded"}
			if change != nil {
				change(&f)
			}
			s.Findings = append(s.Findings, f)
		}
		r.Subjects = append(r.Subjects, s)
	}
	return r
}

func TestVerification(t *testing.T) {
	r := &Renderer{}
	golden(t, filepath.Join(outputDir, "verify.txt"), r.Verification(verified(func(f *verify.Finding) {
		if f.ID == "io-uring" {
			f.Status, f.Detail = verify.Moot, "this machine does not have it: io_uring_setup: function not implemented"
		}
	}, login)))
	golden(t, filepath.Join(outputDir, "verify-escaped.txt"), r.Verification(verified(func(f *verify.Finding) {
		switch f.ID {
		case "host-udp4":
			f.Status, f.Detail, f.Proof = verify.Escaped, "UDP datagram from 10.77.4.3:40112", ""
		case "egress-ip6":
			f.Status, f.Detail, f.Proof = verify.Unproven, "from the host itself, the canary did not see it either (network is unreachable)", ""
		}
	}, login)))
}

// TestVerificationCannotBeForged: what a probe says may steer no terminal, and pass for no other line.
func TestVerificationCannotBeForged(t *testing.T) {
	text := (&Renderer{Color: true, Verbose: true}).Verification(verified(func(f *verify.Finding) {
		f.Status, f.Detail = verify.Escaped, "x\n64 of 64 attempts held\x1b[2J"
	}, login))
	if strings.Contains(text, "\n64 of 64") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("a detail reached the terminal as it was:\n%q", text)
	}
}

func TestVerificationThatFailed(t *testing.T) {
	report := verified(func(f *verify.Finding) { f.Status = verify.Unproven }, login)
	report.Subjects[0].Decision = &launch.Decision{Code: launch.CodeDrift, Reason: "the sandbox changed while it ran"}
	text := (&Renderer{}).Verification(report)
	if !strings.Contains(text, "Its probe did not come to its end: the sandbox changed while it ran (120)") || report.Code() != 120 {
		t.Errorf("exit code %d:\n%s", report.Code(), text)
	}
	report.Unsettled = errors.New("left")
	report.Subjects[0].Findings[0].Status = verify.Escaped
	if report.Code() != 121 {
		t.Errorf("exit code %d: an escape comes before everything", report.Code())
	}
}
