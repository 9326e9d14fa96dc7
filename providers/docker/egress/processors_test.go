package egress

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestProcessorsFollowTheWork: one while things are done one after the other, all of them from the second thing
// at once on, and one again when there were not several for a while.
func TestProcessorsFollowTheWork(t *testing.T) {
	for _, tt := range []struct {
		name   string
		all    int
		steps  string // + begins something, - ends something, . is a look
		want   []int
		looks  int // that are still to come
		reason string
	}{
		{"one after the other", 4, "+-+-+-+", []int{1}, 0, "a second one would look for work in vain"},
		{"two at once", 4, "++", []int{1, 4}, 1, "there is work for it"},
		{"several bursts", 4, "++--.++--.+-.", []int{1, 4, 1}, 0, "the second burst came before the calm"},
		{"a burst that goes on", 2, "+++..-", []int{1, 2}, 1, "there are several at each look"},
		{"the last of many", 2, "+++--..", []int{1, 2, 1}, 0, "what is left is one thing"},
		{"again later", 2, "++--..++", []int{1, 2, 1, 2}, 1, "as before"},
		{"one there is", 1, "+++.--", []int{1}, 0, "nothing to choose"},
		{"not declared", 0, "+++--", nil, 0, "the machine's are not touched"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			var looks []func()
			p := newProcessors(tt.all, func(n int) { got = append(got, n) })
			p.tick = func(f func()) { looks = append(looks, f) }
			for _, step := range tt.steps {
				switch step {
				case '+':
					p.begin()
				case '-':
					p.end()
				case '.':
					due := looks
					looks = nil
					for _, f := range due {
						f()
					}
				}
			}
			if !slices.Equal(got, tt.want) || len(looks) != tt.looks {
				t.Errorf("%v and %d looks to come; want %v and %d: %s", got, len(looks), tt.want, tt.looks, tt.reason)
			}
		})
	}
}

// TestProcessorsAreNotLost: whatever begins and ends at the same time, in the end it is one again.
func TestProcessorsAreNotLost(t *testing.T) {
	var mu sync.Mutex
	now, end := 0, make(chan struct{})
	p := newProcessors(3, func(n int) { mu.Lock(); now = n; mu.Unlock() })
	p.tick = func(f func()) {
		go func() {
			select {
			case <-end:
			default:
				f()
			}
		}()
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				p.begin()
				p.end()
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		p.mu.Lock()
		wide := p.wide.Load()
		p.mu.Unlock()
		if !wide {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody looks any more, and it is not one")
		}
	}
	close(end)
	mu.Lock()
	defer mu.Unlock()
	if busy := p.busy.Load(); now != 1 || busy != 0 {
		t.Errorf("%d in use, %d things to do", now, busy)
	}
}
