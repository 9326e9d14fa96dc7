package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Who decided how a run ended.
const (
	ByAgent = "agent"
	ByShim  = "shim"
)

// Cause is the reason of an end that the shim decided.
type Cause string

// The causes. ByAgent ends have none.
const (
	CauseTimeout       Cause = "timeout"        // the declared time is over
	CauseOutput        Cause = "output"         // the output bound is used up
	CauseProof         Cause = "proof"          // the sandbox is not as declared; the report says where
	CauseLease         Cause = "lease"          // sandplan, the engine or the link is gone, or broke the protocol
	CauseStop          Cause = "stop"           // sandplan asked for it
	CauseProxy         Cause = "proxy"          // the proxy is gone
	CauseMount         Cause = "mount"          // a mount is gone or changed
	CauseNotExecutable Cause = "not_executable" // the command cannot be executed
	CauseNotFound      Cause = "not_found"      // the command does not exist
	CauseInternal      Cause = "internal"       // the shim itself failed
)

// OutOfMemory is the detail of an agent's end by SIGKILL that the kernel chose, for want of memory.
const OutOfMemory = "out of memory"

// Exit is the last that a shim says.
type Exit struct {
	Token string `json:"token"`
	By    string `json:"by"`
	// Code is the agent's exit code, or 128 + n when signal n ended it; without meaning when By is shim.
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Cause  Cause  `json:"cause,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Stdout and Stderr are how many bytes the agent wrote, cut ones included.
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// An exit record starts with RS (RFC 7464), not with a line feed: it can follow an unfinished line of
// the agent and be cut off again without a trace, and a filter need not hold back every line feed.
const recordSeparator = 0x1e

// exitBound is the longest exit record that is read.
const exitBound = 64 << 10

// WriteExit writes the exit record. Nothing may be written to w afterwards.
func WriteExit(w io.Writer, e Exit) error {
	rec, err := json.Marshal(exitRecord{kindExit, e})
	if err != nil {
		return err
	}
	_, err = w.Write(append(append([]byte{recordSeparator}, rec...), '\n'))
	return err
}

type exitRecord struct {
	Kind string `json:"sandplan"`
	Exit
}

// exitMark is how an exit record with this token begins: what an agent cannot write.
func exitMark(token string) []byte {
	b, err := json.Marshal(struct {
		Kind  string `json:"sandplan"`
		Token string `json:"token"`
	}{kindExit, token})
	if err != nil {
		panic(err) // two strings always have a JSON form
	}
	return append([]byte{recordSeparator}, b[:len(b)-1]...)
}

// ExitFilter passes standard error of a container on, and keeps the exit record at its end back.
type ExitFilter struct {
	w    io.Writer
	mark []byte
	held []byte // begins with a prefix of mark, or with the whole of it
}

// NewExitFilter writes to w all that is written to the filter, except the record with this token.
func NewExitFilter(w io.Writer, token string) *ExitFilter {
	return &ExitFilter{w: w, mark: exitMark(token)}
}

// Write implements io.Writer. Only bytes that may be the beginning of the record are held back.
func (f *ExitFilter) Write(p []byte) (int, error) {
	f.held = append(f.held, p...)
	at := markAt(f.held, f.mark)
	if at == 0 && len(f.held) > exitBound {
		at = 1 + markAt(f.held[1:], f.mark) // a record without an end is none
	}
	if at > 0 {
		if _, err := f.w.Write(f.held[:at]); err != nil {
			return 0, err
		}
		f.held = append(f.held[:0], f.held[at:]...)
	}
	return len(p), nil
}

// markAt is where mark begins in b, or at the end of b a prefix of it; len(b) when nowhere.
func markAt(b, mark []byte) int {
	for from := 0; ; from++ {
		i := bytes.IndexByte(b[from:], mark[0])
		if i < 0 {
			return len(b)
		}
		from += i
		n := min(len(mark), len(b)-from)
		if bytes.Equal(b[from:from+n], mark[:n]) {
			return from
		}
	}
}

// Close ends the stream and returns the exit record, if it ended with one. What was held back and is
// no record is written.
func (f *ExitFilter) Close() (Exit, bool, error) {
	e, err := parseExit(f.held, f.mark)
	if err == nil {
		f.held = nil
		return e, true, nil
	}
	if len(f.held) > 0 {
		_, err := f.w.Write(f.held)
		f.held = nil
		return Exit{}, false, err
	}
	return Exit{}, false, nil
}

func parseExit(rec, mark []byte) (Exit, error) {
	if !bytes.HasPrefix(rec, mark) || !bytes.HasSuffix(rec, []byte("\n")) {
		return Exit{}, errors.New("no exit record")
	}
	var v exitRecord
	if err := decode(rec[1:], &v); err != nil {
		return Exit{}, fmt.Errorf("exit record: %w", err)
	}
	if v.By != ByAgent && v.By != ByShim {
		return Exit{}, fmt.Errorf("exit record: decided by %q", v.By)
	}
	return v.Exit, nil
}
