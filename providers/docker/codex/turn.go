package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sandplan/sandplan/planner/policy"
	"github.com/sandplan/sandplan/providers/docker/codex/files"
)

// turn is the one turn of a run.
type turn struct {
	cfg    policy.CodexServer
	reader *files.Reader
	events *eventWriter
	conn   *conn

	patches map[string]*patch // by the identifier of their item

	usage json.RawMessage
	// away is when the vendor was first found out of reach, and since when nothing has come of it.
	away   *time.Timer
	reason string
}

// startLimit is how long the app server may take to get ready; it needs a second.
const startLimit = 30 * time.Second

// run starts a thread, gives it the prompt, and answers until the turn ends.
func (t *turn) run(ctx context.Context, prompt string) error {
	thread, err := t.begin(ctx)
	if err != nil {
		return err
	}
	t.events.put(event{"type": "thread.started", "thread_id": thread})
	id, err := t.conn.request("turn/start", event{"threadId": thread, "input": []any{event{"type": "text", "text": prompt}}})
	if err != nil {
		return err
	}
	t.events.put(event{"type": "turn.started"})
	late := make(chan struct{}, 1)
	t.away = time.AfterFunc(time.Hour, func() {
		select {
		case late <- struct{}{}:
		default:
		}
	})
	t.away.Stop()
	defer t.away.Stop()
	for {
		m, err := t.conn.receive(ctx, late)
		if errors.Is(err, errLate) {
			return fmt.Errorf("the vendor is out of reach: %s", t.reason)
		}
		if err != nil {
			return err
		}
		if m.Method == "" && m.Error != nil && string(m.ID) == id {
			return fmt.Errorf("the app server refuses the turn: %s", m.Error.Message)
		}
		if done, err := t.handle(ctx, m); done || err != nil {
			return err
		}
	}
}

// begin is the conversation up to a thread.
func (t *turn) begin(ctx context.Context) (thread string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var hello struct {
		UserAgent string `json:"userAgent"`
	}
	if err := t.ask(ctx, "initialize", event{
		"clientInfo":   event{"name": "sandplan", "title": "sandplan", "version": "1"},
		"capabilities": event{"experimentalApi": true},
	}, &hello); err != nil {
		return "", err
	}
	// "sandplan/0.171.0 (Linux …"
	if !strings.Contains(hello.UserAgent, "/"+t.cfg.Version+" ") {
		return "", fmt.Errorf("the app server says that it is %q; the command was made for version %s", hello.UserAgent, t.cfg.Version)
	}
	if err := t.conn.notify("initialized"); err != nil {
		return "", err
	}
	var started struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
		Model   string `json:"model"`
		Sandbox struct {
			Type string `json:"type"`
		} `json:"sandbox"`
		Approval           string   `json:"approvalPolicy"`
		InstructionSources []string `json:"instructionSources"`
	}
	if err := t.ask(ctx, "thread/start", event{
		"cwd": t.cfg.Dir, "model": t.cfg.Model, "sandbox": t.cfg.Sandbox, "approvalPolicy": t.cfg.Approval, "ephemeral": true,
		"dynamicTools": toolSpecs(t.cfg.Tools),
	}, &started); err != nil {
		return "", err
	}
	if started.Model != t.cfg.Model || len(started.InstructionSources) > 0 {
		return "", fmt.Errorf("the app server starts with model %q and instructions from %q; declared: %q and none", started.Model, started.InstructionSources, t.cfg.Model)
	}
	// What the requirements do not allow is replaced, with a warning at most.
	if want := sandboxType(t.cfg.Sandbox); started.Approval != t.cfg.Approval || started.Sandbox.Type != want {
		return "", fmt.Errorf("the app server starts with approval policy %q and sandbox %q; declared: %q and %q", started.Approval, started.Sandbox.Type, t.cfg.Approval, want)
	}
	for _, file := range t.cfg.Wipe {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("a credential cannot be taken away: %w", err)
		}
	}
	return started.Thread.ID, nil
}

