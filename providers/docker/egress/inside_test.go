package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// TestRefusalsInATunnel: what ends a tunnel for a rule is a refusal like any other, told with the name that it was
// for and counted, before the line that says that the tunnel is closed.
func TestRefusalsInATunnel(t *testing.T) {
	right, evil := helloBytes(t, &tls.Config{ServerName: vendorName}), helloBytes(t, &tls.Config{ServerName: "evil.example"})
	change, again := []byte{20, 3, 3, 0, 1, 1}, retryRequest()
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, tt := range []struct {
		name               string
		send, answer, then []byte
		upload             int64
		why                reason.Reason
		sni                string
	}{
		{"another name in a second hello", right, again, evil, 0, reason.SNIDiffers, "evil.example"},
		{"the same behind a change, cut up", right, again, join(change, records(evil, 50)), 0, reason.SNIDiffers, "evil.example"},
		{"ECH in a second hello", right, again, withExtension(evil, 0xfe0d, []byte{1}), 0, reason.ECH, "evil.example"},
		{"no name in a second hello", right, again, helloBytes(t, &tls.Config{InsecureSkipVerify: true}), 0, reason.SNIMissing, ""},
		{"a second hello too early", join(right, evil), nil, nil, 0, reason.DataBeforeAnswer, "evil.example"},
		{"the same behind a change", join(right, change, evil), nil, nil, 0, reason.DataBeforeAnswer, "evil.example"},
		{"data too early", join(right, []byte{23, 3, 3, 0, 1, 0}), nil, nil, 0, reason.DataBeforeAnswer, ""},
		{"a server without TLS", right, []byte("HTTP/1.1 200 OK\r\n\r\n"), nil, 0, reason.AnswerNotTLS, ""},
		{"an upload above the limit", right, again, right, int64(len(right)), reason.UploadLimit, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig()
			cfg.Limits.UploadBytes = tt.upload
			p := startProxy(t, cfg, upstream(t, func(c *net.TCPConn) {
				if _, err := io.ReadFull(c, make([]byte, len(right))); err == nil {
					_, _ = c.Write(tt.answer)
				}
				_, _ = io.Copy(io.Discard, c)
			}))
			c := p.tunnel(okTarget)
			if _, err := c.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			if tt.then != nil {
				if _, err := io.ReadFull(c, make([]byte, len(tt.answer))); err != nil {
					t.Fatalf("the server's answer: %v", err)
				}
				_, _ = c.Write(tt.then)
			}
			closed := p.await("closed", func(e Entry) bool { return e.Event == EventClosed })
			p.server.log.End("over")
			var refused []Entry
			es := p.log.entries(t)
			for _, e := range es {
				if e.Event == EventDecision && e.Decision == Refuse {
					refused = append(refused, e)
				}
			}
			if len(refused) != 1 {
				t.Fatalf("%d refusals are told: %+v", len(refused), es)
			}
			if e := refused[0]; e.Reason != tt.why || e.SNI != tt.sni || e.Tunnel != closed.Tunnel || e.Host != vendorName || e.Port != 443 ||
				e.Decl == "" || e.Address == "" || e.Up != 0 || e.Down != 0 || e.Seq > closed.Seq {
				t.Errorf("the refusal is told as %+v", e)
			}
			if closed.Reason != tt.why || closed.SNI != vendorName || closed.Up < int64(len(right)) {
				t.Errorf("the end is told as %+v", closed)
			}
			if n := es[len(es)-1].Counts[tt.why]; n != 1 {
				t.Errorf("the last line counts %d", n)
			}
			checkSums(t, es)
		})
	}
}
