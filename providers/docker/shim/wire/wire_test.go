package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func frames(fs ...Frame) []byte {
	var b []byte
	for _, f := range fs {
		b = f.append(b)
	}
	return b
}

func TestReaderOrder(t *testing.T) {
	challenge := Frame{TypeChallenge, 0, []byte(`{"nonce":"n","token":"t"}`)}
	for name, c := range map[string]struct {
		in       []byte
		bundleOK bool
		want     int    // frames read
		wantErr  string // of the next read; "" means io.EOF
		reason   string
	}{
		"whole run": {frames(challenge, Frame{TypeBeat, 1, nil}, Frame{TypeBundle, 2, []byte("{}")}, Frame{TypeBeat, 3, nil}, Frame{TypeStop, 4, nil}),
			true, 5, "", "the order of a run that goes well"},
		"empty":                  {nil, true, 0, "", "nobody attached"},
		"beat first":             {frames(Frame{TypeBeat, 0, nil}), true, 0, "the challenge comes first", "a lease needs a challenge"},
		"stop first":             {frames(Frame{TypeStop, 0, nil}), true, 0, "the challenge comes first", "a lease needs a challenge"},
		"bundle first":           {frames(Frame{TypeBundle, 0, nil}), true, 0, "the challenge comes first", "secrets before proof"},
		"challenge twice":        {frames(challenge, Frame{TypeChallenge, 1, challenge.Body}), true, 1, "first and once", "a second attacher starts over"},
		"bundle twice":           {frames(challenge, Frame{TypeBundle, 1, nil}, Frame{TypeBundle, 2, nil}), true, 2, "a second bundle", "another prompt slipped in"},
		"bundle before report":   {frames(challenge, Frame{TypeBundle, 1, nil}), false, 1, "before the report", "secrets before proof"},
		"gap":                    {frames(challenge, Frame{TypeBeat, 2, nil}), true, 1, "frame 2 came where 1 was due", "a frame was swallowed"},
		"repeated number":        {frames(challenge, Frame{TypeBeat, 1, nil}, Frame{TypeBeat, 1, nil}), true, 2, "frame 1 came where 2 was due", "a second attacher's bytes mix in"},
		"unknown type":           {frames(challenge, Frame{9, 1, nil}), true, 1, "type 9", "from no version of ours"},
		"beat with body":         {frames(challenge, Frame{TypeBeat, 1, []byte("x")}), true, 1, "a beat of 1 bytes", "no room for a side channel"},
		"huge challenge":         {frames(Frame{TypeChallenge, 0, make([]byte, MaxChallenge+1)}), true, 0, "at most 65536", "bounded memory"},
		"cut in header":          {frames(challenge)[:5], true, 0, "ends within a frame", "the link broke"},
		"cut in body":            {frames(challenge)[:20], true, 0, "ends within a challenge", "the link broke"},
		"cut between head, body": {frames(challenge)[:headerSize], true, 0, "ends within a challenge", "io.EOF here would look like an orderly end"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(bytes.NewReader(c.in))
			if c.bundleOK {
				r.AllowBundle()
			}
			n := 0
			var err error
			for err == nil {
				if _, err = r.Next(); err == nil {
					n++
				}
			}
			if n != c.want {
				t.Errorf("read %d frames, want %d (%s)", n, c.want, c.reason)
			}
			if c.wantErr == "" {
				if !errors.Is(err, io.EOF) {
					t.Errorf("ended with %v, want EOF (%s)", err, c.reason)
				}
				return
			}
			if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("ended with %v, want a protocol error with %q (%s)", err, c.wantErr, c.reason)
			}
			if _, again := r.Next(); !errors.Is(again, ErrProtocol) {
				t.Errorf("after the error the next read gives %v (%s)", again, c.reason)
			}
		})
	}
}

func TestLeaseRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		l, w := Hold(in, Silence), NewWriter(out)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = w.Challenge(Challenge{Nonce: "n", Token: "t", HostAddresses: []string{"10.0.0.1"}})
			_ = w.Beats(ctx, BeatEvery)
		}()
		c, err := l.Challenge(t.Context())
		if err != nil || c.Nonce != "n" || c.Token != "t" || len(c.HostAddresses) != 1 {
			t.Fatalf("challenge = %+v, %v", c, err)
		}
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil {
			t.Fatalf("an hour of beats ended the lease: %v", err)
		}
		l.AllowBundle()
		want := Bundle{Prompt: []byte("do\x00it"), Credentials: map[string][]byte{"KEY": []byte("secret")}}
		if err := w.Bundle(want); err != nil {
			t.Fatal(err)
		}
		if got, err := l.Bundle(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("bundle = %+v, %v", got, err)
		}
		cancel()
		began := time.Now()
		<-l.Done()
		if d := time.Since(began); d > Silence || d < Silence-BeatEvery {
			t.Errorf("after the last beat the lease lasted %s", d)
		}
		if !errors.Is(l.Err(), ErrSilent) {
			t.Errorf("it ended because %v", l.Err())
		}
		out.Close()
	})
}

func TestLeaseEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(w *Writer, out *io.PipeWriter)
		want   error
		after  time.Duration
		reason string
	}{
		"nobody":  {func(*Writer, *io.PipeWriter) {}, ErrSilent, 3 * time.Second, "started by hand, without an attached client"},
		"closed":  {func(_ *Writer, out *io.PipeWriter) { out.Close() }, ErrClosed, 0, "sandplan was killed"},
		"stop":    {func(w *Writer, _ *io.PipeWriter) { _ = w.Stop() }, ErrStopped, 0, "asked for"},
		"early":   {func(w *Writer, _ *io.PipeWriter) { _ = w.Bundle(Bundle{}) }, ErrProtocol, 0, "a bundle that was not allowed"},
		"garbage": {func(_ *Writer, out *io.PipeWriter) { _, _ = out.Write(make([]byte, 64)) }, ErrProtocol, 0, "bytes of somebody else"},
		"trickle": {func(_ *Writer, out *io.PipeWriter) { drip(out) }, ErrSilent, 3 * time.Second, "half a frame is no sign of life"},
		"cut": {func(_ *Writer, out *io.PipeWriter) {
			_, _ = out.Write(frames(Frame{TypeBeat, 1, nil})[:3])
			out.Close()
		}, ErrProtocol, 0, "the link broke within a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				var doing sync.WaitGroup
				defer doing.Wait()
				defer out.Close()
				defer in.Close()
				l, w := Hold(in, 3*time.Second), NewWriter(out)
				if name != "nobody" {
					if err := w.Challenge(Challenge{Nonce: "n", Token: "t"}); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				doing.Go(func() { c.do(w, out) })
				<-l.Done()
				if !errors.Is(l.Err(), c.want) || time.Since(began) != c.after {
					t.Errorf("ended after %s with %v, want %v after %s (%s)", time.Since(began), l.Err(), c.want, c.after, c.reason)
				}
				if _, err := l.Bundle(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("Bundle after the end: %v", err)
				}
			})
		})
	}
}

