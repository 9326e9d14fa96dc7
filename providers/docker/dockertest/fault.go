package dockertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to some calls instead of what the engine does.
type Fault struct {
	// Call selects the calls: a regular expression over "METHOD /path" without the API version and the
	// query, as in `^POST /containers/create$`. In front of a Fake the IDs in paths are addresses, see there.
	Call string
	// After lets that many calls through first; Times is how many are hit then, 0 for all.
	After, Times int

	// Delay comes before everything else, and so does the wait for the end of Until, where there is one.
	Delay time.Duration
	Until <-chan struct{}
	// Status answers in place of the engine, with Message.
	Status  int
	Message string
	// Cut closes the connection without an answer: before the engine gets the call, or, with Obeyed,
	// after it has done what it was asked to.
	Cut    bool
	Obeyed bool
	// Half closes the connection in the middle of the answer.
	Half bool
	// Twice lets the engine get the call twice, as from a client that tries again, and gives its second
	// answer; in a stream every line comes twice.
	Twice bool
	// Stale answers what was answered to the same call before, if it was made before.
	Stale bool
	// Edit changes the JSON of the engine's answer.
	Edit func(body any) any

	pattern *regexp.Regexp
	seen    int
}

// faults are the calls of a server and what is to happen to them.
type faults struct {
	mu    sync.Mutex
	calls []string
	list  []*Fault
	last  map[string]*httptest.ResponseRecorder // the last answer to each call, when one is to be stale
	after func(call string, n int)
}

func newFaults(list []Fault) *faults {
	f := &faults{}
	for i := range list {
		f.add(list[i])
	}
	return f
}

func (f *faults) add(fault Fault) {
	fault.pattern = regexp.MustCompile(fault.Call)
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault.Stale && f.last == nil {
		f.last = map[string]*httptest.ResponseRecorder{}
	}
	f.list = append(f.list, &fault)
}

// Calls are all calls so far, as "METHOD /path".
func (f *faults) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// Count is how many calls match a regular expression.
func (f *faults) Count(call string) int {
	pattern, n := regexp.MustCompile(call), 0
	for _, c := range f.Calls() {
		if pattern.MatchString(c) {
			n++
		}
	}
	return n
}

type faultKey struct{}

func withFault(ctx context.Context, f *Fault) context.Context {
	return context.WithValue(ctx, faultKey{}, f)
}

// faultOf is the fault that hits a call, for handlers of streams, which nobody can hit from outside.
func faultOf(r *http.Request) Fault {
	if f, _ := r.Context().Value(faultKey{}).(*Fault); f != nil {
		return *f
	}
	return Fault{}
}

// record notes a call, says how often it was made, and finds the fault that hits it.
func (f *faults) record(call string) (n int, hit *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	for _, one := range f.list {
		if !one.pattern.MatchString(call) {
			continue
		}
		one.seen++
		if hit == nil && one.seen > one.After && (one.Times == 0 || one.seen <= one.After+one.Times) {
			hit = one
		}
	}
	return n, hit
}

// isStream reports whether the answer to a call has no end that could be waited for.
func isStream(path string) bool {
	for _, s := range []string{"/events", "/attach", "/wait", "/images/load"} {
		if strings.HasSuffix(path, s) {
			return true
		}
	}
	return false
}

// wrap puts the faults before an engine. name is how a call is called.
func (f *faults) wrap(engine http.Handler, name func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := name(r)
		n, hit := f.record(call)
		if hit != nil && !f.before(w, r, hit) {
			return
		}
		if hit != nil {
			r = r.WithContext(withFault(r.Context(), hit))
		}
		r = r.WithContext(context.WithValue(r.Context(), answeredKey{}, func() { f.answered(call, n) }))
		if isStream(r.URL.Path) && (hit == nil || !hit.Cut) {
			engine.ServeHTTP(w, r)
			return
		}
		if hit == nil && f.after == nil && f.last == nil {
			engine.ServeHTTP(w, r)
			return
		}
		answer := f.serve(engine, r, hit)
		f.answered(call, n)
		deliver(w, answer, hit)
	})
}

type answeredKey struct{}

// answered is called by handlers of streams once the client can know that it has been heard.
func answered(r *http.Request) {
	if tell, ok := r.Context().Value(answeredKey{}).(func()); ok {
		tell()
	}
}

func (f *faults) answered(call string, n int) {
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	if after != nil {
		after(call, n)
	}
}

// before does what comes in place of the engine, and reports whether the engine is to be asked.
func (f *faults) before(w http.ResponseWriter, r *http.Request, hit *Fault) bool {
	select {
	case <-time.After(hit.Delay):
	case <-r.Context().Done():
		return false
	}
	if hit.Until != nil {
		select {
		case <-hit.Until:
		case <-r.Context().Done():
			return false
		}
	}
	switch {
	case hit.Cut && !hit.Obeyed:
		panic(http.ErrAbortHandler)
	case hit.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(hit.Status)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": hit.Message})
		return false
	}
	return true
}

// serve asks the engine, once or twice, and keeps the answer back.
func (f *faults) serve(engine http.Handler, r *http.Request, hit *Fault) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	if hit != nil && hit.Twice {
		body, _ := io.ReadAll(r.Body)
		first := r.Clone(r.Context())
		first.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(httptest.NewRecorder(), first)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	engine.ServeHTTP(answer, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil {
		key := r.Method + " " + r.URL.RequestURI()
		before := f.last[key]
		if f.last[key] = answer; hit != nil && hit.Stale && before != nil {
			return before
		}
	}
	return answer
}

func deliver(w http.ResponseWriter, answer *httptest.ResponseRecorder, hit *Fault) {
	if hit != nil && hit.Cut {
		panic(http.ErrAbortHandler)
	}
	body := answer.Body.Bytes()
	for k, v := range answer.Result().Header {
		w.Header()[k] = v
	}
	if hit != nil && hit.Edit != nil && answer.Code < http.StatusMultipleChoices {
		edited, err := edit(body, hit.Edit)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		body = edited
	}
	if answer.Code != http.StatusNoContent && answer.Code >= 200 && w.Header().Get("Transfer-Encoding") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(answer.Code)
	if hit != nil && hit.Half {
		_, _ = w.Write(body[:len(body)/2])
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

func edit(raw []byte, change func(any) any) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var body any
	if err := dec.Decode(&body); err != nil {
		return nil, fmt.Errorf("edit the engine's answer: %w", err)
	}
	return json.Marshal(change(body))
}
