package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func refusal(host string) Entry {
	return Entry{Event: EventDecision, Tunnel: 1, Decision: Refuse, Host: host, Port: 443, Reason: reason.HostNotDeclared}
}

func TestRepeatedRefusalsAreCounted(t *testing.T) {
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	out := &lines{}
	l := newLog(out, c.now, "invocation.a", 1<<20)
	for range 100 {
		l.Write(refusal("a.example"))
	}
	l.Write(refusal("b.example"))
	l.Write(Entry{Event: EventDecision, Tunnel: 1, Decision: Allow, Host: "a.example", Reason: reason.Allowed})
	l.Write(Entry{Event: EventDecision, Tunnel: 1, Decision: Allow, Host: "a.example", Reason: reason.Allowed})
	if n := len(out.entries(t)); n != 4 {
		t.Fatalf("%d lines: one per kind of refusal, and one per tunnel", n)
	}
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	es := out.entries(t)
	if last := es[len(es)-1]; last.Event != EventRepeated || last.Count != 99 || last.Host != "a.example" {
		t.Errorf("%+v", last)
	}
	l.Write(refusal("a.example"))
	l.End("over")
	es = out.entries(t)
	var seen, end int64
	for i, e := range es {
		if e.Seq != uint64(i+1) {
			t.Errorf("line %d has the number %d", i+1, e.Seq)
		}
		if e.Reason == reason.HostNotDeclared {
			seen += max(e.Count, 1)
		}
		end = e.Counts[reason.HostNotDeclared]
	}
	if seen != 102 || end != 102 {
		t.Errorf("102 refusals are %d in the lines and %d at the end", seen, end)
	}
}

func TestNamesThatDifferDoNotGrowTheTable(t *testing.T) {
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	l := newLog(io.Discard, c.now, "", 1<<30)
	for i := range 10 * maxRepeats {
		l.Write(refusal(fmt.Sprintf("x%d.example", i)))
	}
	if len(l.repeats) > maxRepeats+1 {
		t.Errorf("%d kinds are held", len(l.repeats))
	}
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	if len(l.repeats) != 0 {
		t.Errorf("%d kinds are held after they have stopped", len(l.repeats))
	}
}

// TestNothingPassesUntold: while a decision cannot be written, the hello and its answer pass, and nothing else
// that the agent says; without TLS not a byte.
func TestNothingPassesUntold(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  *Config
	}{{"tls", testConfig()}, {"plain", plainConfig()}} {
		t.Run(c.name, func(t *testing.T) {
			reader, writer := io.Pipe() // nobody reads at first
			got := &lines{}
			p := startProxy(t, c.cfg, upstream(t, func(c *net.TCPConn) {
				buf := make([]byte, 16<<10)
				for {
					n, err := c.Read(buf)
					_, _ = got.Write(buf[:n])
					if err != nil {
						return
					}
					if buf[0] == 22 { // a hello
						_, _ = c.Write(answer(t))
					}
				}
			}))
			p.server.log.mu.Lock()
			p.server.log.w = writer
			p.server.log.mu.Unlock()
			conn := p.tunnel(vendorName + ":443")
			before := 0
			if c.name == "tls" {
				hello := helloBytes(t, &tls.Config{ServerName: vendorName})
				before = len(hello)
				if _, err := conn.Write(hello); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(conn, make([]byte, len(answer(t)))); err != nil {
					t.Fatalf("the answer: %v", err)
				}
			}
			said := []byte{23, 3, 3, 0, 1, 'x'}
			if _, err := conn.Write(said); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * soonAfter)
			if n := got.len(); n != before {
				t.Errorf("%d bytes have passed, want %d", n, before)
			}
			line, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil || !strings.Contains(line, `"decision":"allow"`) {
				t.Errorf("%q, %v", line, err)
			}
			go func() { _, _ = io.Copy(io.Discard, reader) }()
			for start := time.Now(); got.len() < before+len(said); time.Sleep(time.Millisecond) {
				if time.Since(start) > patience {
					t.Fatalf("%d bytes have passed after the line was read", got.len())
				}
			}
		})
	}
}

// answer is a server's to a hello, as far as the proxy reads it.
func answer(t *testing.T) []byte {
	t.Helper()
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4)
	message := append([]byte{2, 0, 0, byte(len(body))}, body...)
	return append([]byte{22, 3, 3, 0, byte(len(message))}, message...)
}

func TestLogBudget(t *testing.T) {
	out := &lines{}
	l := newLog(out, time.Now, "invocation.a", 1000)
	for i := range 50 {
		l.Write(refusal(fmt.Sprintf("x%d.example", i)))
	}
	select {
	case <-l.Full():
	default:
		t.Fatal("nobody is told that the log is full")
	}
	if n := out.len(); n > 2000 {
		t.Errorf("%d bytes were written of 1000", n)
	}
	l.End("full")
	es := out.entries(t)
	if a, b := es[len(es)-2], es[len(es)-1]; a.Reason != reason.LogLimit || b.Event != EventEnd || b.Counts[reason.HostNotDeclared] != 50 {
		t.Errorf("the last lines: %+v, %+v", a, b)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestLogThatCannotBeWritten(t *testing.T) {
	l := newLog(broken{}, time.Now, "", 1<<20)
	l.Write(refusal("a.example"))
	l.Write(refusal("b.example"))
	l.End("over")
	select {
	case <-l.Full():
	default:
		t.Error("the proxy would go on without a log")
	}
}

// FuzzEntry: what is written says what the library's form says, and no terminal acts on any of it.
func FuzzEntry(f *testing.F) {
	f.Add("a.example", "evil\x1b\"\\<\u2028\xff", int64(1), int64(0))
	f.Add("\x7f\u009b2J", "\u202egnp.exe\U000e0041", int64(-1), int64(1))
	f.Fuzz(func(t *testing.T, a, b string, m, n int64) {
		e := Entry{Seq: uint64(m), Time: a, Event: Event(b), Invocation: a, Tunnel: uint64(max(n, 0)), Host: b, Port: int(m), Address: a,
			Decision: b, Reason: reason.Reason(a), Decl: b, SNI: b, Up: m, Down: n, DurationMS: m, Error: b, Count: n}
		if n != 0 {
			e.Counts = map[reason.Reason]int64{reason.Reason(a): m, "z": n}
		}
		form, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got := appendEntry(nil, e)
		if i := bytes.IndexFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f }); i >= 0 {
			t.Fatalf("byte %d of %q is for a terminal", i, got)
		}
		var is, want any
		if err := errors.Join(json.Unmarshal(got, &is), json.Unmarshal(form, &want)); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Fatalf("%s\nwant\n%s\n%s", got, form, diff)
		}
	})
}
