package egress

import (
	"fmt"
	"io"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestLimitLineTellsWhatPassed: each way by itself, and nothing of what was refused.
func TestLimitLineTellsWhatPassed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limit  func(*Limits)
		why    reason.Reason
		answer int // of the server, to each tunnel
		send   int // by the tunnel that is too much
	}{
		{"up", func(l *Limits) { l.UploadBytes = 1000 }, reason.UploadLimit, 130, 5000},
		{"down", func(l *Limits) { l.DownloadBytes = 200 }, reason.DownloadLimit, 130, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := patientConfig()
			tt.limit(&cfg.Limits)
			p := startProxy(t, cfg, answering(t, tt.answer))
			p.talk(t, 600, tt.answer)
			c := p.tunnel(okTarget)
			if _, err := c.Write(make([]byte, tt.send)); err != nil {
				t.Fatal(err)
			}
			_ = c.CloseWrite() // it may have been reset already
			_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
			e := p.await("limit", func(e Entry) bool { return e.Event == EventLimit })
			if e.Reason != tt.why || e.Up != 600 || e.Down != int64(tt.answer) {
				t.Errorf("600 bytes up and %d down had passed: %+v", tt.answer, e)
			}
		})
	}
}

// TestFullLogTellsWhatPassed: the line that says that a log is full is the last that is sure to be read.
func TestFullLogTellsWhatPassed(t *testing.T) {
	t.Parallel()
	cfg := patientConfig()
	cfg.Limits.LogBytes, cfg.Limits.TunnelsPerSecond = 4000, 1000
	p := startProxy(t, cfg, answering(t, 30_000))
	p.talk(t, 100, 30_000)
	for i := range 100 {
		p.ask(connectTo(fmt.Sprintf("x%d.example:443", i)))
	}
	e := p.awaitReason(reason.LogLimit)
	if e.Event != EventLimit || e.Up != 100 || e.Down != 30_000 {
		t.Errorf("100 bytes up and 30000 down had passed: %+v", e)
	}
}
