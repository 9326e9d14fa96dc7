package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// fail prints an error, the parts of a gathered one each by itself, unless they have one cause.
func (u *ui) fail(err error) {
	u.printErr(u.err.Diagnostics(asDiagnostics(err)))
}

// asDiagnostics turns errors into what people read: address, place and text of each.
func asDiagnostics(err error) hcl.Diagnostics {
	if parts := gathered(err); parts != nil {
		var out hcl.Diagnostics
		for _, g := range byCause(parts) {
			out = append(out, g.diagnostics()...)
		}
		return out
	}
	var diags hcl.Diagnostics
	if errors.As(err, &diags) {
		return diags
	}
	if d, ok := planFault(err); ok {
		return hcl.Diagnostics{d}
	}
	var single *hcl.Diagnostic
	if errors.As(err, &single) {
		return hcl.Diagnostics{single}
	}
	head, rest := headline(err.Error())
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: sentence(head), Detail: rest}
	var object *planner.ObjectError
	var locked *planner.LockedError
	switch {
	case errors.Is(err, applier.ErrInterrupted):
		d.Summary = "Interrupted"
		d.Detail = "What was under way has finished, the rest was not started. sandplan plan shows what is left, and sandplan apply goes on from there."
	case err != nil && errors.Is(err, context.Canceled) && !errors.As(err, &object):
		d.Summary = "Interrupted"
		d.Detail = "Nothing was changed by this command."
	case errors.Is(err, applier.ErrLockLost):
		d.Summary = "The lock of the scope was lost"
		d.Detail = "Somebody removed it while this command worked, so that nothing more was started. sandplan plan shows what is left."
	case errors.As(err, &object):
		d.Summary = "Could not " + object.Op + " " + string(object.Addr)
		d.Detail = fullSentence(render.Clean(object.Err.Error()))
		d.Extra = render.About(object.Addr)
		if object.Decl.Filename != "" {
			d.Subject = &object.Decl
		}
	case errors.As(err, &locked):
		d.Summary = sentence(locked.What) + " is locked"
		d.Detail = render.LockText(locked.Info)
	}
	return hcl.Diagnostics{d}
}

// longHead is how long a text may be that stands in one line, whatever the terminal.
const longHead = 76

// headline parts what went wrong from the rest. Where that is one long line, the rest is what to do about it,
// which stands behind a semicolon.
func headline(text string) (head, rest string) {
	head, rest, lines := strings.Cut(text, "\n")
	if lines || len(head) <= longHead {
		return head, rest
	}
	head, rest, _ = strings.Cut(head, "; ")
	if rest != "" {
		rest = fullSentence(rest)
	}
	return head, rest
}

// sentence begins a text with a capital, unless it begins with a name.
func sentence(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if word == "" || strings.ContainsAny(word, `./:"'=[_`) || word == "sandplan" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// fullSentence ends what others say with one full stop, whether they did or not.
func fullSentence(s string) string {
	s = strings.TrimRight(sentence(s), " \n")
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// gathered are the parts of an error that is nothing but several errors.
func gathered(err error) []error {
	var many *multierror.Error
	if errors.As(err, &many) {
		return many.Errors
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var texts []string
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
	}
	if strings.Join(texts, "\n") != err.Error() { // it has words of its own
		return nil
	}
	return joined.Unwrap()
}

// failures are errors that one cause explains.
type failures struct {
	first error
	more  []*planner.ObjectError
	op    string // of all of them; "" when they differ
}

// byCause puts errors of objects together that say the same but for names and IDs: where the disk is
// full, every object of a plan fails, and one of them says it all.
func byCause(errs []error) []*failures {
	var out []*failures
	seen := map[string]*failures{}
	for _, err := range errs {
		var object *planner.ObjectError
		if !errors.As(err, &object) {
			out = append(out, &failures{first: err})
			continue
		}
		cause := causeOf(object)
		if g := seen[cause]; g != nil {
			g.more = append(g.more, object)
			if g.op != object.Op {
				g.op = ""
			}
			continue
		}
		seen[cause] = &failures{first: err, op: object.Op}
		out = append(out, seen[cause])
	}
	return out
}

// own is what differs between the same failure of two objects: names that sandplan gives, engine IDs,
// addresses of the network.
var own = regexp.MustCompile(`sandplan-[a-z0-9-]+|sp-[0-9a-f]{12}|(sha256:)?[0-9a-f]{12,64}|[0-9]+(\.[0-9]+){3}(/[0-9]+)?`)

// causeOf is the innermost error, which is what the engine said, without what is the object's own.
func causeOf(e *planner.ObjectError) string {
	err := e.Err
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasSuffix(err.Error(), inner.Error()) {
			break // the outer words say more
		}
		err = inner
	}
	text := err.Error()
	for _, name := range []string{string(e.Addr), string(e.Addr.Invocation())} {
		if name != "" {
			text = strings.ReplaceAll(text, name, "")
		}
	}
	return own.ReplaceAllString(text, "")
}

// mostAlike bounds the list of the others.
const mostAlike = 10

func (g *failures) diagnostics() hcl.Diagnostics {
	diags := asDiagnostics(g.first)
	if len(g.more) == 0 || len(diags) != 1 {
		return diags
	}
	what := g.op
	if what == "" {
		what = "change"
	}
	d := *diags[0]
	d.Summary = fmt.Sprintf("Could not %s %d objects, for one reason", what, len(g.more)+1)
	var others []string
	for _, e := range g.more {
		others = append(others, string(e.Addr))
	}
	slices.Sort(others)
	if n := len(others) - mostAlike; n > 1 {
		others = append(others[:mostAlike], fmt.Sprintf("and %d more", n))
	}
	d.Detail += "\n\nThe same holds for\n  " + strings.Join(others, "\n  ")
	return hcl.Diagnostics{&d}
}
