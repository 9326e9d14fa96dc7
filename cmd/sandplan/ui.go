package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/applier"
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
	"github.com/sandplan/sandplan/planner"
)

// view words what a command has to say: for people, or as lines of JSON.
type view interface {
	SetSources(map[string][]byte)
	Gap() string
	Usage(message, command string) string
	Problems(errs, warnings hcl.Diagnostics) string
	Diagnostics(hcl.Diagnostics) string
	Warnings(diags hcl.Diagnostics, compact bool) string
	Plan(*planner.Plan, render.PlanView) string
	Drift(planner.Scope, int, []planner.Finding, map[planner.Address]string) string
	Ignored(int) string
	Cancelled(*planner.Plan) string
	Waiting(what string, i planner.LockInfo) string
	Event(applier.Event) string
	Still(applier.Event, time.Duration) string
	Applied(added, changed, destroyed int) string
	Destroyed(int) string
	Outputs([]render.Output) string
	Interrupted(int) string
	RunInterrupted(int) string
	RunEvent(launch.Event) string
	Refusal(planner.Address, []planner.Finding) string
	Stopped(planner.Address, []planner.Finding) string
	Ended(planner.Address, launch.Result) string
}

var (
	_ view = (*render.Renderer)(nil)
	_ view = (*machine.Stream)(nil)
)

// ui is the terminal of one command. Results and warnings go to stdout, errors to stderr; with -json
// everything is one stream of lines on stdout. A write that fails changes nothing, since work on the engine
// must not depend on who reads along.
type ui struct {
	mu  sync.Mutex
	app *app
	// out and err word what goes to the two streams; human is for what only people see.
	out, err view
	human    *render.Renderer
	stream   *machine.Stream // nil without -json
	compact  bool
	live     render.Live
	under    []string      // what a terminal shows below everything that is printed
	within   bool          // what was printed last ended within a line
	together bool          // several agents print at once
	lines    *bufio.Reader // of stdin
	quiet    bool          // warnings go to stderr: stdout is the agent's
	asking   atomic.Bool   // a question stands on the screen, and nothing is under way
	runs     *runProgress  // of run and dispatch
}

// ui is the one of the command that runs.
func (a *app) ui() *ui {
	if a.shown != nil {
		return a.shown
	}
	u := &ui{app: a, human: a.renderer(a.stdout), lines: bufio.NewReader(a.stdin)}
	u.out, u.err = u.human, a.renderer(a.stderr)
	if a.global.json {
		u.stream = machine.New(a.version, a.now)
		u.out, u.err = u.stream, u.stream
		u.print(u.stream.Hello())
	}
	a.shown = u
	return u
}

// sources makes the files known that ranges point into.
func (u *ui) sources(files map[string][]byte) {
	u.out.SetSources(files)
	u.err.SetSources(files)
}

func (u *ui) print(text string) { u.write(u.app.stdout, text) }

func (u *ui) printErr(text string) {
	if u.stream != nil {
		u.print(text)
		return
	}
	u.write(u.app.stderr, text)
}

func (u *ui) write(to io.Writer, text string) { _, _ = u.pass(to, []byte(text)) }

// pass writes to one of the two streams as it is. What a terminal shows below everything makes room for it,
// and does not come back before its line ends.
func (u *ui) pass(to io.Writer, b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s, ok := to.(stream); ok && s.columns > 0 && len(b) > 0 {
		io.WriteString(u.bottom(), u.live.Erase())
		u.within = b[len(b)-1] != '\n'
	}
	n, err := to.Write(b)
	if len(u.under) > 0 && !u.within && !u.live.Shown() {
		io.WriteString(u.bottom(), u.live.Draw(u.under))
	}
	return n, err
}

// bottom is the stream whose terminal shows what is under way: stdout is the agent's in a run.
func (u *ui) bottom() io.Writer {
	if u.quiet {
		return u.app.stderr
	}
	return u.app.stdout
}

// below shows lines below everything that is printed, until others take their place. It is one write, so
// that nothing flickers.
func (u *ui) below(lines []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	text := u.live.Erase()
	u.under = lines
	if !u.within {
		text += u.live.Draw(lines)
	}
	io.WriteString(u.bottom(), text)
}

// report prints diagnostics, warnings first, and says whether there were errors.
func (u *ui) report(diags hcl.Diagnostics) bool {
	errs, warnings := render.Split(diags)
	u.warn(warnings, len(errs) > 0)
	if len(errs) == 0 {
		return false
	}
	u.printErr(u.err.Problems(errs, warnings))
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
	print(r.Warnings(warnings, u.compact && !besideErrors))
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

// ask prints a question and returns the answer; "" when the input ended or the user pressed Ctrl-C. It is asked
// where somebody sees it: stdout may lead into a file or a pipe.
func (u *ui) ask(ctx context.Context, question string) string {
	print := u.print
	if u.app.stdout.columns == 0 && u.app.stderr.columns > 0 {
		print = u.printErr
	}
	u.asking.Store(true)
	defer u.asking.Store(false)
	print(question)
	answer := make(chan string, 1)
	go func() {
		line, _ := u.lines.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		print("\n")
		return ""
	case s := <-answer:
		print("\n")
		return s
	}
}
