package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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

// TestDifferentEvidenceIsNotFolded: refusals are alike when all that would be seen of them is.
func TestDifferentEvidenceIsNotFolded(t *testing.T) {
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	out := &lines{}
	l := newLog(out, c.now, "invocation.a", 1<<20)
	one := refusal("a.example")
	one.SNI, one.Address = "first.example", "10.0.0.1:443"
	name, address, port, why := one, one, one, one
	name.SNI, address.Address, port.Port, why.Reason = "second.example", "10.0.0.2:443", 80, reason.SNIDiffers
	kinds := []Entry{one, name, address, port, why}
	for range 3 {
		for _, e := range kinds {
			l.Write(e)
		}
	}
	l.End("over")
	es := out.entries(t)
	if len(es) != 2*len(kinds)+1 {
		t.Fatalf("%d lines: one for each kind, one for what is like it, and the end", len(es))
	}
	kind := func(e Entry) string { return fmt.Sprint(e.Host, e.Port, e.SNI, e.Address, e.Reason) }
	for _, want := range kinds {
		alike := func(e Entry) bool { return kind(e) == kind(want) }
		if i := slices.IndexFunc(es, alike); i < 0 || es[i].Event != EventDecision {
			t.Errorf("%+v is not told", want)
		}
		if i := slices.IndexFunc(es[len(kinds):], alike); i < 0 || es[len(kinds)+i].Event != EventRepeated || es[len(kinds)+i].Count != 2 {
			t.Errorf("the repetitions of %+v are not told", want)
		}
	}
	checkSums(t, es)
}

// checkSums: the last line says of every reason how often the others tell it, and of the bytes the same.
func checkSums(t *testing.T, es []Entry) {
	t.Helper()
	told, up, down := map[reason.Reason]int64{}, int64(0), int64(0)
	for _, e := range es {
		switch e.Event {
		case EventDecision:
			told[e.Reason]++
		case EventRepeated, EventUnlisted:
			told[e.Reason] += e.Count
		case EventClosed:
			up, down = up+e.Up, down+e.Down
		}
	}
	end := es[len(es)-1]
	if diff := cmp.Diff(told, end.Counts); end.Event != EventEnd || diff != "" || end.Up != up || end.Down != down {
		t.Errorf("the lines say %v, %d up, %d down; the last one %+v", told, up, down, end)
	}
}

// TestNamesThatDifferDoNotGrowTheTable, and what finds no place in it is not hidden in silence.
func TestNamesThatDifferDoNotGrowTheTable(t *testing.T) {
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	out := &lines{}
	l := newLog(out, c.now, "invocation.a", 1<<30)
	for i := range 10 * maxRepeats {
		l.Write(refusal(fmt.Sprintf("x%d.example", i)))
	}
	if len(l.repeats) > maxRepeats {
		t.Errorf("%d kinds are held", len(l.repeats))
	}
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	c.at = c.at.Add(repeatAfter)
	l.Flush()
	if len(l.repeats)+len(l.unlisted) != 0 {
		t.Errorf("%d kinds are held after they have stopped", len(l.repeats))
	}
	l.Write(refusal("y.example"))
	l.End("over")
	es := out.entries(t)
	if len(es) != maxRepeats+3 {
		t.Fatalf("%d lines: as many as there are places, what found none, the one behind it, and the end", len(es))
	}
	if e := es[maxRepeats]; e.Event != EventUnlisted || e.Count != 9*maxRepeats || e.Reason != reason.HostNotDeclared || e.Host != "" {
		t.Errorf("what found no place: %+v", e)
	}
	if e := es[maxRepeats+1]; e.Host != "y.example" {
		t.Errorf("when there is a place again: %+v", e)
	}
	checkSums(t, es)
}

// TestPassIsBounded: of tunnels that are let through at once maxAhead need not wait for a log that nobody reads.
func TestPassIsBounded(t *testing.T) {
	reader, writer := io.Pipe()
	l := newLog(writer, time.Now, "invocation.a", 1<<20)
	passed := make(chan uint64, 2*maxAhead)
	for range cap(passed) {
		go func() {
			line, told := l.Pass(Entry{Event: EventDecision, Tunnel: 1, Decision: Allow, Reason: reason.Allowed})
			if !told {
				t.Error("it cannot be told")
			}
			passed <- line
		}()
	}
	for range maxAhead {
		<-passed
	}
	time.Sleep(2 * soonAfter)
	if n := len(passed); n > 0 {
		t.Errorf("%d more have passed", n)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	for range maxAhead {
		if line := <-passed; !l.Await(line) {
			t.Errorf("line %d is not written", line)
		}
	}
	if l.ahead != 0 {
		t.Errorf("%d are ahead when all is written", l.ahead)
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
	if line, told := l.Pass(Entry{Event: EventDecision, Tunnel: 1, Decision: Allow, Reason: reason.Allowed}); told {
		t.Errorf("what is let through is told on line %d", line)
	}
	l.End("full")
	es := out.entries(t)
	if a, b := es[len(es)-2], es[len(es)-1]; a.Reason != reason.LogLimit || b.Event != EventEnd || b.Counts[reason.HostNotDeclared] != 50 ||
		b.Counts[reason.Allowed] != 0 || b.Counts[reason.LogLimit] != 1 {
		t.Errorf("the last lines: %+v, %+v", a, b)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestLogThatCannotBeWritten(t *testing.T) {
	l := newLog(broken{}, time.Now, "", 1<<20)
	l.Write(refusal("a.example"))
	l.Write(refusal("b.example"))
	if line, told := l.Pass(Entry{Event: EventDecision, Tunnel: 1, Decision: Allow, Reason: reason.Allowed}); told || l.Await(1) {
		t.Errorf("line %d is told", line)
	}
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
