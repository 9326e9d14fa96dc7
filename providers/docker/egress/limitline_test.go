package egress

import (
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
