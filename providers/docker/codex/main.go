// Package codex drives Codex's app server inside an agent's container, and answers its calls of the tools
// that look at the worktree. Without a shell Codex has no such tools, and it takes them from its client.
//
// It runs as the agent's user, under the shim like any command, and holds no credential: the app server
// reads its own from its home. Standard input is the prompt. Standard output is a line of JSON for each
// event, in the form of `codex exec --json`; the last one is turn.completed or turn.failed. Start with
// Main, then turn.go (what is asked for) and rpc.go (how); files/ are the tools.
package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/codex/files"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is the program. It returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cfg, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "codex: %v\n", err)
		return exitUsage
	}
	prompt, err := io.ReadAll(io.LimitReader(stdin, 2*policy.MaxPrompt))
	if err != nil {
		fmt.Fprintf(stderr, "codex: read the prompt: %v\n", err)
		return exitFailed
	}
	events := &eventWriter{to: stdout}
	if err := drive(context.Background(), cfg, string(prompt), events, stderr); err != nil {
		events.put(event{"type": "turn.failed", "error": event{"message": err.Error()}})
		return exitFailed
	}
	return exitOK
}

func parse(args []string) (policy.CodexServer, error) {
	var cfg policy.CodexServer
	if len(args) != 1 {
		return cfg, errors.New("this is started by sandplan, with one argument")
	}
	dec := json.NewDecoder(strings.NewReader(args[0]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cfg); err != nil {
		return cfg, err
	}
	if len(cfg.Argv) == 0 || cfg.Dir == "" || cfg.Model == "" || cfg.PatienceMS <= 0 {
		return cfg, errors.New("the argument names no command, directory, model or patience")
	}
	return cfg, nil
}

// drive runs the app server for one turn.
func drive(ctx context.Context, cfg policy.CodexServer, prompt string, events *eventWriter, stderr io.Writer) error {
	reader, err := files.Open(cfg.Dir)
	if err != nil {
		return err
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, cfg.Argv[0], cfg.Argv[1:]...)
	cmd.Dir, cmd.Stderr = cfg.Dir, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Codex: %w", err)
	}
	t := &turn{cfg: cfg, reader: reader, events: events, conn: newConn(in, out)}
	err = t.run(ctx, prompt)
	cancel() // it has no work left, and would wait for more
	_ = cmd.Wait()
	return err
}

type event = map[string]any

// eventWriter writes one line for each event.
type eventWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *eventWriter) put(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		return // what came as JSON has a JSON form
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.to.Write(append(line, '\n'))
}