func drip(out io.Writer) {
	for range headerSize - 1 {
		if _, err := out.Write([]byte{0}); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func TestChallengeBodies(t *testing.T) {
	for body, reason := range map[string]string{
		`{"nonce":"n"}`:                      "no token: the exit record could be forged",
		`{"token":"t"}`:                      "no nonce: the report could be an old one",
		`{"nonce":"n","token":"t","x":1}`:    "a field of no version of ours",
		`{"nonce":"n","token":"t"}{}`:        "more than one value",
		``:                                   "no JSON",
		`{"nonce":"n","token":"t"} trailing`: "trailing bytes",
	} {
		l := Hold(bytes.NewReader(frames(Frame{TypeChallenge, 0, []byte(body)})), time.Minute)
		if _, err := l.Challenge(t.Context()); !errors.Is(err, ErrProtocol) {
			t.Errorf("challenge %q: %v, want a protocol error (%s)", body, err, reason)
		}
	}
}

func TestWriterOrder(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	if err := w.Beat(); err == nil {
		t.Error("a beat before the challenge was written")
	}
	if err := w.Challenge(Challenge{Nonce: "n", Token: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Challenge(Challenge{Nonce: "n", Token: "t"}); err == nil {
		t.Error("a second challenge was written")
	}
	if err := w.Bundle(Bundle{Prompt: make([]byte, MaxBundle)}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a bundle above the bound: %v", err)
	}
	if err := w.Bundle(Bundle{}); err != nil {
		t.Errorf("a bundle after one that was refused: %v", err)
	}
	if err := w.Bundle(Bundle{}); err == nil {
		t.Error("a second bundle was written")
	}
	r := NewReader(&out)
	r.AllowBundle()
	for _, want := range []Type{TypeChallenge, TypeBundle} {
		if f, err := r.Next(); err != nil || f.Type != want {
			t.Errorf("read %v, %v; want a %s", f, err, want)
		}
	}
}

type cutWriter struct{ left int }

func (c *cutWriter) Write(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return len(p) / 2, errors.New("cut")
	}
	return len(p), nil
}

func TestWriterStaysInError(t *testing.T) {
	w := NewWriter(&cutWriter{left: 1})
	if err := w.Challenge(Challenge{Nonce: "n", Token: "t"}); err != nil {
		t.Fatal(err)
	}
	first, second := w.Beat(), w.Stop()
	if first == nil || second != first {
		t.Errorf("errors %v, then %v: half a frame was written, nothing may follow", first, second)
	}
}

func TestReportLine(t *testing.T) {
	want := Report{Nonce: "n", Checks: []Check{{"a", true, ""}, {"b", false, "found <x>"}},
		Mounts: []Mount{{Path: "/work", Dev: 7, Inode: 8, ReadOnly: true}}}
	var out bytes.Buffer
	if err := WriteReport(&out, want); err != nil {
		t.Fatal(err)
	}
	line := out.Bytes()
	if bytes.Count(line, []byte("\n")) != 1 || !bytes.HasPrefix(line, []byte(`{"sandplan":"report"`)) {
		t.Errorf("line = %q", line)
	}
	got, err := ParseReport(line, "n")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if f := got.Failed(); len(f) != 1 || f[0].Name != "b" {
		t.Errorf("failed = %+v", f)
	}
	if _, err := ParseReport(line, "m"); err == nil || !strings.Contains(err.Error(), "another challenge") {
		t.Errorf("another nonce: %v", err)
	}
	if _, err := ParseReady(line, "n"); err == nil {
		t.Error("a report was taken for a ready line")
	}
	if _, err := ParseReport([]byte("panic: oops\n"), "n"); err == nil || !strings.Contains(err.Error(), "panic: oops") {
		t.Errorf("a line that is no JSON: %v", err)
	}
	out.Reset()
	ready := Ready{Nonce: "n", Listen: "10.0.0.2:3128"}
	if err := WriteReady(&out, ready); err != nil {
		t.Fatal(err)
	}
	if got, err := ParseReady(out.Bytes(), "n"); err != nil || !reflect.DeepEqual(got, ready) {
		t.Errorf("ready = %+v, %v", got, err)
	}
}

func TestExitFilter(t *testing.T) {
	rec := func(token string) string {
		var b bytes.Buffer
		if err := WriteExit(&b, Exit{Token: token, By: ByAgent, Code: 42, Stdout: 3}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		in, want string
		ok       bool
		reason   string
	}{
		"nothing":       {"", "", false, "killed before it could say anything"},
		"only record":   {rec("tok"), "", true, "an agent without stderr"},
		"after line":    {"hello\n" + rec("tok"), "hello\n", true, "the usual"},
		"after partial": {"hello" + rec("tok"), "hello", true, "an unfinished line is passed on as it is"},
		"other token":   {"a" + rec("guess"), "a" + rec("guess"), false, "a forgery is the agent's text"},
		"both":          {rec("guess") + rec("tok"), rec("guess"), true, "a forgery before the real one"},
		"not last":      {rec("tok") + "x", rec("tok") + "x", false, "only the end counts"},
		"cut record":    {rec("tok")[:30], rec("tok")[:30], false, "killed while it wrote"},
		"separators":    {"\x1e\x1e{\x1e" + rec("tok"), "\x1e\x1e{\x1e", true, "prefixes of the mark"},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			var out bytes.Buffer
			f := NewExitFilter(&out, "tok")
			for in := []byte(c.in); len(in) > 0; in = in[min(size, len(in)):] {
				if n, err := f.Write(in[:min(size, len(in))]); err != nil || n != min(size, len(in)) {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			e, ok, err := f.Close()
			if err != nil || ok != c.ok || out.String() != c.want {
				t.Errorf("%s, %d at a time: %q, %v, %v; want %q, %v (%s)", name, size, out.String(), ok, err, c.want, c.ok, c.reason)
			}
			if ok && (e.Code != 42 || e.By != ByAgent || e.Stdout != 3) {
				t.Errorf("%s: exit = %+v", name, e)
			}
		}
	}
}

func TestExitFilterHoldsNothingBack(t *testing.T) {
	var out bytes.Buffer
	f := NewExitFilter(&out, "tok")
	_, _ = f.Write([]byte("line\n"))
	if out.String() != "line\n" {
		t.Errorf("passed on %q at once, want the whole line", out.String())
	}
	endless := append(exitMark("tok"), bytes.Repeat([]byte("x"), exitBound)...)
	_, _ = f.Write(endless)
	if len(f.held) != 0 || out.Len() != len("line\n")+len(endless) {
		t.Errorf("an endless record is held back: %d bytes", len(f.held))
	}
}

func FuzzReader(f *testing.F) {
	f.Add(frames(Frame{TypeChallenge, 0, []byte(`{"nonce":"n","token":"t"}`)}, Frame{TypeBeat, 1, nil}, Frame{TypeBundle, 2, []byte("{}")}, Frame{TypeStop, 3, nil}), true)
	f.Add(frames(Frame{TypeChallenge, 0, nil}, Frame{TypeBundle, 1, []byte("{}")}), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, true)
	f.Fuzz(func(t *testing.T, in []byte, allow bool) {
		r := NewReader(bytes.NewReader(in))
		if allow {
			r.AllowBundle()
		}
		var read []Frame
		for {
			fr, err := r.Next()
			if err != nil {
				break
			}
			read = append(read, fr)
		}
		if again := frames(read...); !bytes.HasPrefix(in, again) {
			t.Fatalf("frames %v do not encode to what was read", read)
		}
		bundles := 0
		for i, fr := range read {
			if (i == 0) != (fr.Type == TypeChallenge) || fr.Seq != uint64(i) {
				t.Fatalf("frame %d is a %s with number %d", i, fr.Type, fr.Seq)
			}
			if fr.Type == TypeBundle {
				bundles++
			}
		}
		if bundles > 1 || bundles > 0 && !allow {
			t.Fatalf("%d bundles, allowed: %v", bundles, allow)
		}
	})
}
