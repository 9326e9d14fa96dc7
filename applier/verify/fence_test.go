package verify

import (
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/sandplan/sandplan/providers/docker/probe"
)

// TestFenceWaitsForItsOwn: what the canary said of an earlier fence is no sign that it has told everything by now, even
// where the clock has not moved.
func TestFenceWaitsForItsOwn(t *testing.T) {
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	c := newCollector()
	go func() { // the canary: it tells of what comes, some time later
		buf := make([]byte, 512)
		for {
			n, _, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			for _, token := range probe.FindTokens(session, string(buf[:n])) {
				line, _ := json.Marshal(probe.Message{Sighting: &probe.Sighting{Token: token, How: "UDP datagram"}})
				time.Sleep(500 * time.Millisecond)
				_, _ = c.Write(append(line, '\n'))
			}
		}
	}()
	v := &verification{
		Params: Params{Session: session, Now: func() time.Time { return time.Unix(1, 0) }},
		canary: &listener{collector: c, ready: probe.Ready{UDP: pc.LocalAddr().(*net.UDPAddr).Port}},
	}
	for told := 1; told <= 3; told++ {
		v.fence(t.Context())
		c.mu.Lock()
		n := len(c.sightings)
		c.mu.Unlock()
		if n != told {
			t.Errorf("after fence %d the canary had told of %d", told, n)
		}
	}
}
