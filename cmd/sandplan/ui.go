package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/hashicorp/go-multierror"
	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/planner"
)

// ui is the terminal of one command. Results and warnings go to stdout, errors to stderr; a write that
// fails changes nothing, since work on the engine must not depend on who reads along.
type ui struct {
	mu      sync.Mutex
	app     *app
	out     *render.Renderer
	err     *render.Renderer
	compact bool
	lines   *bufio.Reader // of stdin
	quiet   bool          // warnings go to stderr: stdout is the agent's
}

func (a *app) ui() *ui {
	return &ui{app: a, out: a.renderer(a.stdout), err: a.renderer(a.stderr), lines: bufio.NewReader(a.stdin)}
}

// sources makes the files known that ranges point into.
func (u *ui) sources(files map[string][]byte) { u.out.Sources, u.err.Sources = files, files }

func (u *ui) print(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	io.WriteString(u.app.stdout, text)
}

func (u *ui) printErr(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	io.WriteString(u.app.stderr, text)
}

// report prints diagnostics, warnings first, and says whether there were errors.
func (u *ui) report(diags hcl.Diagnostics) bool {
	errs, warnings := render.Split(diags)
	u.warn(warnings, len(errs) > 0)
	if len(errs) == 0 {
		return false
	}
	text := u.err.Diagnostics(errs)
	if len(errs) > 1 {
		text += "\n" + render.Tally(errs, warnings) + "\n"
	}
	u.printErr(text)
	return true
}

// warn prints warnings. They are short only on request, and never beside errors, which they may explain.
func (u *ui) warn(warnings hcl.Diagnostics, besideErrors bool) {
	if len(warnings) == 0 {
		return
	}
	r, print := u.out, u.print
	if u.quiet {
		r, print = u.err, u.printErr
	}
	if u.compact && !besideErrors {
		print(r.Warnings(warnings) + "\n")
		return
	}
	print(r.Diagnostics(warnings) + "\n")
}

// notices prints warnings that are plain text.
func (u *ui) notices(texts []string) {
	var diags hcl.Diagnostics
	for _, t := range texts {
		t = render.Clean(t) // origins and names come from labels, which anybody can write
		summary, detail := "Note", t
		if head, tail, ok := strings.Cut(t, ". "); ok {
			summary, detail = head, tail
		} else {
			summary, detail = strings.TrimSuffix(t, "."), ""
		}
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: detail})
	}
	u.warn(diags, false)
}

// fail prints an error, the parts of a gathered one each by itself.
func (u *ui) fail(err error) {
	u.printErr(u.err.Diagnostics(asDiagnostics(err)))
}

// asDiagnostics turns errors into what people read: address, place and text of each.
func asDiagnostics(err error) hcl.Diagnostics {
	var many *multierror.Error
	if errors.As(err, &many) {
		var out hcl.Diagnostics
		for _, e := range many.Errors {
			out = append(out, asDiagnostics(e)...)
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
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: sentence(err.Error())}
	var object *planner.ObjectError
	var locked *planner.LockedError
	switch {
	case errors.Is(err, applier.ErrInterrupted):
		d.Summary = "Interrupted"
		d.Detail = "What was under way has finished, the rest was not started. sandplan plan shows what is left, and sandplan apply goes on from there."
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

// sentence begins a text with a capital, unless it begins with a name.
func sentence(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if word == "" || strings.ContainsAny(word, `./:"'=[`) || word == "sandplan" {
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

// ask prints a question and returns the answer; "" when the input ended or the user pressed Ctrl-C.
func (u *ui) ask(ctx context.Context, question string) string {
	u.print(question)
	answer := make(chan string, 1)
	go func() {
		line, _ := u.lines.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		u.print("\n")
		return ""
	case s := <-answer:
		u.print("\n")
		return s
	}
}
