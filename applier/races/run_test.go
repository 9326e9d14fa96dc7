package races

import (
	"testing"
	"time"

	"github.com/sandplan/sandplan/applier/launch"
)

// TestRunGoesWell: nothing happens, and the run goes well. What the others change, they change against this.
func TestRunGoesWell(t *testing.T) {
	for _, release := range []string{"20.10", "26.1", "28.5"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			w := armed(t, options{release: release})
			for attempt := 1; ; attempt++ {
				if c := w.changes(); len(c) > 0 {
					t.Fatalf("after apply a plan is not empty: %q", c)
				}
				time.AfterFunc(1200*time.Millisecond, w.letEnd)
				began := time.Now()
				res := w.run(t.Context(), nil)
				if res.Code == 0 && res.By == launch.ByAgent && res.Unsettled == nil && w.fed.Load() {
					break
				}
				if !tooSlow(attempt, began) {
					t.Fatalf("code %d by %s (%v), unsettled %v, fed %v", res.Code, res.By, res.Decision, res.Unsettled, w.fed.Load())
				}
				w = armed(t, options{release: release})
			}
			if c := w.changes(); len(c) > 0 {
				t.Errorf("after the run a plan is not empty: %q", c)
			}
			if left := w.left(); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
