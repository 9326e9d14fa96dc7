package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/planner"
)

func failed(op, addr, text string, more ...any) *planner.ObjectError {
	return &planner.ObjectError{Addr: planner.Address(addr), Op: op, Err: fmt.Errorf(text, more...)}
}

// TestFailuresByCause: what one cause explains is told once, with all that it befell; what differs is not.
func TestFailuresByCause(t *testing.T) {
	full := errors.New("Error response from daemon: no space left on device")
	var hundred *multierror.Error
	for i := range 100 {
		hundred = multierror.Append(hundred, failed("create", fmt.Sprintf("invocation.i[%d].agent", i), "create container sandplan-p-w-i-%d: %w", i, full))
	}
	for _, tt := range []struct {
		err     error
		want    []string // "summary: what the detail holds"
		lacks   string
		reason  string
		located string
	}{
		{hundred, []string{"Could not create 100 objects, for one reason: no space left on device"}, "invocation.i[50]", "a full disk is one error, whose list ends somewhere", "invocation.i[0].agent"},
		{multierror.Append(nil, failed("create", "invocation.a.agent", "network %s is gone", "0123456789ab"), failed("delete", "invocation.b.agent", "network %s is gone", "ba9876543210")),
			[]string{"Could not change 2 objects, for one reason: invocation.b.agent"}, "", "IDs tell one object from the other and not one cause from the other", "invocation.a.agent"},
		{multierror.Append(nil, failed("create", "invocation.a.agent", "the engine says no"), failed("create", "invocation.b.agent", "the engine says never")),
			[]string{"Could not create invocation.a.agent: says no", "Could not create invocation.b.agent: says never"}, "The same holds", "two causes are two errors", "invocation.a.agent"},
		{multierror.Append(nil, failed("create", "invocation.a.agent", "invocation.a.agent: %w", full), applier.ErrInterrupted),
			[]string{"Could not create invocation.a.agent: no space", "Interrupted: goes on from there"}, "", "an interruption is no object's failure", "invocation.a.agent"},
		{errors.Join(errors.New("the lease could not be given back"), fmt.Errorf("the proxy may still run: %w", full)),
			[]string{"The lease could not be given back: ", "The proxy may still run: "}, "", "joined errors are several", ""},
		{fmt.Errorf("settle: %w", errors.Join(errors.New("one"), errors.New("two"))), []string{"settle: one: two"}, "", "with words of its own it is one, of more than one line", ""},
		{fmt.Errorf("list containers: %w", context.Canceled), []string{"Interrupted: Nothing was changed"}, "canceled", "Ctrl-C is no failure of the engine", ""},
	} {
		diags := asDiagnostics(tt.err)
		var got []string
		for _, d := range diags {
			got = append(got, d.Summary+": "+d.Detail)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d errors, want %d:\n%s", tt.reason, len(got), len(tt.want), strings.Join(got, "\n"))
			continue
		}
		for i, want := range tt.want {
			summary, detail, _ := strings.Cut(want, ": ")
			if !strings.HasPrefix(got[i], summary) || !strings.Contains(got[i], detail) {
				t.Errorf("%s: %q, want %q", tt.reason, got[i], want)
			}
		}
		if tt.lacks != "" && strings.Contains(strings.Join(got, "\n"), tt.lacks) {
			t.Errorf("%s: %q is told:\n%s", tt.reason, tt.lacks, strings.Join(got, "\n"))
		}
		if tt.located != "" && fmt.Sprint(diags[0].Extra) != tt.located {
			t.Errorf("%s: the first is about %v", tt.reason, diags[0].Extra)
		}
	}
}

// TestFailuresKeepTheirPlace: a group points at the line that declares its first object.
func TestFailuresKeepTheirPlace(t *testing.T) {
	a, b := failed("create", "invocation.a.agent", "no"), failed("create", "invocation.b.agent", "no")
	a.Decl = hcl.Range{Filename: "sandplan.hcl", Start: hcl.Pos{Line: 3}}
	diags := asDiagnostics(multierror.Append(nil, a, b))
	if len(diags) != 1 || diags[0].Subject == nil || diags[0].Subject.Start.Line != 3 {
		t.Errorf("%+v", diags)
	}
}

// TestHeadline: one long line is what went wrong, and below it what to do; a name keeps its letters.
func TestHeadline(t *testing.T) {
	long := strings.Repeat("long ", 16)
	for _, tt := range []struct{ err, summary, detail, reason string }{
		{"no engine answers; start one", "No engine answers; start one", "", "short enough to stand in one line"},
		{"no engine answers at " + long + "; start one", "No engine answers at " + long, "Start one.", "a long one is parted"},
		{"no engine answers at " + long, "No engine answers at " + long, "", "there is nothing to part"},
		{long + "; one\ntwo", "L" + long[1:] + "; one", "two", "lines are parts already"},
		{"subnet_pool 10.0.0.0/8 is in use", "subnet_pool 10.0.0.0/8 is in use", "", "an attribute has no capital"},
		{"-chdir=/x leads nowhere", "-chdir=/x leads nowhere", "", "nor has an option"},
	} {
		d := asDiagnostics(errors.New(tt.err))[0]
		if d.Summary != tt.summary || d.Detail != tt.detail {
			t.Errorf("%s: %q and %q, want %q and %q", tt.reason, d.Summary, d.Detail, tt.summary, tt.detail)
		}
	}
}