// sandboxType is how the app server spells a sandbox mode in its answers: danger-full-access is
// dangerFullAccess.
func sandboxType(mode string) string {
	var b strings.Builder
	up := false
	for _, r := range mode {
		switch {
		case r == '-':
			up = true
			continue
		case up:
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}

// ask sends a request and waits for its answer; what comes in between is of no thread yet.
func (t *turn) ask(ctx context.Context, method string, params, into any) error {
	id, err := t.conn.request(method, params)
	if err != nil {
		return err
	}
	for {
		m, err := t.conn.receive(ctx, nil)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", method, err)
		case m.Method != "" && len(m.ID) > 0:
			if err := t.conn.refuse(m.ID, "not in this sandbox"); err != nil {
				return err
			}
		case m.Method != "" || string(m.ID) != id:
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		default:
			return json.Unmarshal(m.Result, into)
		}
	}
}

// handle answers one message, and says whether the turn is over.
func (t *turn) handle(ctx context.Context, m message) (done bool, err error) {
	switch {
	case m.Method == "item/tool/call" && len(m.ID) > 0:
		return false, t.toolCall(ctx, m)
	case m.Method == "item/fileChange/requestApproval" && len(m.ID) > 0:
		return false, t.approve(m)
	case m.Method != "" && len(m.ID) > 0:
		// Other approvals and questions have nobody to answer them.
		t.events.put(event{"type": "error", "message": "Codex asks for " + m.Method + ", which is not in this sandbox"})
		return false, t.conn.refuse(m.ID, "not in this sandbox")
	}
	switch m.Method {
	case "item/completed":
		t.away.Stop()
		t.item(m.Params)
		return false, t.learn(m.Method, m.Params)
	case "item/started":
		t.away.Stop()
		return false, t.learn(m.Method, m.Params)
	case "item/agentMessage/delta":
		t.away.Stop()
	case "thread/tokenUsage/updated":
		var p struct {
			TokenUsage json.RawMessage `json:"tokenUsage"`
		}
		_ = json.Unmarshal(m.Params, &p)
		t.usage = p.TokenUsage
	case "error":
		t.failing(m.Params)
	case "turn/completed":
		return true, t.completed(m.Params)
	}
	return false, nil
}

// failing: the app server tries again for minutes when it gets no answer.
func (t *turn) failing(params json.RawMessage) {
	var p struct {
		Error     turnError `json:"error"`
		WillRetry bool      `json:"willRetry"`
	}
	_ = json.Unmarshal(params, &p)
	t.events.put(event{"type": "error", "message": p.Error.text()})
	if p.WillRetry && t.reason == "" {
		t.away.Reset(time.Duration(t.cfg.PatienceMS) * time.Millisecond)
	}
	t.reason = p.Error.text()
}

type turnError struct {
	Message string `json:"message"`
	Details string `json:"additionalDetails"`
}

func (e turnError) text() string {
	if e.Details != "" {
		return e.Message + ": " + e.Details
	}
	return e.Message
}

func (t *turn) completed(params json.RawMessage) error {
	var p struct {
		Turn struct {
			Status string    `json:"status"`
			Error  turnError `json:"error"`
		} `json:"turn"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	if p.Turn.Status != "completed" {
		return fmt.Errorf("the turn %s: %s", p.Turn.Status, p.Turn.Error.text())
	}
	t.events.put(event{"type": "turn.completed", "usage": t.usage})
	return nil
}

// item passes on what is finished, with its type as `codex exec` spells it.
func (t *turn) item(params json.RawMessage) {
	var p struct {
		Item event `json:"item"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	kind, _ := p.Item["type"].(string)
	if kind == "userMessage" {
		return // the prompt, which may be nobody's business who reads the output
	}
	t.reason = ""
	p.Item["type"] = snake(kind)
	t.events.put(event{"type": "item.completed", "item": p.Item})
}

func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// toolCall answers a call of one of our tools, and of no other.
func (t *turn) toolCall(ctx context.Context, m message) error {
	var p struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	text, err := "", json.Unmarshal(m.Params, &p)
	switch {
	case err != nil:
	case !slices.Contains(t.cfg.Tools, p.Tool):
		err = fmt.Errorf("unsupported call: %s", p.Tool)
	default:
		text, err = t.reader.Call(ctx, p.Tool, p.Arguments)
	}
	if err != nil {
		text = "error: " + err.Error()
	}
	return t.conn.answer(m.ID, event{"success": err == nil, "contentItems": []any{event{"type": "inputText", "text": text}}})
}
